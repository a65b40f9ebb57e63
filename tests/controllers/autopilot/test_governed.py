"""The autopilot beside the advisor: what an approved plan has set stays so, and the rest is looked after."""

from typing import Any

import pytest

from tests.controllers.autopilot.pair import ASSET, activate_two, becomes, is_corrected, substance
from tests.controllers.autopilot.rig import AutopilotRig, spec_of
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
async def activated(running_rig: AutopilotRig) -> AutopilotRig:
    await activate_two(running_rig)
    return running_rig


async def plan(rig: AutopilotRig, **status: Any) -> None:
    """Have a VirtPlatformConfig say this."""
    config = {
        "apiVersion": API_VERSION,
        "kind": VIRT_PLATFORM_CONFIG.name,
        "metadata": {"name": PROFILE},
        "spec": {"profile": PROFILE, "action": "Apply"},
    }
    await rig.client.apply(config, manager="admin", force=True)
    await rig.client.merge_patch(CONFIG, {"status": status}, subresource="status")


def target(rig: AutopilotRig, fields: list[str]) -> Object:
    ref = rig.ref(ASSET)
    which = {"apiVersion": "operator.openshift.io/v1", "kind": ref.kind.name}
    names = {"name": ref.key.name, "namespace": ref.key.namespace}
    return {"targetRef": {**which, **names}, "managedFields": fields, "hash": f"sha256:{'0' * 64}"}


async def execute(rig: AutopilotRig, spec: Object) -> None:
    """Write as the advisor does: fields and mark at once."""
    live = await rig.live(ASSET)
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
    await rig.client.apply(intent, manager="virt-advisor-operator", force=True)


async def test_governed_fields_are_left_to_the_advisor(
    activated: AutopilotRig,
) -> None:
    before = await substance(activated)
    item = target(activated, FIELDS) | {"name": "configure-descheduler", "impactSeverity": "Low", "state": "Pending"}
    await plan(activated, phase="InProgress", items=[item])
    await execute(activated, MINE)
    assert await eventually(lambda: activated.has_event("GovernedByAdvisor", ASSET), within=30)
    await is_corrected(activated)
    assert spec_of(await activated.live(ASSET)) == before["spec"] | MINE, (
        "the plan runs, and says only later what it did"
    )
    await plan(activated, phase="Completed", items=[], governed=[target(activated, FIELDS)])
    await activated.edit(ASSET, {"spec": {"mode": "Predictive", "deschedulingIntervalSeconds": 900}})
    assert await becomes(activated, mode="Automatic"), "other fields are still looked after"
    assert spec_of(await activated.live(ASSET)) == before["spec"] | MINE | {"deschedulingIntervalSeconds": 900}
    [event] = await activated.events("GovernedByAdvisor", ASSET)
    assert "spec.profiles" in event["note"]
    assert f"VirtPlatformConfig {PROFILE} governs " in event["note"]
    assert event["type"] == "Normal"
    await activated.client.merge_patch(CONFIG, {"spec": {"action": "Ignore"}})
    await is_corrected(activated)
    assert spec_of(await activated.live(ASSET))["profiles"] == MINE["profiles"], "ignored, and governed even so"
    await activated.client.merge_patch(activated.ref(ASSET), {"metadata": {"annotations": {GOVERNED_BY: None}}})
    assert await becomes(activated, **before["spec"])
    await gone(activated)


async def test_wholly_governed_object_is_in_sync(activated: AutopilotRig) -> None:
    everything = [f"spec.{name}" for name in spec_of(await activated.live(ASSET))]
    await plan(activated, governed=[target(activated, everything)])
    await execute(activated, MINE)
    assert await eventually(lambda: activated.has_event("GovernedByAdvisor", ASSET), within=30)
    await activated.edit(ASSET, {"spec": {"mode": "Predictive"}})
    await is_corrected(activated)
    assert MINE.items() <= spec_of(await activated.live(ASSET)).items()
    assert spec_of(await activated.live(ASSET))["mode"] == "Predictive"
    await gone(activated)


async def test_pending_plan_governs_nothing(activated: AutopilotRig) -> None:
    before = await substance(activated)
    elsewhere = target(activated, FIELDS)
    elsewhere["targetRef"]["name"] = "another"
    item = target(activated, FIELDS) | {"name": "configure-descheduler", "impactSeverity": "Low", "state": "Pending"}
    await plan(activated, phase="ReviewRequired", items=[item], governed=[elsewhere])
    await activated.client.merge_patch(activated.ref(ASSET), {"metadata": {"annotations": {GOVERNED_BY: PROFILE}}})
    await activated.edit(ASSET, {"spec": MINE})
    assert await becomes(activated, **before["spec"])
    await gone(activated)


async def test_governed_fields_stay_after_config_is_deleted(activated: AutopilotRig) -> None:
    before = await substance(activated)
    await plan(activated, phase="Completed", governed=[target(activated, FIELDS)])
    await execute(activated, MINE)
    assert await eventually(lambda: activated.has_event("GovernedByAdvisor", ASSET), within=30)
    await gone(activated)
    await activated.edit(ASSET, {"spec": {"mode": "Predictive"}})
    assert await becomes(activated, mode="Automatic"), "other fields are still looked after"
    assert spec_of(await activated.live(ASSET)) == before["spec"] | MINE
    await activated.client.merge_patch(activated.ref(ASSET), {"metadata": {"annotations": {GOVERNED_BY: None}}})
    assert await becomes(activated, **before["spec"])


async def gone(rig: AutopilotRig) -> None:
    """Leave no config behind: the kind is not the platform's."""
    await rig.client.delete(CONFIG)

    async def is_gone() -> bool:
        try:
            await rig.client.get(CONFIG)
        except NotFound:
            return True
        return False

    assert await eventually(is_gone, within=30)
