"""Statuses that others have changed: nothing of that is executed, and none of it stays."""

from typing import Any

import msgspec

from tests.controllers.advisor.rig import AdvisorRig, a_descheduler, advising, no_reboots, the_config
from tests.controllers.approver.process import home_of
from tests.eventually import eventually
from tests.grants import Account
from virt_steward.apis.profiles import LOAD_AWARE
from virt_steward.apis.virtplatformconfig import API_VERSION, VIRT_PLATFORM_CONFIG
from virt_steward.controllers.advisor.profiles.load_aware_rebalancing import DESCHEDULER, PSI
from virt_steward.controllers.advisor.records import name_of_record
from virt_steward.kube.client import Object
from virt_steward.kube.events import EVENT
from virt_steward.objects.corekinds import CONFIG_MAP
from virt_steward.objects.identity import Key, Ref
from virt_steward.plans.fingerprint import fields_hash
from virt_steward.platform.machineconfigs import ROLE
from virt_steward.ssa.preview import fetch
from virt_steward_demo.local.controlplane import ControlPlane
from virt_steward_demo.simulation.faults import break_node, repair_node

NEVER = {"schedule": "0 3 30 2 *", "duration": "1h"}
UNIT = {"config": {"systemd": {"units": [{"name": "planted.service", "enabled": True}]}}}


async def a_planted_item(rig: AdvisorRig, name: str) -> Object:
    """An item that writes a systemd unit into the MachineConfig of the profile, and passes for a planned one."""
    target = {"apiVersion": "machineconfiguration.openshift.io/v1", "kind": "MachineConfig"}
    fields = ("spec.config",)
    return {
        "name": name,
        "targetRef": {**target, "name": PSI.key.name},
        "impactSeverity": "Low",
        "state": "Pending",
        "desiredState": {**target, "metadata": {"name": PSI.key.name, "labels": {ROLE: "worker"}}, "spec": UNIT},
        "managedFields": fields,
        "hash": fields_hash(await fetch(rig.client, PSI), fields),
        "plannedHash": fields_hash({"spec": UNIT}, fields),
    }


async def write_status(rig: AdvisorRig, status: Object) -> None:
    await rig.client.merge_patch(the_config(), {"status": status}, subresource="status", manager="mallory")


async def tamper(rig: AdvisorRig, **changes: Any) -> None:
    """Replace the items that are left, and have them executed."""
    items = msgspec.to_builtins((await rig.status()).items)
    left = [item for item in items if item.get("state", "Pending") == "Pending"] or items
    planted = {item["name"]: await a_planted_item(rig, item["name"]) for item in left}
    await write_status(
        rig, {"phase": "InProgress", "items": [planted.get(one["name"], one) for one in items], **changes}
    )


async def is_clean(rig: AdvisorRig) -> bool:
    """Whether nothing planted is in the config or its targets."""
    found = [await rig.config(), *[await fetch(rig.client, ref) for ref in (PSI, DESCHEDULER)]]
    return b'"planted' not in msgspec.json.encode([_without_managers(one) for one in found if one]).lower()


def _without_managers(obj: Object) -> Object:
    return {**obj, "metadata": {name: value for name, value in obj["metadata"].items() if name != "managedFields"}}


async def is_reported(rig: AdvisorRig) -> bool:
    uid = (await rig.config())["metadata"]["uid"]

    async def has_event() -> bool:
        events = await rig.client.list(EVENT)
        return any(one["reason"] == "PlanTampered" and one["regarding"].get("uid") == uid for one in events)

    return await eventually(has_event)


async def reviewed_under_apply(rig: AdvisorRig) -> None:
    await rig.annotate(approved_plan="b" * 64)
    await rig.ask("Apply", options=no_reboots())
    assert await rig.reaches("ReviewRequired", reason="ApprovalVoid")


async def before_first_item(rig: AdvisorRig) -> None:
    await rig.ask("Apply", options=no_reboots(), window=NEVER)
    assert await rig.reaches("InProgress", reason="NeverOpen")


async def before_second_item(rig: AdvisorRig) -> None:
    await break_node(rig.client, "worker-0")
    await rig.ask("Apply", options={"loadAware": {"enablePSIMetrics": True, "mode": "Predictive"}})
    assert await rig.says("enable-psi-metrics", "'worker' is degraded")


async def completed(rig: AdvisorRig) -> None:
    await rig.ask("Apply", options=no_reboots())
    assert await rig.reaches("Completed")


async def drifted(rig: AdvisorRig) -> None:
    await completed(rig)
    await rig.client.merge_patch(DESCHEDULER, {"spec": {"mode": "Predictive"}})
    assert await rig.reaches("Drifted")


