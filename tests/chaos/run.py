"""Runs a seed: work and faults for some seconds, then peace, and the verdict of the checker."""

import asyncio
import signal
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, closing
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

from tests.chaos.faults import CONTROLLERS, Fault, FaultList, staleness
from tests.chaos.holds import Step
from tests.chaos.injection import Injector
from tests.chaos.members import HONEST
from tests.chaos.site import UNNEEDED, Site
from tests.chaos.workload import ALERTS, ASSETS, SERVICE, Workload, steps_of
from tests.checker.approver import counts_are_exact
from tests.checker.check import ALWAYS, check
from tests.checker.facts import Facts, Verdict
from tests.checker.history import AuditReader, History, Interval
from tests.checker.history import Ref as Judged
from tests.checker.writes import LEASES, configs_converge
from tests.eventually import eventually
from virt_steward.apis.virtplatformconfig import VIRT_PLATFORM_CONFIG
from virt_steward.controllers.advisor.profiles.load_aware_rebalancing import DESCHEDULER
from virt_steward.controllers.approver.olm import INSTALL_PLAN, SUBSCRIPTION
from virt_steward.controllers.placement.observation import MACHINE
from virt_steward.kube.client import Client, Object, Selection
from virt_steward.kube.errors import KubeError, NotFound
from virt_steward.objects.identity import Key, Ref
from virt_steward.runtime.access import LEASE, NAMESPACE
from virt_steward_demo.simulation.platform import PlatformShape, SimulatedPlatform

SHAPE = PlatformShape(workers=2, pace=0.02, machines_per_worker=0, without=UNNEEDED)
SILENT = 3.0
"""Seconds without a write after which nothing more is expected."""
UNTIL_SILENT = 90.0
STARTS = 120.0
POLL = 0.5
KINDS = {
    f"{kind.plural}.{kind.group}".rstrip("."): kind
    for kind in (
        VIRT_PLATFORM_CONFIG,
        DESCHEDULER.kind,
        INSTALL_PLAN,
        SUBSCRIPTION,
        MACHINE,
        ASSETS[SERVICE].kind,
        ASSETS[ALERTS].kind,
    )
}
"""Of what is wanted, by resource."""
HEARTBEAT, STALL = 0.1, 0.4
VIEW = 2.0
"""Seconds by which a view may be old without any fault, on a busy machine."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a seed."""

    faults: FaultList
    verdict: Verdict
    history: History
    seconds: float

    @property
    def is_green(self) -> bool:
        return not self.verdict.violations

    def report(self) -> str:
        state = "green" if self.is_green else "RED"
        return (
            f"seed {self.faults.seed}: {state}, {len(self.faults.faults)} faults, {self.verdict.writes} writes,"
            f" {len(self.history.versions)} versions, {self.seconds:.1f} s"
        )


async def run_seed(site: Site, wanted: FaultList, folder: Path, mutation: str = "") -> Outcome:
    return await run_work(site, wanted, steps_of(wanted.seed), folder, mutation=mutation)


async def run_work(
    site: Site,
    wanted: FaultList,
    steps: tuple[Step, ...],
    folder: Path,
    *,
    mutation: str = "",
    silent: float = SILENT,
) -> Outcome:
    """Do some work beside some faults, with processes of its own."""
    with closing(AuditReader(site.control_plane.audit_log)) as log:
        return await run_round(
            site, log, wanted, steps, processes=_new_processes(site, folder, mutation), silent=silent
        )


async def run_round(
    site: Site,
    log: AuditReader,
    wanted: FaultList,
    steps: tuple[Step, ...],
    *,
    processes: AbstractAsyncContextManager[None],
    silent: float,
) -> Outcome:
    """Do some work beside some faults, until nothing was written for some seconds."""
    began = time.monotonic()
    site.journal.clear()
    injector, workload = Injector(site), Workload(site.client, wanted.seed, site.members, people=site.people)
    try:
        async with noting_stalls(injector.late), SimulatedPlatform(site.client, SHAPE):
            await workload.prepare()
            async with processes:
                await workload.run(Step(0.0, "plan"))
                await eventually(workload.is_planned, within=STARTS)  # most of the work is about a plan
                await _disturb(workload, injector, steps, wanted.faults)
                _heal(site)
                await workload.run(Step(0.0, "settle"))
                settled = partial(_settled, site, log, workload, injector, faults=wanted.faults, silent=silent)
                await settled()
                await workload.run(Step(0.0, "ask-in-vain"))
                facts = await settled()
                history = log.history(injector.lost)
    finally:
        await workload.clear()  # after the platform: an autopilot that still runs would create its assets again
    return Outcome(wanted, check(history, facts), history, time.monotonic() - began)


