"""What a person is told of an asset, without the autopilot at work: by its rules, from what is there."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest

from tests.clients import a_client
from tests.controllers.autopilot.rig import AutopilotRig, Object, explained
from tests.controllers.autopilot.test_observe import an_hco, an_view
from tests.eventually import eventually
from virt_steward.apis.virtplatformconfig import VIRT_PLATFORM_CONFIG
from virt_steward.catalog.load import Catalog
from virt_steward.catalog.render import Renderer
from virt_steward.cli.explain import asset_lines
from virt_steward.controllers import REPORTERS
from virt_steward.controllers.autopilot import annotation_keys
from virt_steward.controllers.autopilot.options import HCO
from virt_steward.controllers.autopilot.verdicts import pending_claims
from virt_steward.insight.assets.explain import AssetExplanation, NoAsset, explain
from virt_steward.insight.assets.survey import NoPlatform, Survey, render_online
from virt_steward.insight.status import AssetRow, Section, autopilot
from virt_steward.kube.client import Reader
from virt_steward.kube.errors import NotFound, Refused
from virt_steward.objects.corekinds import NAMESPACE
from virt_steward.objects.identity import Key, Ref, ref_of
from virt_steward.objects.wallclock import rfc3339_micro
from virt_steward.platform.hco import HYPERCONVERGED
from virt_steward.ssa.managers import AUTOPILOT
from virt_steward_demo.local.accounts import token_for
from virt_steward_demo.local.controlplane import ControlPlane

ASSET = "descheduler-loadaware"
WRITES = ["CREATE", "UPDATE"]
INTERVAL = "/spec/deschedulingIntervalSeconds"


def reader(rig: AutopilotRig) -> Reader:
    return Reader(rig.client.connection, rig.client.discovery)


def failed(found: AssetExplanation) -> list[str]:
    return [check.title for check in found.checks if check.result == "fail"]


async def status(rig: AutopilotRig) -> Section:
    return await autopilot(reader(rig), rig.options, datetime.now(UTC))


async def made_with(rig: AutopilotRig, **spec: Any) -> None:
    """Apply what the autopilot wants, but for some fields, as if it had done so."""
    found = await render_online(reader(rig), rig.catalog, rig.options, datetime.now(UTC))
    [line] = [one for one in found.reports if one.asset.name == ASSET]
    assert line.object
    obj = line.object | {"spec": line.object["spec"] | spec}
    await rig.client.apply(obj, manager=AUTOPILOT.name, force=True)


async def test_explain_idle_autopilot(rig: AutopilotRig) -> None:
    found = await explained(rig, ASSET)
    assert found.state == "Idle"
    assert "no annotation platform.kubevirt.io/autopilot" in found.checks[0].reason
    assert failed(found) == ["Autopilot on"]
    assert (await status(rig)).summary.startswith("idle: the HyperConverged has no annotation")
    with pytest.raises(NoAsset, match="there is no asset gone"):
        await explained(rig, "gone")
    await rig.client.delete(rig.ref("hco-golden-config"))

    async def is_told() -> bool:
        return "there is no HyperConverged openshift-cnv/" in (await status(rig)).summary

    assert await eventually(is_told)
    with pytest.raises(NoPlatform):
        await explained(rig, ASSET)


async def test_explain_names_what_asset_brings_along(rig: AutopilotRig) -> None:
    found = await explained(rig, ASSET)
    assert ("psi-enable (nodes reboot)" in map(str, found.selects), found.reboots) == (True, False)
    text = " ".join(" ".join(asset_lines(found)).split())
    assert "its name in the allow-list also selects: psi-enable (nodes reboot)" in text
    assert f"'virt-steward diff --scope {ASSET}' shows which" in text
    brought = await explained(rig, "psi-enable")
    assert (brought.group, brought.reboots, brought.selects) == (ASSET, True, ())
    assert f"group: {ASSET}; this name in the allow-list selects it" in " ".join(asset_lines(brought))
    alone = " ".join(asset_lines(await explained(rig, "metallb-operator")))
    assert "reboot" not in alone


async def test_explain_shows_every_check(rig: AutopilotRig) -> None:
    await rig.activate(f"{ASSET},metallb-operator,hco-golden-config")
    left = await explained(rig, "metallb-operator")
    assert (left.state, left.live) == ("Left alone", None)
    assert [(check.title, check.result, check.decided) for check in left.checks] == [
        ("Autopilot on", "pass", False),
        ("In the allow-list", "pass", False),
        ("CRD installed", "pass", False),
        ("Gate CRD installed", "pass", False),
        ("Conditions met", "fail", True),
        ("Inputs known", "not reached", False),
        ("Template renders an object", "not reached", False),
        ("Not excluded", "not reached", False),
        ("Managed", "not reached", False),
        ("Namespace exists", "not reached", False),
    ]
    assert "platform.kubevirt.io/enable-metallb: expected=true, actual=absent" in left.checks[4].reason
    assert "\N{EN DASH} Managed: not reached" in text_of(left)
    assert (await explained(rig, ASSET)).state == "Not there yet"

    await made_with(rig, deschedulingIntervalSeconds=7200)
    differs = await explained(rig, ASSET)
    assert (differs.state, differs.differences) == ("Differs", (INTERVAL,))
    assert failed(differs) == ["Live object in sync"]
    difference = f"{INTERVAL} is 7200, should be 60 (managedFields names no other manager)"
    assert f"✗ Live object in sync: {difference}" in text_of(differs)
    told = await status(rig)
    assert AssetRow(ASSET, "Differs", difference) in told.assets
    assert AssetRow("swap-enable", "Left alone", "Not in the allow-list") in told.assets
    assert told.summary.startswith("assets left alone: ")

    await rig.annotate(ASSET, ignore_fields=INTERVAL, override_until="2999-01-01T00:00:00Z")
    masked = await explained(rig, ASSET)
    assert (masked.state, masked.until) == ("In place", "2999-01-01T00:00:00Z")
    assert masked.overrides["platform.kubevirt.io/ignore-fields"] == INTERVAL
    assert any(INTERVAL in check.reason for check in masked.checks)
    assert ASSET not in [row.asset for row in (await status(rig)).assets]

    await rig.annotate(ASSET, reconcile_paused="true")
    paused = await explained(rig, ASSET)
    assert paused.state == "Paused"
    assert failed(paused) == ["Writes enabled"]
    assert "✗ Writes enabled: a user paused it; nothing is written until" in text_of(paused)
    await rig.annotate(ASSET, reconcile_paused=None, mode="unmanaged")
    unmanaged = await explained(rig, ASSET)
    assert (unmanaged.state, failed(unmanaged)) == ("Left alone", ["Managed"])
    text = text_of(unmanaged)
    assert "✗ Managed: it has the annotation platform.kubevirt.io/mode: unmanaged. Stopped here" in text
    assert "The object exists: not known to be created by the autopilot; also managed by admin" in text


def text_of(explanation: AssetExplanation) -> str:
    """What the command line prints, without its line breaks."""
    return " ".join("\n".join(asset_lines(explanation)).split())


@asynccontextmanager
async def refused(rig: AutopilotRig, asset: str) -> AsyncIterator[None]:
    """Nobody may make or change the asset's object."""
    head: Object = {"apiVersion": "admissionregistration.k8s.io/v1", "metadata": {"name": "not-here"}}
    kind = rig.ref(asset).kind
    rule = {"apiGroups": [kind.group], "resources": [kind.plural], "apiVersions": ["*"], "operations": WRITES}
    validations = [{"expression": "false", "message": "not in this house"}]
    policy = head | {
        "kind": "ValidatingAdmissionPolicy",
        "spec": {"matchConstraints": {"resourceRules": [rule]}, "validations": validations},
    }
    binding = head | {
        "kind": "ValidatingAdmissionPolicyBinding",
        "spec": {"policyName": "not-here", "validationActions": ["Deny"]},
    }

    async def is_in_force() -> bool:
        try:
            await rig.edit(asset, {"metadata": {"labels": {"probe": "yes"}}})
        except Refused:
            return True
        return False

    for one in (policy, binding):
        await rig.client.apply(one, manager="admin")
    try:
        assert await eventually(is_in_force)
        yield
    finally:
        for one in (binding, policy):
            await rig.client.delete(ref_of(one))