async def reviewed_rollback(rig: AdvisorRig) -> None:
    await completed(rig)
    await rig.ask("Rollback")
    assert await rig.reaches("ReviewRequired", reason="RollbackReady")


async def test_tampered_plan_is_never_executed(rig: AdvisorRig, control_plane: ControlPlane, account: Account) -> None:
    moments = (before_first_item, reviewed_under_apply, completed, drifted, reviewed_rollback, before_second_item)
    async with advising(control_plane, account):
        for moment in moments:
            await moment(rig)
            await tamper(rig)
            assert await rig.reaches("Failed", reason="PlanTampered"), (moment, await rig.status())
            assert "Check who may write virtplatformconfigs/status" in await rig.message("Failed")
            assert await is_clean(rig), moment
            await rig.annotate(approved_plan=None)
            await rig.ask("DryRun", window=None)
            assert await eventually(lambda: is_recovered(rig)), (moment, await rig.status())
            assert await is_clean(rig), moment
        assert await is_reported(rig)


async def is_recovered(rig: AdvisorRig) -> bool:
    return (await rig.status()).phase in ("ReviewRequired", "Completed")


async def test_tampered_status_starts_nothing_that_is_held_back(
    rig: AdvisorRig, control_plane: ControlPlane, account: Account
) -> None:
    async with advising(control_plane, account):
        await completed(rig)
        await rig.client.delete(DESCHEDULER)
        assert await rig.reaches("Drifted")
        plan = await rig.status()
        for claim in ({"planAction": None, "phase": "Pending"}, {"appliedOptions": {}}, {"phase": "InProgress"}):
            await write_status(rig, claim)
            assert await eventually(lambda: is_restored(rig))
        assert not await rig.exists(DESCHEDULER)
        assert (await rig.status()).plan_hash == plan.plan_hash


async def is_restored(rig: AdvisorRig) -> bool:
    status = await rig.status()
    return (status.phase, status.plan_action) in (("Drifted", "Apply"), ("Failed", "Apply"))


PLANTED: dict[str, Any] = {
    "items": [
        {
            "name": "configure-descheduler",
            "impactSeverity": "Low",
            "targetRef": {**a_descheduler()["metadata"], "apiVersion": "operator.openshift.io/v1", "kind": "Planted"},
            "desiredState": {"metadata": {"labels": {"planted": "yes"}}, "spec": {"planted": True}},
        },
        {
            "name": "planted",
            "impactSeverity": "Low",
            "targetRef": {"apiVersion": "v1", "kind": "Secret", "name": "planted"},
            "state": "Pending",
        },
    ],
    "inputs": [{"name": "planted", "value": "1"}],
    "conditions": [
        {
            "type": "Planted",
            "status": "True",
            "reason": "Planted",
            "message": "planted",
            "lastTransitionTime": "2026-01-01T00:00:00Z",
        }
    ],
}


async def plant(rig: AdvisorRig, **status: Any) -> None:
    """As a GitOps tool, by server-side apply."""
    obj = {"apiVersion": API_VERSION, "kind": VIRT_PLATFORM_CONFIG.name, "metadata": {"name": LOAD_AWARE}}
    await rig.client.apply({**obj, "status": status}, manager="gitops", force=True, subresource="status")


async def test_planted_values_leave_status_and_plan_stays(
    rig: AdvisorRig, control_plane: ControlPlane, account: Account
) -> None:
    async with advising(control_plane, account):
        await rig.ask("DryRun", options=no_reboots())
        assert await rig.reaches("ReviewRequired")
        before = await rig.status()
        await plant(rig, **PLANTED)
        assert await eventually(lambda: is_clean(rig))
        assert await rig.status() == before
        assert await is_reported(rig)
        await rig.annotate(approved_plan=before.plan_hash, approved_by="ann")
        await rig.ask("Apply")
        assert await rig.reaches("Completed")
        for time in ("2026-01-01T00:00:00Z", "0000-01-01T00:00:00Z"):  # the server accepts a year that Python does not
            condition = {**PLANTED["conditions"][0], "lastTransitionTime": time}
            await plant(rig, conditions=[condition])
            assert await eventually(lambda: is_clean(rig))
        assert [one.by for one in (await rig.status()).history] == ["ann"]


async def test_planted_values_void_approval_given_meanwhile(
    rig: AdvisorRig, control_plane: ControlPlane, account: Account
) -> None:
    """Whoever approved the plan while no advisor was running saw something else."""
    async with advising(control_plane, account):
        await rig.ask("DryRun", options=no_reboots())
        assert await rig.reaches("ReviewRequired")
    await plant(rig, **PLANTED)
    await rig.annotate(approved_plan=(await rig.status()).plan_hash, approved_by="ann")
    await rig.ask("Apply")
    async with advising(control_plane, account):
        assert await rig.reaches("Failed", reason="PlanTampered")
        assert not await rig.exists(DESCHEDULER)
        assert await is_clean(rig)


