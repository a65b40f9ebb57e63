"""How the figures grow with the size: the same loads in several sizes, Machines in floods, and many clusters.

Each size has a control plane of its own, so that nothing of the one before counts.
"""

import asyncio
import math
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from pathlib import Path
from random import Random
from statistics import median, quantiles
from time import perf_counter
from typing import Any

from tests.audit import AuditLog, Request
from tests.bench.bare import Bare
from tests.bench.compare import compare, cpu_of, memory_of, ours
from tests.bench.loads import NAMESPACE, Approvals, Corrections, Placements, Plans
from tests.clients import a_client
from tests.cluster import a_control_plane
from tests.eventually import eventually
from tests.proxy import FaultProxy
from virt_steward.controllers.placement.observation import CONFIG_ANNOTATION, MACHINE
from virt_steward.controllers.placement.options import SearchTimeouts
from virt_steward.controllers.placement.search import VIRTUAL_MACHINE
from virt_steward.kube.client import Client, Selection
from virt_steward.kube.connection import ConnectionPool
from virt_steward.objects.identity import Ref
from virt_steward_demo.local.controlplane import ControlPlane

BARE_SAMPLES = 50
FLOOD_SECONDS = 5
LATENCIES = (0.001, 0.1)
"""Seconds by which each chunk to and from a member is late, at least and at most."""
SEARCHES = 10

Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Curve:
    """Rows by size. Each names what one bare request took at the same size."""

    title: str
    unit: str
    sizes: Sequence[int]

    async def row(self, size: int, folder: Path) -> Row:
        raise NotImplementedError


@dataclass(frozen=True, slots=True)
class LoadCurve(Curve):
    """One of the loads in several sizes."""

    load: type[Approvals | Corrections | Plans]

    async def row(self, size: int, folder: Path) -> Row:
        with a_control_plane(folder) as control_plane:
            (found,) = await compare(control_plane, self.load, folder, size=size)
        return {
            "bare request ms": median(one for turn in found.reaction.rounds for one in turn.baseline),
            "median ms": found.reaction.median,
            "ratio": found.reaction.ratio,
            "p90 ms": found.reaction.p90,
            "requests": found.requests,
            "CPU ms": found.cpu,
            "start s": found.start,
            "MiB": found.memory,
            "peak MiB": found.peak,
        }


@dataclass(frozen=True, slots=True)
class FloodCurve(Curve):
    """Machines are created at a rate, whether or not they are placed in time."""

    async def row(self, size: int, folder: Path) -> Row:
        with a_control_plane(folder) as control_plane:
            async with a_placement(control_plane, folder, clusters=5) as scene:
                return await scene.flood(size)


@dataclass(frozen=True, slots=True)
class FleetCurve(Curve):
    """Members answer late, each by its own latency; a Machine is searched for on all of them."""

    async def row(self, size: int, folder: Path) -> Row:
        with a_control_plane(folder) as control_plane:
            async with a_placement(control_plane, folder, clusters=size, is_remote=True) as scene:
                return await scene.search()


