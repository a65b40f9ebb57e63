"""The autopilot beside the advisor: what an approved plan has set stays so, and the rest is looked after."""

from typing import Any

import pytest

from tests.controllers.autopilot.cockpit import Cockpit, spec_of
from tests.controllers.autopilot.pair import ASSET, becomes, engage_two, is_corrected, substance
from tests.eventually import eventually
from virt_steward.apis.virtplatformconfig import API_VERSION, VIRT_PLATFORM_CONFIG
from virt_steward.kube.errors import NotFound
from virt_steward.objects.identity import Key, Ref

GOVERNED_BY = "advisor.kubevirt.io/governed-by"
PROFILE = "load-aware-rebalancing"
CONFIG = Ref(VIRT_PLATFORM_CONFIG, Key("", PROFILE))
MINE = {"deschedulingIntervalSeconds": 1800, "profiles": ["LongLifecycle"]}
FIELDS = [f"spec.{name}" for name in MINE]

Object = dict[str, Any]


@pytest.fixture
async def engaged(flying: Cockpit) -> Cockpit:
    await engage_two(flying)
    return flying


async def plan(cockpit: Cockpit, **status: Any) -> None:
    """Have a VirtPlatformConfig say this."""
    config = {
        "apiVersion": API_VERSION,
        "kind": VIRT_PLATFORM_CONFIG.name,
        "metadata": {"name": PROFILE},
        "spec": {"profile": PROFILE, "action": "Apply"},
    }
    await cockpit.client.apply(config, manager="admin", force=True)
    await cockpit.client.merge_patch(CONFIG, {"status": status}, subresource="status")


def target(cockpit: Cockpit, fields: list[str]) -> Object:
    ref = cockpit.ref(ASSET)
    which = {"apiVersion": "operator.openshift.io/v1", "kind": ref.kind.name}
    names = {"name": ref.key.name, "namespace": ref.key.namespace}
    return {"targetRef": {**which, **names}, "managedFields": fields, "hash": f"sha256:{'0' * 64}"}


async def execute(cockpit: Cockpit, spec: Object) -> None:
    """Write as the advisor does: fields and mark at once."""
    live = await cockpit.live(ASSET)
    assert live
    intent = {
        "apiVersion": live["apiVersion"],
        "kind": live["kind"],
        "metadata": {
            "name": live["metadata"]["name"],
            "namespace": live["metadata"]["namespace"],
            "annotations": {GOVERNED_BY: PROFILE},
        },
        "spec": spec,
    }
    await cockpit.client.apply(intent, manager="virt-advisor-operator", force=True)


async def test_governed_fields_are_left_to_the_advisor(
    engaged: Cockpit,
) -> None:
    before = await substance(engaged)
    item = target(engaged, FIELDS) | {"name": "configure-descheduler", "impactSeverity": "Low", "state": "Pending"}
    await plan(engaged, phase="InProgress", items=[item])
    await execute(engaged, MINE)
    assert await eventually(lambda: engaged.told("GovernedByAdvisor", ASSET), within=30)
    await is_corrected(engaged)
    assert spec_of(await engaged.live(ASSET)) == before["spec"] | MINE, "the plan runs, and says only later what it did"
    await plan(engaged, phase="Completed", items=[], governed=[target(engaged, FIELDS)])
    await engaged.edit(ASSET, {"spec": {"mode": "Predictive", "deschedulingIntervalSeconds": 900}})
    assert await becomes(engaged, mode="Automatic"), "other fields are still looked after"
    assert spec_of(await engaged.live(ASSET)) == before["spec"] | MINE | {"deschedulingIntervalSeconds": 900}
    [event] = await engaged.events("GovernedByAdvisor", ASSET)
    assert "spec.profiles" in event["note"]
    assert f"VirtPlatformConfig {PROFILE} governs " in event["note"]
    assert event["type"] == "Normal"
    await engaged.client.merge_patch(CONFIG, {"spec": {"action": "Ignore"}})
    await is_corrected(engaged)
    assert spec_of(await engaged.live(ASSET))["profiles"] == MINE["profiles"], "ignored, and governed even so"
    await engaged.client.merge_patch(engaged.ref(ASSET), {"metadata": {"annotations": {GOVERNED_BY: None}}})
    assert await becomes(engaged, **before["spec"])
    await gone(engaged)


async def test_wholly_governed_object_is_in_sync(engaged: Cockpit) -> None:
    everything = [f"spec.{name}" for name in spec_of(await engaged.live(ASSET))]
    await plan(engaged, governed=[target(engaged, everything)])
    await execute(engaged, MINE)
    assert await eventually(lambda: engaged.told("GovernedByAdvisor", ASSET), within=30)
    await engaged.edit(ASSET, {"spec": {"mode": "Predictive"}})
    await is_corrected(engaged)
    assert MINE.items() <= spec_of(await engaged.live(ASSET)).items()
    assert spec_of(await engaged.live(ASSET))["mode"] == "Predictive"
    await gone(engaged)


async def test_pending_plan_governs_nothing(engaged: Cockpit) -> None:
    before = await substance(engaged)
    elsewhere = target(engaged, FIELDS)
    elsewhere["targetRef"]["name"] = "another"
    item = target(engaged, FIELDS) | {"name": "configure-descheduler", "impactSeverity": "Low", "state": "Pending"}
    await plan(engaged, phase="ReviewRequired", items=[item], governed=[elsewhere])
    await engaged.client.merge_patch(engaged.ref(ASSET), {"metadata": {"annotations": {GOVERNED_BY: PROFILE}}})
    await engaged.edit(ASSET, {"spec": MINE})
    assert await becomes(engaged, **before["spec"])
    await gone(engaged)


async def test_governed_fields_stay_after_config_is_deleted(engaged: Cockpit) -> None:
    before = await substance(engaged)
    await plan(engaged, phase="Completed", governed=[target(engaged, FIELDS)])
    await execute(engaged, MINE)
    assert await eventually(lambda: engaged.told("GovernedByAdvisor", ASSET), within=30)
    await gone(engaged)
    await engaged.edit(ASSET, {"spec": {"mode": "Predictive"}})
    assert await becomes(engaged, mode="Automatic"), "other fields are still looked after"
    assert spec_of(await engaged.live(ASSET)) == before["spec"] | MINE
    await engaged.client.merge_patch(engaged.ref(ASSET), {"metadata": {"annotations": {GOVERNED_BY: None}}})
    assert await becomes(engaged, **before["spec"])


async def gone(cockpit: Cockpit) -> None:
    """Leave no config behind: the kind is not the platform's."""
    await cockpit.client.delete(CONFIG)

    async def is_gone() -> bool:
        try:
            await cockpit.client.get(CONFIG)
        except NotFound:
            return True
        return False

    assert await eventually(is_gone, within=30)
