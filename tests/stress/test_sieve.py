"""Sieve's three: after every kind of write, stop; see the state before it again; or see none of the states between.

The kinds of writes come from the audit log of an undisturbed run. The four controllers have different objects, so one
run disturbs one kind of write of each. What is right afterwards is what the checker says.
"""

import asyncio
import signal
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path

import pytest

from tests.chaos.faults import CONTROLLERS, REPLICAS, Fault, FaultList
from tests.chaos.gateway import Trap, Treatment
from tests.chaos.holds import Step
from tests.chaos.injection import newest_version
from tests.chaos.run import Outcome, run_work
from tests.chaos.site import Site, a_judged_control_plane, a_site
from tests.checker.history import History
from tests.checker.writes import is_effective
from virt_steward_demo.local.controlplane import ControlPlane

STEPS = (
    Step(0.0, "activate"),
    Step(0.1, "subscribe", 0),
    Step(0.3, "machine", 1, "east"),
    Step(0.4, "slow-plan", 2),
    Step(2.0, "drift-service", 3),
    Step(2.2, "drift-descheduler", 3),
    Step(2.8, "machine", 5),
    Step(3.0, "approve", 6),
    Step(3.2, "move-pin"),
    Step(4.5, "pods", 4),
    Step(6.5, "release"),
    Step(5.5, "options", 7),
    Step(6.0, "drift-alerts", 8),
)
HELD_BACK = 2.0
"""Seconds for which states stay hidden, or old."""
FAULTS = (Fault(2.5, "silent", "west", 5.0), Fault(0.0, "stalled", "z-nobody", HELD_BACK))
"""A Machine has to wait, and says so. The second disturbs nobody: it says how old a view may be."""
METHODS = {"create": "POST", "patch": "PATCH", "delete": "DELETE"}
MODES = ("intermediate", "stale", "unobserved")
TRIES = 3
"""Runs for a kind of write that did not occur."""


@dataclass(frozen=True, slots=True, order=True)
class WriteKind:
    controller: str
    verb: str
    resource: str
    manager: str


def kinds_of(history: History, site: Site) -> list[WriteKind]:
    return sorted(
        {
            WriteKind(
                site.replicas[one.user].controller,
                one.verb,
                f"{one.ref.resource}/{one.subresource}" if one.subresource else one.ref.resource,
                one.manager,
            )
            for one in history.writes
            if one.user in site.replicas and is_effective(one)
        }
    )


@dataclass(slots=True)
class Perturbation:
    """What happens around one kind of write of one controller."""

    site: Site
    kind: WriteKind
    tasks: set[asyncio.Task[None]]
    _before: int = 0

    @property
    def _accounts(self) -> list[str]:
        return [f"{replica}-{self.kind.controller}" for replica in REPLICAS]

    @property
    def _treatments(self) -> list[Treatment]:
        return [self.site.gateway.treatments[name] for name in self._accounts]

    def trap(self, mode: str) -> Trap:
        before, after = {
            "intermediate": (self._nothing, self._restart),
            "stale": (self._remember, self._restart_in_the_past),
            "unobserved": (self._hide, self._nothing),
        }[mode]
        return Trap(METHODS[self.kind.verb], self.kind.resource, self.kind.manager, before, after)

    async def _nothing(self) -> None:
        pass

    async def _restart(self) -> None:
        for name in self._accounts:
            process = self.site.processes[name]
            process.signal(signal.SIGCONT)
            process.kill()
            process.start()

    async def _remember(self) -> None:
        self._before = await newest_version(self.site.client)

    async def _restart_in_the_past(self) -> None:
        for one in self._treatments:
            one.stale = str(self._before)
            one.flowing.clear()
        await self._restart()
        self._show_later()

    async def _hide(self) -> None:
        for one in self._treatments:
            one.coalesced = True
            one.flowing.clear()
        self._show_later()

    def _show_later(self) -> None:
        task = asyncio.create_task(self._show())
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)

    async def _show(self) -> None:
        await asyncio.sleep(HELD_BACK)
        for one in self._treatments:
            one.stale = ""
            one.flowing.set()


@pytest.fixture(scope="module")
def judged(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    with a_judged_control_plane(tmp_path_factory.mktemp("judged")) as started:
        yield started


@pytest.fixture
async def site(judged: ControlPlane, tmp_path: Path) -> AsyncIterator[Site]:
    async with a_site(judged, tmp_path) as started:
        yield started


async def run(site: Site, number: int, mode: str = "", *kinds: WriteKind) -> tuple[Outcome, list[WriteKind]]:
    """The work, disturbed or not, and which kinds of writes were disturbed."""
    tasks: set[asyncio.Task[None]] = set()
    traps = {kind.controller: Perturbation(site, kind, tasks).trap(mode) for kind in kinds}
    for name, treatment in site.gateway.treatments.items():
        treatment.trap = traps.get(name.partition("-")[2])
    outcome = await run_work(site, FaultList(number, FAULTS), STEPS, site.folder / f"{mode}-{number}")
    return outcome, [kind for kind in kinds if traps[kind.controller].sprung]


async def test_no_write_is_a_bad_moment_to_stop_or_to_look_away(site: Site) -> None:
    undisturbed, _ = await run(site, 1000)
    assert [str(one) for one in undisturbed.verdict.violations] == []
    kinds = kinds_of(undisturbed.history, site)
    by_controller = [[one for one in kinds if one.controller == name] for name in CONTROLLERS]
    print(
        f"\n{len(kinds)} kinds of writes: {', '.join(f'{one.controller} {one.verb} {one.resource}' for one in kinds)}"
    )
    left = [(mode, group) for mode in MODES for group in zip_longest(*by_controller)]
    disturbed: set[tuple[str, WriteKind]] = set()
    red: list[str] = []
    for attempt in range(TRIES):
        for number, (mode, group) in enumerate(left, start=1001 + 100 * attempt):
            outcome, sprung = await run(site, number, mode, *(one for one in group if one))
            disturbed |= {(mode, one) for one in sprung}
            red += [f"{mode} {group}: {one}" for one in outcome.verdict.violations]
            print(f"{mode}: {len(sprung)} writes perturbed; {outcome.report()}")
        left = [(mode, (one,)) for mode in MODES for one in kinds if (mode, one) not in disturbed]
    print(f"writes perturbed: {len(disturbed)} of {3 * len(kinds)}")
    assert red == []
    assert left == []