@dataclass(frozen=True, slots=True)
class RunningPlacement:
    load: Placements
    bare: Bare
    audit_log: AuditLog
    pid: int
    slowest: float
    """Seconds that the slowest member takes for an answer."""
    start: float
    """Seconds from the start of the controller until the first Machine was placed."""
    start_cpu: float
    """Those of CPU."""

    @property
    def client(self) -> Client:
        return self.load.client

    async def flood(self, rate: int) -> Row:
        bare = await self._bare()
        mark, used = self.audit_log.mark(), cpu_of(self.pid)
        places = asyncio.Semaphore(ConnectionPool.REQUESTS.value)

        async def create() -> None:
            try:
                await self.load.provoke()
            finally:
                places.release()

        started = perf_counter()
        async with asyncio.TaskGroup() as creations:
            for number in range(rate * FLOOD_SECONDS):
                await asyncio.sleep(max(0.0, started + number / rate - perf_counter()))
                await places.acquire()  # one that waited for a connection would time out
                creations.create_task(create())
        created = perf_counter() - started
        total = rate * FLOOD_SECONDS
        assert await eventually(partial(self.has_placed, total + 1), within=600)
        requests = self.audit_log.since(mark)
        times = placement_times(requests)
        return {
            "bare request ms": bare * 1000,
            "created per s": total / created,
            "placed per s": total / (max(end for _, end in times) - min(begin for begin, _ in times)).total_seconds(),
            **self._row(requests, used),
        }

    async def search(self) -> Row:
        bare = await self._bare()
        mark, used = self.audit_log.mark(), cpu_of(self.pid)
        for _ in range(SEARCHES):
            machine = await self.load.provoke()
            assert await eventually(partial(is_placed, self.load, machine), within=120)
            await asyncio.sleep(SearchTimeouts().apart)  # else the next waits until lists may be sent again
        row = self._row(self.audit_log.since(mark), used)
        return {
            "bare request ms": bare * 1000,
            "slowest member ms": self.slowest * 1000,
            "start s": self.start,
            "start CPU s": self.start_cpu,
            **row,
        }

    def _row(self, requests: Sequence[Request], used: float) -> Row:
        times = placement_times(requests)
        delays = [(end - begin).total_seconds() * 1000 for begin, end in times]
        return {
            "median ms": median(delays),
            "p90 ms": quantiles(delays, n=10, method="inclusive")[-1],
            "lists of VMs": sum(one.resource == VIRTUAL_MACHINE.plural for one in requests) / len(times),
            "CPU ms": (cpu_of(self.pid) - used) * 1000 / len(times),
            "MiB": memory_of(self.pid),
            "peak MiB": memory_of(self.pid, "VmHWM:"),
        }

    async def has_placed(self, number: int) -> bool:
        """With the one that shows that the controller is ready. Not asked often: a list of thousands takes CPU."""
        await asyncio.sleep(0.5)
        found = await self.client.list(MACHINE, Selection(NAMESPACE))
        return sum(CONFIG_ANNOTATION in one["metadata"].get("annotations", {}) for one in found) == number

    async def _bare(self) -> float:
        times = []
        for _ in range(BARE_SAMPLES):
            before = perf_counter()
            await self.bare.patch()
            times.append(perf_counter() - before)
        return median(times)


def placement_times(requests: Sequence[Request]) -> list[tuple[datetime, datetime]]:
    """When each Machine was created, and when it was placed, by the clock of the server."""
    machines = [one for one in requests if one.resource == MACHINE.plural and one.is_write and one.code < 300]
    created = {one.name: one.time for one in machines if one.verb == "create"}
    placed: dict[str, datetime] = {}
    for one in machines:
        if one.verb == "patch" and not one.subresource and one.name in created:
            placed.setdefault(one.name, one.time)
    return [(created[name], time) for name, time in placed.items()]


@asynccontextmanager
async def a_placement(
    control_plane: ControlPlane, folder: Path, *, clusters: int, is_remote: bool = False
) -> AsyncIterator[RunningPlacement]:
    async with a_client(control_plane) as client, AsyncExitStack() as stack:
        load = Placements(control_plane, client, stack, 0)
        account = await load.prepare()
        chance, latencies = Random(clusters), [0.0]
        for number in range(clusters):
            server = ""
            if is_remote:
                proxy = await stack.enter_async_context(FaultProxy(control_plane.port))
                latencies.append(math.exp(chance.uniform(*map(math.log, LATENCIES))))
                proxy.delay(latencies[-1])
                server = proxy.server
            await load.scene.join(f"c{number:03}", server=server)
        bare, audit_log = await Bare.on(client), AuditLog(control_plane.audit_log)
        first = await load.provoke()
        started = perf_counter()
        child = ours(load, account).child(folder, control_plane)
        try:
            assert await eventually(partial(is_placed, load, first), within=120)
            start = perf_counter() - started
            yield RunningPlacement(load, bare, audit_log, child.pid, 2 * max(latencies), start, cpu_of(child.pid))
        finally:
            child.stop(10)


async def is_placed(load: Placements, machine: Ref) -> bool:
    return load.is_done(await load.client.get(machine))


CURVES = {
    "plans": LoadCurve(
        "InstallPlans beside the one that waits", Approvals.unit, (10, 100, 1_000, 10_000, 100_000), Approvals
    ),
    "machines": FloodCurve("Machines created per second", "per second", (10, 30, 100, 300, 1_000)),
    "clusters": FleetCurve("clusters that are searched", "clusters", (1, 10, 50, 100, 200)),
    "assets": LoadCurve(
        "assets of the autopilot", Corrections.unit, (Corrections.usual_size, 100, 200, 500), Corrections
    ),
    "nodes": LoadCurve("nodes in the blast radius of a plan", Plans.unit, (10, 100, 1_000, 5_000), Plans),
}
