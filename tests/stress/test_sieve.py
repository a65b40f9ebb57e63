"""Sieve's three: after every kind of write, stop; see the state before it again; or see none of the states between.

The kinds of writes come from the audit logs of two undisturbed runs, one of which has a KubeDescheduler before. The
four controllers have different objects, so one run disturbs some kinds of writes of each, the first write of every
kind. What is right afterwards is what the checker says.
"""

import asyncio
import signal
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from itertools import count, filterfalse
from pathlib import Path

import pytest

from tests.chaos.faults import CONTROLLERS, REPLICAS, Fault, FaultList
from tests.chaos.gateway import Trap, Treatment
from tests.chaos.holds import Step
from tests.chaos.injection import newest_version
from tests.chaos.run import Outcome, run_work
from tests.chaos.site import Site, a_judged_control_plane, a_site
from tests.chaos.workload import has_descheduler
from tests.checker.history import History
from tests.checker.writes import is_effective
from virt_steward_demo.local.controlplane import ControlPlane

STEPS = (
    Step(0.0, "activate"),
    Step(0.1, "subscribe", 0),
    Step(0.3, "machine", 1, "east"),
    Step(0.4, "slow-plan", 2),
    Step(0.5, "hold-approvals", choice="people"),
    Step(0.6, "approve", 6, "DryRun:ReviewRequired"),
    Step(1.5, "drift-alerts", 8),
    Step(2.0, "drift-service", 3),
    Step(2.8, "machine", 5),
    Step(3.0, "people-approve", 1),
    Step(3.2, "hold-approvals"),
    Step(4.0, "roll-back", choice="Apply:Completed"),
    Step(4.1, "approve", choice="Rollback:ReviewRequired"),
    Step(4.5, "pods", 4),
    Step(5.0, "opt-out"),
    Step(5.5, "move-pin"),
    Step(6.5, "release"),
    Step(7.0, "drift-descheduler", 3),
)
HELD_BACK = 2.0
"""Seconds for which states stay hidden, or old."""
FAULTS = (Fault(2.5, "silent", "west", 5.0), Fault(0.0, "stalled", "z-nobody", HELD_BACK))
"""A Machine has to wait, and says so. The second disturbs nobody: it says how old a view may be."""
METHODS = {"create": "POST", "patch": "PATCH", "delete": "DELETE"}
MODES = ("intermediate", "stale", "unobserved")
TRIES = 3
"""Rounds, for kinds of writes that did not occur."""
AT_ONCE = 2
"""Kinds of writes of each controller that one run disturbs."""


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
    traps = {kind: Perturbation(site, kind, tasks).trap(mode) for kind in kinds}
    for name, treatment in site.gateway.treatments.items():
        treatment.traps = tuple(trap for kind, trap in traps.items() if kind.controller == name.partition("-")[2])
    outcome = await run_work(site, FaultList(number, FAULTS), STEPS, site.folder / f"{mode}-{number}")
    return outcome, [kind for kind, trap in traps.items() if trap.sprung]


def groups_of(kinds: list[WriteKind]) -> list[list[WriteKind]]:
    """What one run disturbs: AT_ONCE kinds of each controller, which are not beside each other in the list."""
    groups: list[list[WriteKind]] = []
    for controller in CONTROLLERS:
        own = [one for one in kinds if one.controller == controller]
        rounds = -(-len(own) // AT_ONCE)
        groups += [[] for _ in range(rounds - len(groups))]
        for number in range(rounds):
            groups[number] += own[number::rounds]
    return groups


async def test_no_write_is_a_bad_moment_to_stop_or_to_look_away(site: Site) -> None:
    numbers = {True: filter(has_descheduler, count(1000)), False: filterfalse(has_descheduler, count(1000))}
    kinds: dict[WriteKind, bool] = {}
    """Each with whether there is a KubeDescheduler before; not, where it makes no difference."""
    for given, seeds in numbers.items():
        undisturbed, _ = await run(site, next(seeds))
        assert [str(one) for one in undisturbed.verdict.violations] == []
        kinds |= dict.fromkeys(kinds_of(undisturbed.history, site), given)
    print(
        f"\n{len(kinds)} kinds of writes: {', '.join(f'{one.controller} {one.verb} {one.resource}' for one in kinds)}"
    )
    left = {mode: list(kinds) for mode in MODES}
    red: list[str] = []
    for _ in range(TRIES):
        work = [
            (mode, given, group)
            for mode in MODES
            for given in numbers
            for group in groups_of([one for one in left[mode] if kinds[one] is given])
        ]
        for mode, given, group in work:
            outcome, sprung = await run(site, next(numbers[given]), mode, *group)
            left[mode] = [one for one in left[mode] if one not in sprung]
            red += [f"{mode} {sprung}: {one}" for one in outcome.verdict.violations]
            print(f"{mode}: {len(sprung)} writes perturbed; {outcome.report()}", *red[-3:], flush=True)
    print(f"writes perturbed: {len(MODES) * len(kinds) - sum(map(len, left.values()))} of {len(MODES) * len(kinds)}")
    assert red == []
    assert not any(left.values()), left
