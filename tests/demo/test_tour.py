"""A story is told only as far as it is true."""

import io
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from rich.console import Console

from tests.console.objects import a_review, an_item, define_all, no_config, put_config, the_config
from tests.eventually import soon
from virt_steward.controllers import NAMES
from virt_steward.controllers.advisor.profiles.load_aware_rebalancing import DESCHEDULER
from virt_steward.kube.client import Client, Object
from virt_steward_demo.local.binaries import Binaries
from virt_steward_demo.simulation.background import in_background
from virt_steward_demo.simulation.install import make_namespace
from virt_steward_demo.simulation.platform import PlatformShape, SimulatedPlatform
from virt_steward_demo.tour.members import DemoFleet
from virt_steward_demo.tour.narrator import CheckFailed, Narrator
from virt_steward_demo.tour.stage import DemoCluster
from virt_steward_demo.tour.stories.advisor import BY_HAND, PLANNED, advisor


@pytest.fixture
async def stage(admin: Client, tmp_path: Path) -> AsyncIterator[DemoCluster]:
    """One on which nobody plays yet: profiles are on offer, and that is all."""
    await define_all(admin)
    await make_namespace(admin, DESCHEDULER.key.namespace)
    await put_config(admin, {"phase": "Ignored"}, action="Ignore")
    yield DemoCluster(
        admin, SimulatedPlatform(admin, PlatformShape()), DemoFleet(Binaries(tmp_path), tmp_path, ()), NAMES
    )
    await no_config(admin)
    await admin.delete(DESCHEDULER)


@dataclass(frozen=True, slots=True)
class Advisor:
    """Says what an advisor says, and does more than it says."""

    client: Client
    is_hasty: bool = False
    """Applies what nobody has approved."""
    fights: bool = False
    """Undoes what somebody did by hand."""

    async def run(self) -> None:
        await self._when(lambda: self._is_asked_for("DryRun"))
        if self.is_hasty:
            await self._set_descheduler()
        await self._says("ReviewRequired", action="DryRun")
        await self._when(lambda: self._is_asked_for("Apply"))
        await self._says("Completed", action="Apply")
        await self._when(self._is_changed_by_hand)
        if self.fights:
            await self._set_descheduler()
        await self._says("Drifted", action="Apply")

    async def _when(self, holds: Callable[[], Awaitable[bool]]) -> None:
        assert await soon(holds, within=60)

    async def _says(self, phase: str, action: str) -> None:
        rolling: Object = {"message": "Updated: 1/3, Ready: 1/3", "blastRadius": {"message": "3 nodes reboot"}}
        plan = a_review(an_item("enable-psi-metrics", **rolling), an_item("configure-descheduler"))
        await put_config(self.client, {**plan, "phase": phase}, action=action)

    async def _set_descheduler(self) -> None:
        patch = {"spec": {"deschedulingIntervalSeconds": PLANNED}}
        await self.client.merge_patch(DESCHEDULER, patch, manager="advisor")

    async def _is_asked_for(self, action: str) -> bool:
        return bool((await self.client.get(the_config()))["spec"]["action"] == action)

    async def _is_changed_by_hand(self) -> bool:
        return bool((await self.client.get(DESCHEDULER))["spec"]["deschedulingIntervalSeconds"] == BY_HAND)


@pytest.mark.parametrize(
    ("fault", "untrue"),
    [
        pytest.param({"is_hasty": True}, "the plan waits for review; nothing has changed", id="applies-a-mere-plan"),
        pytest.param({"fights": True}, "that is told, and not fought", id="fights-drift"),
    ],
)
async def test_the_story_does_not_come_true_of_an_advisor_that(
    stage: DemoCluster, fault: dict[str, bool], untrue: str
) -> None:
    tell = Narrator(Console(file=io.StringIO()), patience=5)
    async with in_background(Advisor(stage.client, **fault)):
        with pytest.raises(CheckFailed, match=f"it is still not so: {untrue}"):
            await advisor(stage, tell)