async def test_item_outside_of_profile_is_not_written(
    rig: AdvisorRig, control_plane: ControlPlane, account: Account
) -> None:
    """Not even if the record says so."""
    async with advising(control_plane, account):
        await before_first_item(rig)
    ref = Ref(CONFIG_MAP, Key(home_of(account), name_of_record(LOAD_AWARE)))
    text = (await rig.client.get(ref))["data"]["record"].replace('"name":"cluster"', '"name":"planted"')
    await rig.client.merge_patch(ref, {"data": {"record": text}})
    items = msgspec.json.decode(text)["status"]["items"]
    await write_status(rig, {"items": items})
    await rig.ask(window=None)
    async with advising(control_plane, account):
        assert await rig.reaches("Failed", reason="PlanTampered")
    assert not await rig.exists(Ref(DESCHEDULER.kind, Key(DESCHEDULER.key.namespace, "planted")))


async def forget_record(rig: AdvisorRig, account: Account) -> None:
    """Leave the config as version 0.1 would have."""
    await rig.client.delete(Ref(CONFIG_MAP, Key(home_of(account), name_of_record(LOAD_AWARE))))
    await write_status(rig, {"executions": None})


class TestUpgrade:
    """From version 0.1, which kept no records."""

    async def test_upgrade_drafts_plan_again_and_keeps_completed_one(
        self, rig: AdvisorRig, control_plane: ControlPlane, account: Account
    ) -> None:
        async with advising(control_plane, account):
            await rig.ask("DryRun", options=no_reboots())
            assert await rig.reaches("ReviewRequired")
        await forget_record(rig, account)
        await rig.annotate(approved_plan=(await rig.status()).plan_hash, approved_by="ann")
        await rig.ask("Apply")
        async with advising(control_plane, account):
            assert await rig.reaches("ReviewRequired", reason="ApprovalVoid")
            assert not await rig.exists(DESCHEDULER)
            await rig.annotate(approved_plan=(await rig.status()).plan_hash)
            assert await rig.reaches("Completed")
        before = await rig.status()
        await forget_record(rig, account)
        async with advising(control_plane, account):
            assert await eventually(lambda: has_record(rig, account))
            assert await rig.reaches("Completed")
        after = await rig.status()
        assert (after.history, after.governed, after.pre_image) == (before.history, before.governed, before.pre_image)

    async def test_upgrade_goes_on_with_execution(
        self, rig: AdvisorRig, control_plane: ControlPlane, account: Account
    ) -> None:
        async with advising(control_plane, account):
            await before_second_item(rig)
        await forget_record(rig, account)
        await repair_node(rig.client, "worker-0")
        async with advising(control_plane, account):
            assert await rig.reaches("Completed")
        assert [one.outcome for one in (await rig.status()).history] == ["Completed"]

    async def test_upgrade_reviews_execution_that_is_planned_differently(
        self, rig: AdvisorRig, control_plane: ControlPlane, account: Account
    ) -> None:
        async with advising(control_plane, account):
            await before_second_item(rig)
        await forget_record(rig, account)
        await tamper(rig)
        async with advising(control_plane, account):
            assert await rig.reaches("ReviewRequired", reason="PlanChanged")
            assert await is_clean(rig)


async def has_record(rig: AdvisorRig, account: Account) -> bool:
    return await rig.exists(Ref(CONFIG_MAP, Key(home_of(account), name_of_record(LOAD_AWARE))))


async def test_approval_starts_one_execution(rig: AdvisorRig, control_plane: ControlPlane, account: Account) -> None:
    async with advising(control_plane, account):
        await rig.ask("DryRun", options=no_reboots())
        assert await rig.reaches("ReviewRequired")
        first = await rig.status()
        await rig.annotate(approved_plan=first.plan_hash, approved_by="ann")
        await rig.ask("Apply")
        assert await rig.reaches("Completed")
        await rig.client.delete(DESCHEDULER)
        assert await rig.reaches("Drifted")
        await rig.ask("DryRun")
        assert await rig.reaches("ReviewRequired")
        again = await rig.status()
        assert again.items[0].desired_state == first.items[0].desired_state
        await rig.ask("Apply")
        assert await rig.reaches("ReviewRequired", reason="ApprovalVoid")
        assert not await rig.exists(DESCHEDULER)
        await rig.annotate(approved_plan=again.plan_hash, approved_by="ann")
        assert await rig.reaches("Completed")
    history = (await rig.status()).history
    assert [(one.plan_hash, one.by) for one in history] == [(again.plan_hash, "ann"), (first.plan_hash, "ann")]
