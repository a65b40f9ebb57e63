"""The advisor killed at every step of a plan, watched through a whole run, and measured."""

import asyncio
import statistics
import time

import pytest

from tests.controllers.advisor.conftest import account, asked, platform, rig, shape, start  # noqa: F401 - fixtures
from tests.controllers.advisor.process import DRAFTING, EXECUTION, Asked, Start, runs_through_a_kill
from tests.controllers.advisor.rig import AdvisorRig, a_descheduler, advising, observing, true_phases
from tests.eventually import eventually
from tests.grants import Account
from virt_steward.kube.client import Client
from virt_steward_demo.local.controlplane import ControlPlane
from virt_steward_demo.simulation.faults import set_pace

OBSERVATIONS = 400
ROUNDS = 40
AT_MOST = 12
"""Times a bare dry run."""


@pytest.mark.parametrize("point", [*DRAFTING, *EXECUTION])
async def test_advisor_applies_once_when_killed_at_fault_point(
    rig: AdvisorRig,  # noqa: F811 - fixtures are named as what they give
    start: Start,  # noqa: F811
    asked: Asked,  # noqa: F811
    point: str,
) -> None:
    await runs_through_a_kill(rig, start, asked, point)


async def test_advisor_status_always_has_one_true_phase(
    rig: AdvisorRig,  # noqa: F811
    control_plane: ControlPlane,
    account: Account,  # noqa: F811
) -> None:
    await set_pace(rig.client, "worker", 1.0)
    seen = []
    async with advising(control_plane, account):
        await rig.ask("DryRun")
        assert await rig.reaches("ReviewRequired")
        await rig.ask("Apply")
        while len(seen) < OBSERVATIONS or seen[-1].phase != "Completed":
            seen.append(await rig.status())
    assert {true_phases(status) == [status.phase] for status in seen} == {True}
    assert {status.phase for status in seen} >= {"InProgress", "Completed"}
    print(f"status updates observed during one run: {len(seen)}")


async def test_advisor_plans_within_a_few_bare_requests(
    rig: AdvisorRig,  # noqa: F811
    control_plane: ControlPlane,
    account: Account,  # noqa: F811
) -> None:
    plans, bare = [], []
    async with advising(control_plane, account), observing(rig.client) as seen:
        await rig.ask("Ignore")
        assert await eventually(lambda: bool(seen) and seen[-1].phase == "Ignored")
        for _ in range(ROUNDS):
            bare.append(await a_bare_dry_run(rig.client))
            await rig.ask("DryRun")
            begin = time.perf_counter()
            while seen[-1].phase != "ReviewRequired":  # noqa: ASYNC110 - finer than `soon`, as it is measured
                await asyncio.sleep(0.001)
            plans.append(time.perf_counter() - begin)
            await rig.ask("Ignore")
            assert await eventually(lambda: seen[-1].phase == "Ignored")
    ratio = statistics.median(plans) / statistics.median(bare)
    print(f"time of a plan: {ratio:.1f} times a bare dry run ({statistics.median(bare) * 1000:.1f} ms)")
    assert ratio <= AT_MOST


async def a_bare_dry_run(client: Client) -> float:
    begin = time.perf_counter()
    await client.apply(a_descheduler(), manager="bare", dry_run=True)
    return time.perf_counter() - begin
