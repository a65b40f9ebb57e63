"""Both controllers on one object: what a plan has set stays so, until somebody takes it back."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.audit import AuditLog
from tests.controllers.advisor.desk import Desk, advising, no_reboots
from tests.controllers.autopilot.cockpit import Cockpit, an_autopilots_account, at_work
from tests.controllers.autopilot.everything import options_for
from tests.controllers.autopilot.pair import engage_two, is_corrected
from tests.eventually import eventually
from tests.grants import Account
from virt_steward.catalog.load import load
from virt_steward.controllers.advisor.profiles.load_aware_rebalancing import DESCHEDULER
from virt_steward.plans.annotations import GOVERNED_BY
from virt_steward_demo.local.controlplane import ControlPlane
from virt_steward_demo.simulation.platform import SimulatedPlatform


@pytest.fixture
async def autopilot(
    desk: Desk, platform: SimulatedPlatform, control_plane: ControlPlane, audit_log: AuditLog, tmp_path: Path
) -> AsyncIterator[Cockpit]:
    """Looks after the descheduler."""
    catalog = load()
    account = await an_autopilots_account(desk.client, catalog)
    cockpit = Cockpit(desk.client, platform, catalog, account, options_for(catalog), audit_log.mark())
    async with at_work(cockpit, control_plane, tmp_path):
        await engage_two(cockpit)
        yield cockpit
    await cockpit.clear()


async def interval(desk: Desk) -> int:
    return int((await desk.descheduler())["spec"]["deschedulingIntervalSeconds"])


async def test_autopilot_does_not_write_governed_fields(
    desk: Desk, autopilot: Cockpit, control_plane: ControlPlane, account: Account
) -> None:
    usual = await interval(desk)
    async with advising(control_plane, account):
        await desk.ask("DryRun", options=no_reboots(deschedulingIntervalSeconds=1234))
        assert await desk.reaches("ReviewRequired")
        item = await desk.item("configure-descheduler")
        assert "virt-platform-autopilot" in {one.manager for one in item.takes}
        await desk.ask("Apply")
        assert await desk.reaches("Completed")
        await is_corrected(autopilot)  # so it has looked
        assert await interval(desk) == 1234
        assert (await desk.status()).phase == "Completed"

        await desk.ask("Ignore")
        assert await desk.reaches("Ignored")
        await desk.client.merge_patch(DESCHEDULER, {"spec": {"deschedulingIntervalSeconds": 4321}}, manager="editor")
        await is_corrected(autopilot)  # so it has looked
        assert await interval(desk) == 4321

        await desk.client.merge_patch(DESCHEDULER, {"metadata": {"annotations": {GOVERNED_BY: None}}})

        async def is_taken_back() -> bool:
            return await interval(desk) == usual

        assert await eventually(is_taken_back, within=20)
