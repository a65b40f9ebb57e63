"""One part of a soak: rounds of seeded work and mild faults on controllers that keep running, and what they held."""

import asyncio
import re
import time
from collections.abc import Callable
from contextlib import closing, nullcontext, suppress
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

import msgspec

from tests.chaos.faults import EVERYBODY, ON_MEMBERS, REPLICAS, Fault, FaultList, faults_of
from tests.chaos.run import SILENT, STARTS, have_leaders, run_round
from tests.chaos.site import NEEDED, Site
from tests.chaos.workload import ASSETS, steps_of
from tests.checker.history import AuditReader
from tests.eventually import eventually
from tests.soak.sampling import ALLOWED, SERIES, Ports, ProcessFailed, Sampler
from tests.soak.slope import Allowance, Sample, Trend, trend_of
from virt_steward.apis.installplanapprover import INSTALL_PLAN_APPROVER
from virt_steward.apis.virtplatformconfig import VIRT_PLATFORM_CONFIG
from virt_steward.kube.client import Client
from virt_steward.kube.errors import KubeError, NotFound
from virt_steward.objects.corekinds import CONFIG_MAP, NODE
from virt_steward.objects.corekinds import NAMESPACE as NAMESPACE_KIND
from virt_steward.objects.identity import Key, Ref
from virt_steward.plans.preimage import CONTROLLER_REVISION
from virt_steward_demo.simulation.kinds import STUBS

MILD = (
    *ON_MEMBERS,
    "latency",
    "lost-answers",
    "resets",
    "errors",
    "gone",
    "truncated",
    "duplicated",
    "stalled",
    "unobserved",
)
"""Faults that a process survives: what leaks, leaks where connections break and leaders change."""
LEASE_SECONDS = 15
"""As installations have it, so that on a busy machine nobody loses a Lease by chance."""
HANDOVER_EVERY = 10
ALL = f"{EVERYBODY}-{EVERYBODY}"
PEAKS = {
    2: (Fault(0.5, "resets", ALL), Fault(2.5, "resets", ALL)),
    3: (Fault(0.5, "gone", ALL, amount=10), Fault(0.5, "gone", "*-autopilot", amount=70), Fault(0.6, "resets", ALL)),
}
"""By the number of the round: faults of all watches at once, of which the autopilot has most."""
SEEDS = 10_000
"""Seeds of a part. Each round has another one, so that no name of an object occurs twice."""
KEPT_LEASES = 100
NEWEST = 10
UNTIL_GONE = 300.0
CLUSTER, OBJECTS = "cluster", "objects"
LOAD = Allowance(per_hour=60.0, noise=10.0)
"""Of objects in the cluster: growth there would be of the load, and not of the controllers."""
COUNTED = {
    CONFIG_MAP,
    CONTROLLER_REVISION,
    NAMESPACE_KIND,
    NODE,
    INSTALL_PLAN_APPROVER,
    VIRT_PLATFORM_CONFIG,
    *(ref.kind for ref in ASSETS.values()),
    *(stub.kind for stub in STUBS if stub.kind.name in NEEDED),
}
"""Not Events: no controller reads them, and the API server deletes them after an hour."""

Say = Callable[[str], None]


class Judgement(msgspec.Struct, frozen=True):
    """What is known of a quantity after a part."""

    who: str
    quantity: str
    trend: Trend
    samples: list[Sample]


class PartResult(msgspec.Struct, frozen=True):
    """What became of a part."""

    number: int
    minutes: float
    rounds: int
    writes: int
    problems: list[str]
    """What the checker found, processes that ended, and what was waited for in vain."""
    judgements: list[Judgement]

    @property
    def longest_gap(self) -> float:
        """Seconds between two samples at most; far above EVERY, the machine had no time for this."""
        gaps = (
            late.at - early.at for one in self.judgements if one.who != CLUSTER for early, late in pairwise(one.samples)
        )
        return max(gaps, default=0.0)

    @property
    def is_green(self) -> bool:
        return not self.problems and all(one.trend.verdict != "GROWS" for one in self.judgements)