@asynccontextmanager
async def _new_processes(site: Site, folder: Path, mutation: str) -> AsyncIterator[None]:
    site.start_all(folder, mutation)
    try:
        assert await eventually(lambda: have_leaders(site), within=STARTS), "not every controller has a leader"
        yield
    finally:
        _heal(site)
        site.kill_all()
        await site.clear_leases()


async def have_leaders(site: Site) -> bool:
    try:
        leases = await site.client.list(LEASE, Selection(NAMESPACE))
    except KubeError:
        return False
    held = {one["metadata"]["name"] for one in leases if one["spec"].get("holderIdentity")}
    return held >= {f"virt-steward-{controller}" for controller in CONTROLLERS}


async def _disturb(workload: Workload, injector: Injector, steps: tuple[Step, ...], faults: tuple[Fault, ...]) -> None:
    """Everything at its time; a step or a fault that takes long delays no other."""

    async def later(at: float, action: Callable[[], Awaitable[None]]) -> None:
        await asyncio.sleep(at)
        await action()

    async with asyncio.TaskGroup() as group:
        for step in steps:
            group.create_task(later(step.at, partial(workload.run, step)))
        for fault in faults:
            group.create_task(later(fault.at, partial(injector.inject, fault)))


def _heal(site: Site) -> None:
    site.gateway.heal()
    for member in site.members.values():
        member.behaviour = HONEST
    for process in site.processes.values():
        process.signal(signal.SIGCONT)
        process.set_clock(0)
        if not process.alive:
            process.start()


async def _settled(
    site: Site, log: AuditReader, workload: Workload, injector: Injector, *, faults: tuple[Fault, ...], silent: float
) -> Facts:
    """Wait until everything is as wanted and silent, for UNTIL_SILENT at most; what is there then is judged."""
    facts = Facts(
        replicas=site.replicas,
        tolerance=VIEW + staleness(faults),
        members=tuple(site.members),
        wanted=tuple(workload.wanted.values()),
    )
    healed = datetime.now(UTC)
    deadline = healed + timedelta(seconds=UNTIL_SILENT)
    while datetime.now(UTC) < deadline:
        await asyncio.sleep(POLL)
        facts = replace(facts, answers=tuple(site.journal), outages=tuple(injector.late))
        history = log.history(injector.lost)
        facts = replace(facts, live=await _live(site.client, unknown(history, facts, faults)))
        if check(history, facts, ALWAYS).violations:
            break
        ours = (one for one in history.writes if one.user in facts.replicas and one.ref.resource != LEASES)
        last = max((one.answered for one in ours), default=healed)
        is_silent = datetime.now(UTC) - max(last, healed) > timedelta(seconds=silent)
        if is_silent and not any(configs_converge(history, facts)) and not any(counts_are_exact(history, facts)):
            break
    now = datetime.now(UTC)
    return replace(facts, quiet=Interval(now - timedelta(seconds=silent), now))


def unknown(history: History, facts: Facts, faults: tuple[Fault, ...]) -> set[Judged]:
    """What is wanted of objects that went with their CRD, or whose last write may have been executed or not."""
    vanished = {fault.target for fault in faults if fault.kind == "crd-vanishes"}
    return {one.ref for one in facts.wanted if one.ref in history.lost or one.ref.resource in vanished}


async def _live(client: Client, refs: Iterable[Judged]) -> dict[Judged, Object | None]:
    """Objects as they are."""
    found: dict[Judged, Object | None] = {}
    for one in refs:
        try:
            found[one] = await client.get(Ref(KINDS[one.resource], Key(one.namespace, one.name)))
        except NotFound:
            found[one] = None
    return found


@asynccontextmanager
async def noting_stalls(late: list[Interval]) -> AsyncIterator[None]:
    """Note when this process had no CPU: what the gateway had to forward then came late, as in a slow network."""

    async def watch() -> None:
        while True:
            before = datetime.now(UTC)
            await asyncio.sleep(HEARTBEAT)
            if (now := datetime.now(UTC)) - before > timedelta(seconds=HEARTBEAT + STALL):
                late.append(Interval(before, now))

    watching = asyncio.create_task(watch())
    try:
        yield
    finally:
        watching.cancel()
