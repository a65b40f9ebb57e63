"""Freezes and gates hold the next item back: on the API server, under the advisor's own rights."""

from tests.controllers.advisor.desk import Desk, advising, no_reboots
from tests.controllers.advisor.process import Asked
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


async def _is_observed(desk: Desk) -> bool:
    config = await desk.config()
    return bool(config["status"]["observedGeneration"] == config["metadata"]["generation"])


async def test_freeze_stops_running_plan_before_next_item_until_overridden(
    desk: Desk, control_plane: ControlPlane, account: Account
) -> None:
    await pause_pool(desk.client, "worker")
    now = SystemClock().utc()
    async with advising(control_plane, account):
        await desk.ask("Apply")
        assert await desk.says("enable-psi-metrics", "is paused")
        plan = (await desk.status()).plan_hash
        refused = await approve_plan(desk.client, desk.profile, plan, "urgent", now, OVERRIDE)
        assert refused == NotApproved(desk.profile, "the plan is already being executed")  # nothing is frozen
        async with frozen(desk.client, home_of(account), reason="holidays", to="2999-01-01T00:00:00Z"):
            await resume_pool(desk.client, "worker")
            assert await desk.reaches("InProgress", reason="Frozen")
            message = await desk.message("Frozen")
            assert "configure-descheduler does not start: frozen by ConfigMap" in message
            assert "until 2999-01-01T00:00:00Z (holidays)" in message
            assert [item.state for item in (await desk.status()).items] == ["Completed", "Pending"]
            assert not await desk.exists(DESCHEDULER)
            silent = await approve_plan(desk.client, desk.profile, plan, " ", now, OVERRIDE)
            assert silent == NotApproved(desk.profile, WITHOUT_COMMENT)
            approved = await approve_plan(desk.client, desk.profile, plan, "urgent", now, OVERRIDE)
            assert isinstance(approved, PlanApproved)
            assert await desk.reaches("Completed")
    status = await desk.status()
    assert status.approval
    assert status.approval.override_freeze
    assert (status.approval.override_freeze.by, status.approval.override_freeze.comment) == ("admin", "urgent")
    assert status.history[0].override_freeze == status.approval.override_freeze
    assert await desk.condition("Frozen") == ("False", "NotFrozen")


async def test_plan_goes_on_when_freeze_ends(desk: Desk, control_plane: ControlPlane, account: Account) -> None:
    async with advising(control_plane, account):
        async with frozen(desk.client, home_of(account), unitl="2999-01-01T00:00:00Z"):
            await desk.ask("Apply", options=no_reboots())
            assert await desk.reaches("InProgress", reason="Frozen")
            assert "unknown field `unitl`" in await desk.message("Frozen")
            assert not await desk.exists(DESCHEDULER)
        assert await desk.reaches("Completed")


async def test_closed_gate_holds_plan_and_open_one_costs_nothing_afterwards(
    desk: Desk, control_plane: ControlPlane, account: Account, asked: Asked
) -> None:
    async with advising(control_plane, account):
        await desk.ask("Apply", options=no_reboots(), gates=["pools", "polls"])
        assert await desk.reaches("InProgress", reason="GateClosed")
        assert "gate polls is closed: it is not defined" in await desk.message("WaitingForGates")
        assert not await desk.exists(DESCHEDULER)
        await desk.ask(gates=["pools"])
        assert await desk.reaches("Completed")
        assert await desk.condition("WaitingForGates") == ("False", "NotWaiting")
        lists = [one for one in asked() if (one.verb, one.resource) == ("list", "machineconfigpools")]
        assert 1 <= len(lists) <= 3
        before = len(asked())
        await desk.ask(gates=["pools", "cluster-operators"])  # a reconcile of a converged profile
        assert await eventually(lambda: _is_observed(desk))
        later = [one for one in asked()[before:] if one.verb == "list" and one.resource == "machineconfigpools"]
        assert later == []
    assert account.denied(asked()) == []
