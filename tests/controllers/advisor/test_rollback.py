"""Rollback: what a plan has changed is restored after review, and nothing that others have changed since is lost."""

from typing import Any

import pytest

from tests.controllers.advisor.process import Start
from tests.controllers.advisor.rig import AdvisorRig, a_descheduler, advising, no_reboots
from tests.controllers.approver.process import home_of
from tests.eventually import eventually
from tests.grants import Account
from virt_steward.controllers.advisor.profiles.load_aware_rebalancing import DESCHEDULER, PSI
from virt_steward.kube.client import Object, Selection
from virt_steward.objects.identity import Ref, key_of
from virt_steward.objects.ownership import owners
from virt_steward.plans.annotations import APPLIED_HASH, GOVERNED_BY
from virt_steward.plans.preimage import CONTROLLER_REVISION
from virt_steward.ssa.managers import ADVISOR
from virt_steward.ssa.release import is_disclaimed
from virt_steward_demo.local.controlplane import ControlPlane
from virt_steward_demo.simulation.faults import break_node, repair_node

FAULTS = ("advisor.undo.before", "advisor.undo.written", "advisor.undo.after")


async def applied(rig: AdvisorRig, **spec: Any) -> None:
    await rig.ask("Apply", **spec)
    assert await rig.reaches("Completed", within=30)


async def approve(rig: AdvisorRig) -> None:
    status = await rig.status()
    await rig.annotate(approved_plan=status.plan_hash, approved_by="ana", approval_comment="back to normal")


async def undone(rig: AdvisorRig) -> None:
    await rig.ask("Rollback")
    assert await rig.reaches("ReviewRequired", reason="RollbackReady", within=30)
    await approve(rig)
    assert await rig.reaches("Completed", within=60)


def managers_of(obj: Object) -> set[str]:
    return {owner.manager for owner in owners(obj)}


async def test_rollback_restores_and_deletes(rig: AdvisorRig, control_plane: ControlPlane, account: Account) -> None:
    before = await rig.client.create(a_descheduler())
    async with advising(control_plane, account):
        await applied(rig)
        assert await rig.has_psi()
        await rig.ask("Rollback")
        assert await rig.reaches("ReviewRequired", reason="RollbackReady")
        status = await rig.status()
        descheduler, psi = status.items
        assert (descheduler.name, psi.name) == ("configure-descheduler", "enable-psi-metrics"), "last in, first out"
        assert "+  deschedulingIntervalSeconds: 30\n" in descheduler.diff
        assert "-  - psi=1" in psi.diff
        assert psi.blast_radius
        assert psi.impact_severity == "High"
        assert await rig.has_psi(), "nothing happens before an approval"
        await rig.ask("Rollback", waitTimeout="1h")  # another generation is no approval
        assert await rig.reaches("ReviewRequired", reason="RollbackReady")
        await approve(rig)
        assert await rig.reaches("Completed", within=60)
        after = await rig.descheduler()
        assert after["spec"] == before["spec"]
        assert not {GOVERNED_BY, APPLIED_HASH} & (after["metadata"].get("annotations") or {}).keys()
        assert ADVISOR.name not in managers_of(after)
        assert not await rig.has_psi()
        status = await rig.status()
        assert status.governed == ()
        assert await rig.condition("Completed") == ("True", "RolledBack")
        assert await rig.condition("ProfileActive") == ("False", "RolledBack")
        assert [one.by for one in status.history] == ["ana", ""]


async def test_rollback_keeps_changes_of_others(rig: AdvisorRig, control_plane: ControlPlane, account: Account) -> None:
    await rig.client.create(a_descheduler())
    async with advising(control_plane, account):
        await applied(rig, options=no_reboots())
        await rig.client.merge_patch(DESCHEDULER, {"spec": {"deschedulingIntervalSeconds": 4242}}, manager="ben")
        await rig.ask("Rollback")
        assert await rig.reaches("ReviewRequired", reason="RollbackReady")
        [item] = (await rig.status()).items
        assert "spec.deschedulingIntervalSeconds" in item.message
        assert "4242" not in item.diff
        await approve(rig)
        assert await rig.reaches("Completed", within=30)
        spec = (await rig.descheduler())["spec"]
        assert (spec["deschedulingIntervalSeconds"], spec["mode"]) == (4242, "Predictive")


