"""The debug pages, from stores that a test fills."""

from typing import Any

import msgspec

from tests.controllers.autopilot.test_observe import an_hco, an_view
from tests.runtime.clocks import ManualClock
from virt_steward.apis.drift import DriftEntry
from virt_steward.apis.virtplatformconfig import VIRT_PLATFORM_CONFIG
from virt_steward.catalog.load import Catalog
from virt_steward.catalog.render import Renderer
from virt_steward.controllers.autopilot import annotation_keys
from virt_steward.controllers.autopilot.corrections import KEPT, CorrectionLog
from virt_steward.controllers.autopilot.debug_pages import GOVERNED, pages
from virt_steward.controllers.autopilot.options import HCO
from virt_steward.objects.identity import Ref
from virt_steward.platform.hco import HYPERCONVERGED
from virt_steward.runtime.debug import DebugReply, DebugRequest
from virt_steward.ssa.drift_entries import FieldDrift

PROFILE = "load-aware-rebalancing"
TARGET = {"apiVersion": "hco.kubevirt.io/v1", "kind": "HyperConverged", "name": HCO.name, "namespace": HCO.namespace}
CONFIG = {
    "metadata": {"name": PROFILE, "uid": "3", "resourceVersion": "1"},
    "status": {"phase": "Completed", "governed": [{"targetRef": TARGET, "managedFields": ["spec.virtualization"]}]},
}


async def test_exclusions_list_governed_objects(catalog: Catalog) -> None:
    view, kept = an_view(catalog)
    hco = an_hco(HCO, {annotation_keys.SCOPE: "true", annotation_keys.GOVERNED_BY: PROFILE})
    for source, store in kept.items():
        if source.kind == HYPERCONVERGED:
            store.put(source.decode(msgspec.json.encode(hco)))
        if source.kind == VIRT_PLATFORM_CONFIG:
            store.put(source.decode(msgspec.json.encode(CONFIG)))
    page = pages(view, Renderer(catalog), CorrectionLog(), ManualClock())["/debug/exclusions"]
    reply = await page(DebugRequest({}, {"format": "json"}))
    assert isinstance(reply, DebugReply)
    [governed] = [one for one in msgspec.json.decode(reply.text) if one["asset"] == "hco-golden-config"]
    assert governed.keys() == {"asset", "path", "component", "reason", "details"}
    assert governed["reason"] == GOVERNED
    assert governed["details"] == {
        "annotation": annotation_keys.GOVERNED_BY,
        "virtPlatformConfig": PROFILE,
        "fields": "spec.virtualization",
    }


async def test_features_have_the_form_of_a_go_release(catalog: Catalog) -> None:
    view, _ = an_view(catalog)
    page = pages(view, Renderer(catalog), CorrectionLog(), ManualClock())["/debug/features"]

    async def features(**query: str) -> Any:
        reply = await page(DebugRequest({}, {"format": "json", **query}))
        assert isinstance(reply, DebugReply)
        return reply.status if reply.status != 200 else msgspec.json.decode(reply.text)

    old, new = await features(release="4.22"), await features(release="5.0")
    assert new["features"] == old
    assert new["framework"] == {"maturity": "GA", "opt_in": "platform.kubevirt.io/autopilot=true"}
    by_name = {one["name"]: one for one in old}
    assert by_name["MetalLB Operator"]["opt_in"] == "platform.kubevirt.io/enable-metallb=true"
    assert by_name["SWAP"] == {"name": "SWAP", "maturity": "GA", "install": "always", "opt_in": None}
    assert await features(release="6") == 400


async def test_corrections_are_listed_with_values_and_author(catalog: Catalog) -> None:
    view, _ = an_view(catalog)
    log, clock = CorrectionLog(), ManualClock()
    entry = DriftEntry("/spec/mode", "Automatic", "Predictive", "kubectl-edit", clock.utc())
    drift = FieldDrift(entry.path, ("kubectl-edit",), entry=entry)
    ref = Ref(HYPERCONVERGED, HCO)
    for number in range(KEPT + 3):
        log.note(f"asset-{number}", ref, (drift,) * 50, clock.utc())
    reply = await pages(view, Renderer(catalog), log, clock)["/debug/corrections"](DebugRequest({}, {"format": "json"}))
    assert isinstance(reply, DebugReply)
    found = msgspec.json.decode(reply.text)
    assert (len(found), found[0]["asset"], len(found[0]["fields"])) == (KEPT, f"asset-{KEPT + 2}", 20)
    shown = found[0]["fields"][0]
    assert (shown["path"], shown["live"], shown["planned"], shown["manager"]) == (
        "/spec/mode",
        "Predictive",
        "Automatic",
        "kubectl-edit",
    )