async def test_explain_finds_rejected_objects_by_dry_run(
    rig: AutopilotRig,
) -> None:
    await rig.activate(f"{ASSET},hco-golden-config")
    await made_with(rig)
    assert (await explained(rig, ASSET)).state == "In place"
    async with refused(rig, ASSET):
        fails = await explained(rig, ASSET)
        assert fails.state == "Fails"
        assert "not in this house" in fails.because
        assert failed(fails) == ["Dry run accepted"]
        assert (await explained(rig, "hco-golden-config")).state == "Differs", "nobody has marked it yet"
    async with refused(rig, "hco-golden-config"):
        assert (await explained(rig, "hco-golden-config")).state == "Fails"
        waits = await explained(rig, ASSET)
        assert waits.state == "Waits"
        assert "the HyperConverged must be applied first, which fails: " in waits.because
        assert failed(waits) == ["HyperConverged applied"]

    async def is_in_place() -> bool:
        return (await explained(rig, ASSET)).state == "In place"

    assert await eventually(is_in_place), "an admission policy is in force for a moment longer than it is there"


async def test_explain_names_missing_rights_of_the_user(rig: AutopilotRig, control_plane: ControlPlane) -> None:
    await rig.activate(f"{ASSET},hco-golden-config")
    visitor = {
        "apiVersion": "v1",
        "kind": "ServiceAccount",
        "metadata": {"name": "visitor", "namespace": "openshift-cnv"},
    }
    async with a_client(control_plane, await token_for(rig.client, (visitor,))) as client:
        found = await explained(rig, ASSET, client)
    assert found.state == "Not there yet"
    assert "Dry run accepted" not in [check.title for check in found.checks]
    assert [remark.partition(":")[0] for remark in found.remarks] == ["NotTried", "NotTried", "EventsForbidden"]
    assert "needs the right to patch KubeDescheduler" in found.remarks[0]
    assert "needs the right to patch HyperConverged" in found.remarks[1]


