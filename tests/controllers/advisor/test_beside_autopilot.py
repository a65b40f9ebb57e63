"""Both controllers on one object: what a plan has set stays so, until somebody takes it back."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.audit import AuditLog
from tests.controllers.advisor.rig import AdvisorRig, a_descheduler, advising, no_reboots
from tests.controllers.autopilot.everything import options_for
from tests.controllers.autopilot.pair import BOTH, activate_two, becomes, is_corrected
from tests.controllers.autopilot.rig import AutopilotRig, an_autopilots_account, at_work
from tests.eventually import eventually
from tests.grants import Account
from virt_steward.catalog.load import load
from virt_steward.controllers.advisor.profiles.load_aware_rebalancing import DESCHEDULER
from virt_steward.plans.annotations import GOVERNED_BY
from virt_steward_demo.local.controlplane import ControlPlane
from virt_steward_demo.simulation.platform import SimulatedPlatform


@pytest.fixture
async def autopilot(
    rig: AdvisorRig, platform: SimulatedPlatform, control_plane: ControlPlane, audit_log: AuditLog, tmp_path: Path
) -> AsyncIterator[AutopilotRig]:
    """Looks after the descheduler."""
    catalog = load()
    account = await an_autopilots_account(rig.client, catalog)
    other = AutopilotRig(rig.client, platform, catalog, account, options_for(catalog), audit_log.mark())
    async with at_work(other, control_plane, tmp_path):
        await activate_two(other)
        yield other
    await other.clear()


@pytest.fixture
async def later_autopilot(
    rig: AdvisorRig, platform: SimulatedPlatform, control_plane: ControlPlane, audit_log: AuditLog, tmp_path: Path
) -> AsyncIterator[AutopilotRig]:
    """Is not turned on yet."""
    catalog = load()
    account = await an_autopilots_account(rig.client, catalog)
    other = AutopilotRig(rig.client, platform, catalog, account, options_for(catalog), audit_log.mark())
    async with at_work(other, control_plane, tmp_path):
        yield other
    await other.clear()


async def test_rollback_beside_autopilot_plans_what_was_there(
    rig: AdvisorRig, later_autopilot: AutopilotRig, control_plane: ControlPlane, account: Account
) -> None:
    """Two plans, a change in between, and the autopilot turned on: the values are of one moment, and all is said."""
    before = (await rig.client.create(a_descheduler()))["spec"]
    async with advising(control_plane, account):
        await rig.ask("Apply", options=no_reboots(deschedulingIntervalSeconds=1234))
        assert await rig.reaches("Completed", within=30)
        await later_autopilot.activate(BOTH)
        await is_corrected(later_autopilot)
        await rig.client.merge_patch(DESCHEDULER, {"spec": {"deschedulingIntervalSeconds": 55}}, manager="ben")
        assert await rig.reaches("Drifted")
        await rig.ask("DryRun", options=no_reboots(deschedulingIntervalSeconds=777))
        assert await rig.reaches("ReviewRequired")
        await rig.ask("Apply")
        assert await rig.reaches("Completed", within=30)

        await rig.ask("Rollback")
        assert await rig.reaches("ReviewRequired", reason="RollbackReady")
        status = await rig.status()
        [item] = status.items
        assert item.desired_state["spec"] == {name: before[name] for name in item.desired_state["spec"]}
        assert "spec.deschedulingIntervalSeconds (was 55)" in item.message
        assert "the autopilot is on" in item.message

        await rig.annotate(approved_plan=status.plan_hash, approved_by="ana", approval_comment="as before")
        assert await rig.reaches("Completed", within=60)
        assert await becomes(later_autopilot, mode="Automatic", deschedulingIntervalSeconds=60), "as the plan said"


async def interval(rig: AdvisorRig) -> int:
    return int((await rig.descheduler())["spec"]["deschedulingIntervalSeconds"])


async def test_autopilot_does_not_write_governed_fields(
    rig: AdvisorRig, autopilot: AutopilotRig, control_plane: ControlPlane, account: Account
) -> None:
    usual = await interval(rig)
    async with advising(control_plane, account):
        await rig.ask("DryRun", options=no_reboots(deschedulingIntervalSeconds=1234))
        assert await rig.reaches("ReviewRequired")
        item = await rig.item("configure-descheduler")
        assert "virt-platform-autopilot" in {one.manager for one in item.takes}
        await rig.ask("Apply")
        assert await rig.reaches("Completed")
        await is_corrected(autopilot)  # so it has looked
        assert await interval(rig) == 1234
        assert (await rig.status()).phase == "Completed"

        await rig.ask("Ignore")
        assert await rig.reaches("Ignored")
        await rig.client.merge_patch(DESCHEDULER, {"spec": {"deschedulingIntervalSeconds": 4321}}, manager="editor")
        await is_corrected(autopilot)  # so it has looked
        assert await interval(rig) == 4321

        await rig.client.merge_patch(DESCHEDULER, {"metadata": {"annotations": {GOVERNED_BY: None}}})

        async def is_taken_back() -> bool:
            return await interval(rig) == usual

        assert await eventually(is_taken_back, within=20)