@dataclass(slots=True)
class Part:
    site: Site
    number: int
    say: Say
    sampler: Sampler
    log: AuditReader
    rounds: int = 0
    writes: int = 0
    problems: list[str] = field(default_factory=list)

    async def run(self, seconds: float) -> PartResult:
        """Rounds until the time is up; the last one is finished."""
        try:
            async with asyncio.TaskGroup() as group:
                beside = [group.create_task(one) for one in (self.sampler.run(), self._report())]
                while self.elapsed < seconds:
                    await self._round(self.number * SEEDS + self.rounds)
                for task in beside:
                    task.cancel()
        except* (ProcessFailed, AssertionError, KubeError, TimeoutError) as failed:  # the next part may be better
            self.problems += [f"{type(one).__name__}: {one}" for one in failed.exceptions]
            self.say("\n".join(self.problems[-len(failed.exceptions) :]))
        result = self._result()
        self._explain(result)
        return result

    def _explain(self, result: PartResult) -> None:
        """Name the series that came last, if they grow."""
        for one in result.judgements:
            if one.quantity == SERIES and one.trend.verdict == "GROWS":
                newest = self.sampler.newest_series(one.who, NEWEST)
                self.say("\n  ".join((f"the last new series of {one.who}:", *newest)))

    @property
    def elapsed(self) -> float:
        return time.monotonic() - self.sampler.began

    def _result(self) -> PartResult:
        judgements = [
            Judgement(who, quantity, trend_of(samples, ALLOWED.get(quantity, LOAD)), samples)
            for (who, quantity), samples in self.sampler.samples.items()
        ]
        return PartResult(self.number, round(self.elapsed / 60, 1), self.rounds, self.writes, self.problems, judgements)

    async def _round(self, seed: int) -> None:
        self._forget_former_rounds()
        outcome = await run_round(
            self.site,
            self.log,
            FaultList(seed, mild_faults(seed, self.rounds)),
            steps_of(seed),
            processes=nullcontext(),
            silent=SILENT,
        )
        await _delete_namespaces(self.site.client, seed)
        self.sampler.note(CLUSTER, OBJECTS, await _count(self.site.client))
        self.rounds += 1
        self.writes += outcome.verdict.writes
        for violation in outcome.verdict.violations:
            self.problems.append(f"seed {seed}: {violation}")
            self.say(self.problems[-1])

    def _forget_former_rounds(self) -> None:
        """Keep only Leases: by them the checker knows who leads when a round begins."""
        self.log.history()
        leases = [one for one in self.log.entries if one.get("objectRef", {}).get("resource") == "leases"]
        self.log.entries[:] = leases[-KEPT_LEASES:]

    async def _report(self) -> None:
        """One line a minute."""
        while True:
            await asyncio.sleep(60)
            held: dict[str, list[str]] = {}
            for (who, _), samples in self.sampler.samples.items():
                held.setdefault(who, []).append(f"{samples[-1].value:g}")
            figures = ", ".join(f"{who} {'/'.join(values)}" for who, values in held.items())
            self.say(f"part {self.number}, {self.elapsed / 60:.0f} min, round {self.rounds}: {figures}")


def mild_faults(seed: int, number: int) -> tuple[Fault, ...]:
    """What takes most memory comes first, so that its peaks are in the warm-up: they are bounded, and are no growth.

    In the first two of ten rounds, one replica after the other loses its Leases, so that both lead. Then, once, all
    watches of all processes are opened at the same moment, and everything is listed again.
    """
    if (turn := number % HANDOVER_EVERY) < len(REPLICAS):
        return (Fault(0.5, "unleased", f"{REPLICAS[turn]}-{EVERYBODY}", LEASE_SECONDS + 2.0),)
    if number in PEAKS:
        return PEAKS[number]
    return tuple(one for one in faults_of(seed) if one.kind in MILD)


async def run_part(site: Site, number: int, seconds: float, folder: Path, say: Say) -> PartResult:
    ports = {name: Ports() for name in site.accounts}
    with closing(AuditReader(site.control_plane.audit_log)) as log:
        site.start_all(folder, options=lambda name: (*ports[name].options, f"--lease-duration={LEASE_SECONDS}"))
        try:
            assert await eventually(lambda: have_leaders(site), within=STARTS), "not every controller has a leader"
            pids = {name: one.pid for name, one in site.processes.items() if one.pid}
            return await Part(site, number, say, Sampler(site, ports, pids), log).run(seconds)
        finally:
            site.kill_all()
            await site.clear_leases()


async def _delete_namespaces(client: Client, seed: int) -> None:
    """Those of the people of this seed, with all that is in them."""
    pattern = re.compile(rf"[a-z]+-{seed}(-\d+)?")
    names = [one["metadata"]["name"] for one in await client.list(NAMESPACE_KIND)]
    ours = [name for name in names if pattern.fullmatch(name)]
    for name in ours:
        with suppress(NotFound):
            await client.delete(Ref(NAMESPACE_KIND, Key("", name)))

    async def are_gone() -> bool:
        return not {one["metadata"]["name"] for one in await client.list(NAMESPACE_KIND)} & {*ours}

    assert await eventually(are_gone, within=UNTIL_GONE), f"these namespaces are still there: {', '.join(ours)}"


async def _count(client: Client) -> int:
    return sum([len(await client.list(kind)) for kind in COUNTED])