@asynccontextmanager
async def told_to_fail(rig: AutopilotRig, asset: str, when: datetime) -> AsyncIterator[None]:
    """An event that says so, as the autopilot would have told it."""
    hco, about = rig.ref("hco-golden-config"), rig.ref(asset)
    event = {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {"name": "failed", "namespace": hco.key.namespace},
        "eventTime": rfc3339_micro(when),
        "reportingController": REPORTERS["autopilot"],
        "reportingInstance": "pod-1",
        "type": "Warning",
        "reason": "ApplyFailed",
        "action": "Apply",
        "note": "a webhook says no",
        "regarding": {"kind": hco.kind.name, "namespace": hco.key.namespace, "name": hco.key.name},
        "related": {"kind": about.kind.name, "namespace": about.key.namespace, "name": about.key.name},
    }
    await rig.client.create(event)
    try:
        yield
    finally:
        await rig.client.delete(ref_of(event))


async def test_explain_ignores_old_failures(rig: AutopilotRig) -> None:
    await rig.activate(f"{ASSET},hco-golden-config")
    await made_with(rig)
    now = datetime.now(UTC)
    async with told_to_fail(rig, "hco-golden-config", now - timedelta(seconds=2 * rig.options.period + 1)):
        assert (await explained(rig, ASSET)).state == "In place"
        assert (await explained(rig, "hco-golden-config")).state == "Differs", "nobody has marked it yet"
    async with told_to_fail(rig, "hco-golden-config", now):
        assert (await explained(rig, ASSET)).state == "Waits"
        assert (await explained(rig, "hco-golden-config")).state == "Fails"


@asynccontextmanager
async def leaving(rig: AutopilotRig, namespace: str) -> AsyncIterator[None]:
    """A namespace that is deleted and not gone yet; it is made anew afterwards."""
    metadata = {"name": "holds-it", "namespace": namespace, "finalizers": ["tests.example/hold"]}
    held = await rig.client.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata})
    ref = Ref(NAMESPACE, Key("", namespace))
    await rig.client.delete(ref)

    async def is_gone() -> bool:
        try:
            await rig.client.get(ref)
        except NotFound:
            return True
        return False

    try:
        yield
    finally:
        await rig.client.merge_patch(ref_of(held), {"metadata": {"finalizers": None}})
        assert await eventually(is_gone)
        await rig.client.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}})


async def test_explain_terminating_namespace_is_no_failure(rig: AutopilotRig) -> None:
    await rig.activate(f"{ASSET},hco-golden-config")
    async with leaving(rig, rig.ref(ASSET).key.namespace):
        found = await explained(rig, ASSET)
    assert found.state == "Not there yet"
    assert "Dry run accepted" not in [check.title for check in found.checks]
    [remark] = found.remarks
    assert remark.startswith("NotTried: ")
    assert "is being terminated" in remark


def test_explain_pending_while_governed_fields_are_unknown(catalog: Catalog) -> None:
    view, kept = an_view(catalog)
    hco = an_hco(HCO, {annotation_keys.SCOPE: "true", annotation_keys.GOVERNED_BY: "load-aware-rebalancing"})
    for source, store in kept.items():
        if source.kind == HYPERCONVERGED:
            store.put(source.decode(msgspec.json.encode(hco)))
    seen, first = view.seen(), catalog.assets[0].name
    assert seen
    survey = Survey(view, seen, Renderer(catalog), datetime.now(UTC), {first: hco})
    assert explain(survey, first, {}).state == "Differs"
    [configs] = [store for source, store in kept.items() if source.kind == VIRT_PLATFORM_CONFIG]
    configs.put_unreadable(Key("", "load-aware-rebalancing"), "it makes no sense")
    waits = explain(survey, first, {})
    message = pending_claims("VirtPlatformConfig load-aware-rebalancing: it makes no sense").message
    assert (waits.state, waits.because) == ("Waits", message)
    assert "Governed fields known" in failed(waits)
