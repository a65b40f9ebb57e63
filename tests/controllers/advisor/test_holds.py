"""Freezes and gates hold the next item back: on the API server, under the advisor's own rights."""

from tests.controllers.advisor.process import Asked
from tests.controllers.advisor.rig import AdvisorRig, advising, no_reboots
from tests.controllers.approver.process import home_of
from tests.eventually import eventually
from tests.freezes import frozen
from tests.grants import Account
from virt_steward.controllers.advisor.profiles.load_aware_rebalancing import DESCHEDULER
from virt_steward.decisions.freezes import WITHOUT_COMMENT, FreezeTerms
from virt_steward.decisions.outcomes import NotApproved
from virt_steward.decisions.plans import PlanApproved, approve_plan
from virt_steward.runtime.clock import SystemClock
from virt_steward_demo.local.controlplane import ControlPlane
from virt_steward_demo.simulation.faults import pause_pool, resume_pool

OVERRIDE = FreezeTerms(overrides=True)


async def _is_observed(rig: AdvisorRig) -> bool:
    config = await rig.config()
    return bool(config["status"]["observedGeneration"] == config["metadata"]["generation"])


async def test_freeze_stops_running_plan_before_next_item_until_overridden(
    rig: AdvisorRig, control_plane: ControlPlane, account: Account
) -> None:
    await pause_pool(rig.client, "worker")
    now = SystemClock().utc()
    async with advising(control_plane, account):
        await rig.ask("Apply")
        assert await rig.says("enable-psi-metrics", "is paused")
        plan = (await rig.status()).plan_hash
        refused = await approve_plan(rig.client, rig.profile, plan, "urgent", now, OVERRIDE)
        assert refused == NotApproved(rig.profile, "the plan is already being executed")  # nothing is frozen
        async with frozen(rig.client, home_of(account), reason="holidays", to="2999-01-01T00:00:00Z"):
            await resume_pool(rig.client, "worker")
            assert await rig.reaches("InProgress", reason="Frozen")
            message = await rig.message("Frozen")
            assert "configure-descheduler does not start: frozen by ConfigMap" in message
            assert "until 2999-01-01T00:00:00Z (holidays)" in message
            assert [item.state for item in (await rig.status()).items] == ["Completed", "Pending"]
            assert not await rig.exists(DESCHEDULER)
            silent = await approve_plan(rig.client, rig.profile, plan, " ", now, OVERRIDE)
            assert silent == NotApproved(rig.profile, WITHOUT_COMMENT)
            approved = await approve_plan(rig.client, rig.profile, plan, "urgent", now, OVERRIDE)
            assert isinstance(approved, PlanApproved)
            assert await rig.reaches("Completed")
    status = await rig.status()
    assert status.approval
    assert status.approval.override_freeze
    assert (status.approval.override_freeze.by, status.approval.override_freeze.comment) == ("admin", "urgent")
    assert status.history[0].override_freeze == status.approval.override_freeze
    assert await rig.condition("Frozen") == ("False", "NotFrozen")


async def test_plan_goes_on_when_freeze_ends(rig: AdvisorRig, control_plane: ControlPlane, account: Account) -> None:
    async with advising(control_plane, account):
        async with frozen(rig.client, home_of(account), unitl="2999-01-01T00:00:00Z"):
            await rig.ask("Apply", options=no_reboots())
            assert await rig.reaches("InProgress", reason="Frozen")
            assert "unknown field `unitl`" in await rig.message("Frozen")
            assert not await rig.exists(DESCHEDULER)
        assert await rig.reaches("Completed")


async def test_closed_gate_holds_plan_and_open_one_costs_nothing_afterwards(
    rig: AdvisorRig, control_plane: ControlPlane, account: Account, asked: Asked
) -> None:
    async with advising(control_plane, account):
        await rig.ask("Apply", options=no_reboots(), gates=["pools", "polls"])
        assert await rig.reaches("InProgress", reason="GateClosed")
        assert "gate polls is closed: it is not defined" in await rig.message("WaitingForGates")
        assert not await rig.exists(DESCHEDULER)
        await rig.ask(gates=["pools"])
        assert await rig.reaches("Completed")
        assert await rig.condition("WaitingForGates") == ("False", "NotWaiting")
        lists = [one for one in asked() if (one.verb, one.resource) == ("list", "machineconfigpools")]
        assert 1 <= len(lists) <= 3
        before = len(asked())
        await rig.ask(gates=["pools", "cluster-operators"])  # a reconcile of a converged profile
        assert await eventually(lambda: _is_observed(rig))
        later = [one for one in asked()[before:] if one.verb == "list" and one.resource == "machineconfigpools"]
        assert later == []
    assert account.denied(asked()) == []
