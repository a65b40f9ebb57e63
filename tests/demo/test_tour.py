"""The tour fails if a controller does not do what the tour says."""

import io
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from rich.console import Console

from tests.console.objects import a_review, an_item, define_all, no_config, put_config, the_config
from tests.eventually import eventually
from virt_steward.controllers import NAMES
from virt_steward.controllers.advisor.profiles.load_aware_rebalancing import DESCHEDULER
from virt_steward.kube.client import Client, Object
from virt_steward_demo.local.binaries import Binaries
from virt_steward_demo.simulation.control_loop import in_background
from virt_steward_demo.simulation.install import make_namespace
from virt_steward_demo.simulation.platform import PlatformShape, SimulatedPlatform
from virt_steward_demo.tour.environment import DemoCluster
from virt_steward_demo.tour.members import DemoFleet
from virt_steward_demo.tour.narrator import CheckFailed, Narrator
from virt_steward_demo.tour.walkthroughs.advisor import DRIFTED, PLANNED, advisor


@pytest.fixture
async def cluster(admin: Client, tmp_path: Path) -> AsyncIterator[DemoCluster]:
    """A cluster without controllers; the profiles are offered."""
    await define_all(admin)
    await make_namespace(admin, DESCHEDULER.key.namespace)
    await put_config(admin, {"phase": "Ignored"}, action="Ignore")
    yield DemoCluster(
        admin, SimulatedPlatform(admin, PlatformShape()), DemoFleet(Binaries(tmp_path), tmp_path, ()), NAMES
    )
    await no_config(admin)
    await admin.delete(DESCHEDULER)


@dataclass(frozen=True, slots=True)
class FaultyAdvisor:
    """Writes the status of an advisor, and does more than it reports."""

    client: Client
    applies_unapproved: bool = False
    """It applies a plan that is not approved."""
    reverts_drift: bool = False
    """It reverts a manual change."""

    async def run(self) -> None:
        await self._wait_until(lambda: self._is_requested("DryRun"))
        if self.applies_unapproved:
            await self._set_descheduler()
        await self._report("ReviewRequired", action="DryRun")
        await self._wait_until(lambda: self._is_requested("Apply"))
        await self._report("Completed", action="Apply")
        await self._wait_until(self._is_changed_manually)
        if self.reverts_drift:
            await self._set_descheduler()
        await self._report("Drifted", action="Apply")

    async def _wait_until(self, holds: Callable[[], Awaitable[bool]]) -> None:
        assert await eventually(holds, within=60)

    async def _report(self, phase: str, action: str) -> None:
        rolling: Object = {"message": "Updated: 1/3, Ready: 1/3", "blastRadius": {"message": "3 nodes reboot"}}
        plan = a_review(an_item("enable-psi-metrics", **rolling), an_item("configure-descheduler"))
        await put_config(self.client, {**plan, "phase": phase}, action=action)

    async def _set_descheduler(self) -> None:
        patch = {"spec": {"deschedulingIntervalSeconds": PLANNED}}
        await self.client.merge_patch(DESCHEDULER, patch, manager="advisor")

    async def _is_requested(self, action: str) -> bool:
        return bool((await self.client.get(the_config()))["spec"]["action"] == action)

    async def _is_changed_manually(self) -> bool:
        return bool((await self.client.get(DESCHEDULER))["spec"]["deschedulingIntervalSeconds"] == DRIFTED)


@pytest.mark.parametrize(
    ("fault", "check"),
    [
        pytest.param(
            {"applies_unapproved": True},
            "the plan is ready for review; nothing is applied",
            id="applies-unapproved-plan",
        ),
        pytest.param({"reverts_drift": True}, "the drift is reported and not reverted", id="reverts-drift"),
    ],
)
async def test_tour_fails_on_faulty_advisor(cluster: DemoCluster, fault: dict[str, bool], check: str) -> None:
    narrator = Narrator(Console(file=io.StringIO()), timeout=5)
    async with in_background(FaultyAdvisor(cluster.client, **fault)):
        with pytest.raises(CheckFailed, match=f"check failed: {check}"):
            await advisor(cluster, narrator)