async def test_rollback_keeps_object_with_other_owners(
    rig: AdvisorRig, control_plane: ControlPlane, account: Account
) -> None:
    async with advising(control_plane, account):
        await applied(rig, options=no_reboots())
        await rig.client.merge_patch(DESCHEDULER, {"spec": {"logLevel": "Debug"}}, manager="ben")
        await undone(rig)
        after = await rig.descheduler()
        assert after["spec"]["logLevel"] == "Debug"
        assert ADVISOR.name not in managers_of(after)


async def test_pre_image_survives_config(rig: AdvisorRig, control_plane: ControlPlane, account: Account) -> None:
    before = await rig.client.create(a_descheduler())
    async with advising(control_plane, account):
        await applied(rig, options=no_reboots())
        first = (await rig.status()).pre_image
        await rig.client.merge_patch(DESCHEDULER, {"spec": {"mode": "Predictive"}}, manager="ben")
        assert await rig.reaches("Drifted")
        await rig.ask("DryRun")
        assert await rig.reaches("ReviewRequired")
        await applied(rig)
        assert (await rig.status()).pre_image != first
        records = await rig.client.list(CONTROLLER_REVISION, Selection(home_of(account)))
        assert first in {one["metadata"]["name"] for one in records}
        [oldest] = [one for one in records if one["metadata"]["name"] == first]
        assert oldest["data"]["items"][0]["before"]["spec.mode"] == before["spec"]["mode"]


async def test_rollback_of_several_plans_restores_original(
    rig: AdvisorRig, control_plane: ControlPlane, account: Account
) -> None:
    async with advising(control_plane, account):
        await applied(rig, options=no_reboots())
        await applied(rig, options=no_reboots(deschedulingIntervalSeconds=120))
        await undone(rig)
        assert not await rig.exists(DESCHEDULER), "the first plan had made it"
        assert (await rig.status()).governed == ()


async def test_rollback_of_deleted_object_has_nothing_to_do(
    rig: AdvisorRig, control_plane: ControlPlane, account: Account
) -> None:
    async with advising(control_plane, account):
        await applied(rig, options=no_reboots())
        await rig.client.delete(DESCHEDULER)
        assert await rig.reaches("Drifted")
        await rig.ask("Rollback")
        assert await rig.reaches("Completed", reason="RolledBack")
        assert (await rig.status()).governed == ()


async def test_new_rollback_waits_for_nodes(rig: AdvisorRig, control_plane: ControlPlane, account: Account) -> None:
    async with advising(control_plane, account):
        await applied(rig)
        await break_node(rig.client, "worker-0", "the disk is full")
        await rig.ask("Rollback")
        assert await rig.reaches("ReviewRequired", reason="RollbackReady")
        await approve(rig)
        assert await rig.says("enable-psi-metrics", "'worker' is degraded")
        assert not await rig.has_psi()
        await rig.ask("Ignore")
        assert await rig.reaches("Ignored")
        await rig.ask("Rollback")
        assert await rig.reaches("ReviewRequired", reason="RollbackReady")
        assert (await rig.item("enable-psi-metrics")).state == "InProgress"
        await repair_node(rig.client, "worker-0")
        assert await rig.reaches("Completed", reason="RolledBack")


async def test_rollback_without_record_is_rejected(
    rig: AdvisorRig, control_plane: ControlPlane, account: Account
) -> None:
    for record in await rig.client.list(CONTROLLER_REVISION, Selection(home_of(account))):
        await rig.client.delete(Ref(CONTROLLER_REVISION, key_of(record)))
    async with advising(control_plane, account):
        await rig.ask("Rollback", options=no_reboots())
        assert await rig.reaches("Failed")
        assert "no record of an executed plan exists" in await rig.message("Failed")


@pytest.mark.parametrize("fault", FAULTS)
async def test_rollback_survives_kill(rig: AdvisorRig, start: Start, fault: str) -> None:
    before = await rig.client.create(a_descheduler())
    with start() as process:
        await applied(rig, options=no_reboots())
        await rig.ask("Rollback")
        assert await rig.reaches("ReviewRequired", reason="RollbackReady", within=30)
    assert not process.alive
    await approve(rig)
    with start(fault=f"{fault}:kill") as cut:
        assert await eventually(lambda: cut.was_killed, within=30)
    with start():
        assert await rig.reaches("Completed", within=60)
    after = await rig.descheduler()
    assert after["spec"] == before["spec"]
    assert ADVISOR.name not in managers_of(after)
    assert is_disclaimed(after)
    assert await rig.exists(PSI) is False
