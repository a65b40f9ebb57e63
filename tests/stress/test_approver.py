"""The approver under kills and in crowds. STRESS_SCALE=0.1 tries the same with a tenth of everything."""

import asyncio
import os
import random
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import partial
from itertools import count
from pathlib import Path
from statistics import median
from time import perf_counter, process_time

import pytest

from tests.audit import AuditLog
from tests.bench.bare import Bare
from tests.clients import a_client
from tests.controllers.approver.builders import V1, V2
from tests.controllers.approver.lifecycle import Lifecycle, a_lifecycle, an_approver, at_once, status_of
from tests.controllers.approver.process import Process, a_process, an_installation, home_of
from tests.eventually import eventually
from tests.grants import Account
from tests.installplans import INSTALL_PLAN, sizes
from virt_steward.apis.installplanapprover import INSTALL_PLAN_APPROVER
from virt_steward.kube.client import Client, Object, Selection
from virt_steward.objects.identity import Key, Ref
from virt_steward_demo.local.controlplane import ControlPlane

SCALE = float(os.environ.get("STRESS_SCALE", "1"))
KILLS = int(50 * SCALE)
NAMESPACES = int(50 * SCALE)
PLANS = 10
"""In each namespace."""
CROWD = int(5_000 * SCALE)
TURNS = 60
IDLE = 20.0
BURSTS = 3
MOST_CPU = 2.6
"""CPU of 500 approvals with their status and events, as a multiple of the CPU of 500 bare patches."""
LONGEST_WALL = 3.0
"""The same for the time until the last approval. Of several bursts the best counts: others use the cores, too."""

_batches = count(1)


@dataclass(frozen=True, slots=True)
class Arena:
    """A cluster with OLM's kinds and ours, and the rights of the approver on it."""

    client: Client
    audit_log: AuditLog
    account: Account
    kubeconfig: Path

    def process(self) -> AbstractContextManager[Process]:
        return a_process(self.kubeconfig, home_of(self.account), measured=True)

    async def namespaces(self, number: int) -> list[Lifecycle]:
        batch = next(_batches)
        return [await a_lifecycle(self.client, f"stress-{batch}-{one}") for one in range(number)]

    async def approver(self, places: list[Lifecycle]) -> None:
        namespaces = [one.namespace for one in places]
        await an_approver(self.client, home_of(self.account), places[0].namespace, targetNamespaces=namespaces)

    async def has_counted(self, place: Lifecycle, number: int) -> bool:
        return bool((await self.status(place)).get("approvedCount", 0) == number)

    async def status(self, place: Lifecycle) -> Object:
        """Of the approver that is named after the first of its namespaces."""
        return await status_of(self.client, home_of(self.account), place.namespace)

    async def approved(self, places: list[Lifecycle]) -> dict[Key, bool]:
        """Every plan there, and whether it is approved."""
        plans = [plan for one in places for plan in await self.client.list(INSTALL_PLAN, Selection(one.namespace))]
        return {
            Key(plan["metadata"]["namespace"], plan["metadata"]["name"]): plan["spec"]["approved"] for plan in plans
        }


@pytest.fixture
async def arena(empty_cluster: ControlPlane, tmp_path: Path) -> AsyncIterator[Arena]:
    account = await an_installation(empty_cluster)
    kubeconfig = account.write_kubeconfig(tmp_path / "kubeconfig", empty_cluster)
    async with a_client(empty_cluster) as client:
        yield Arena(client, AuditLog(empty_cluster.audit_log), account, kubeconfig)


async def subscribe_to_all(place: Lifecycle) -> None:
    for number in range(PLANS):
        await place.subscribe(f"op-{number}", f"op-{number}.v1.0.0")


async def test_approver_counts_are_exact_after_50_kills(arena: Arena) -> None:
    rng = random.Random(4)
    places = await arena.namespaces(NAMESPACES)
    await at_once(partial(subscribe_to_all, place) for place in places)
    await at_once(partial(place.subscribe, "db", V1) for place in places)
    await arena.approver(places)
    wanted = [partial(place.offer, f"op-{number}.v1.0.0") for place in places for number in range(PLANS)]
    unwanted = [partial(place.offer, V2) for place in places]
    offers = wanted + unwanted
    rng.shuffle(offers)
    refused = set()

    async def offer(job: Callable[[], Awaitable[Key]]) -> None:
        plan = await job()
        if job in unwanted:
            refused.add(plan)

    for kill in range(KILLS):
        with arena.process() as process:
            assert await eventually(partial(process.said, "started"))
            burst = asyncio.create_task(at_once(partial(offer, job) for job in offers[kill::KILLS]))
            await asyncio.sleep(rng.uniform(0.0, 0.5))  # a kill at any moment is what is tried
            process.kill()
            await burst
    with arena.process():
        assert await eventually(partial(arena.has_counted, places[0], len(wanted)), within=60)
        await places[0].subscribe("last", "last.v1.0.0")
        offers.append(partial(places[0].offer, "last.v1.0.0"))
        await offers[-1]()
        assert await eventually(partial(arena.has_counted, places[0], len(wanted) + 1))  # nothing was counted meanwhile
    approved = await arena.approved(places)
    assert {plan for plan, yes in approved.items() if not yes} == refused
    assert len(approved) == len(offers)
    status = await arena.status(places[0])
    print(f"\n{KILLS} kills: approvedCount {status['approvedCount']}, pendingCount {status['pendingCount']}")
    assert status["pendingCount"] == len(refused)


async def test_approver_survives_windows_that_never_open(arena: Arena) -> None:
    tenant, other = await arena.namespaces(2)
    for place in (tenant, other):
        await place.subscribe("db", V1)
    days = iter(f"{minute} {hour} {day} 2 *" for day in (30, 31) for hour in range(24) for minute in range(60))
    crowd = {f"ann-{n}": [{"schedule": next(days), "duration": "1h"} for _ in range(20)] for n in range(100)}
    await at_once(
        partial(an_approver, arena.client, tenant.namespace, name, policy={"windows": windows})
        for name, windows in crowd.items()
    )
    await an_approver(arena.client, other.namespace, targetNamespaces=[other.namespace])

    async def all_say_so() -> bool:
        found = await arena.client.list(INSTALL_PLAN_APPROVER, Selection(tenant.namespace))
        said = [one.get("status", {}) for one in found]
        return all(
            one.get("pendingCount") == 3 and any(fact["reason"] == "NeverOpens" for fact in one["conditions"])
            for one in said
        )

    with a_process(arena.kubeconfig, home_of(arena.account), "--lease-duration=3", "--lease-retry=0.2") as process:
        assert await eventually(partial(process.said, "leading"))
        for _ in range(3):
            await tenant.offer(V1)
        plan = await other.offer(V1)
        assert await eventually(partial(other.is_approved, plan))
        assert await eventually(all_say_so, within=60)
        assert not process.said("no longer leading")
        blocked = [entry["seconds"] for entry in process.log() if entry["event"] == "event loop blocked"]
    print(f"\n{len(crowd)} approvers with windows that never open: event loop blocked {blocked}")


@dataclass(frozen=True, slots=True)
class Burst:
    """What it took to write all plans of some namespaces at once."""

    writes: int
    wall: float
    cpu: float

    def __str__(self) -> str:
        return f"{self.writes} at once: {self.wall:.2f} s, {self.cpu:.2f} s CPU"


async def test_approver_approves_500_plans_at_little_more_than_bare_patches(arena: Arena) -> None:
    bursts, bare = [], []
    for _ in range(BURSTS):
        places = await arena.namespaces(NAMESPACES)
        bursts.append(await a_burst(arena, places))
        bare.append(await bare_patches(arena, places))
    cpu = min(one.cpu for one in bursts) / min(one.cpu for one in bare)
    wall = min(one.wall for one in bursts) / min(one.wall for one in bare)
    for approvals, patches in zip(bursts, bare, strict=True):
        print(f"\napprovals: {approvals}; bare patches: {patches}", end="")
    print(f"\nratio of the best: wall {wall:.2f}, CPU {cpu:.2f}")
    assert [one.writes for one in bursts] == [NAMESPACES * PLANS] * BURSTS
    assert wall <= LONGEST_WALL
    assert cpu <= MOST_CPU


async def a_burst(arena: Arena, places: list[Lifecycle]) -> Burst:
    await at_once(partial(subscribe_to_all, place) for place in places)
    await at_once(partial(place.offer, f"op-{number}.v1.0.0") for place in places for number in range(PLANS))
    with arena.process() as process:
        assert await eventually(partial(process.said, "watch settled", kind="InstallPlanApprover.operators.bapu.cloud"))
        assert await eventually(partial(is_at_rest, process))
        used, mark = process.cpu, arena.audit_log.mark()
        await arena.approver(places)
        assert await eventually(partial(arena.has_counted, places[0], NAMESPACES * PLANS), within=60)
        requests = [one for one in arena.audit_log.since(mark) if one.resource.startswith("installplan")]
        began = next(one.time for one in requests if one.verb == "create")
        approvals = [one.time for one in requests if one.resource == "installplans" and one.verb == "patch"]
        assert await eventually(partial(is_at_rest, process))
        cpu = process.cpu - used
    return Burst(len(approvals), (max(approvals) - began).total_seconds(), cpu)


async def bare_patches(arena: Arena, places: list[Lifecycle]) -> Burst:
    """The baseline: as many patches of the same plans, by the same client, as many at a time."""
    plans = [Ref(INSTALL_PLAN, plan) for plan in await arena.approved(places)]
    patch = {"metadata": {"annotations": {"stress": "bare"}}}
    began, used = perf_counter(), process_time()
    await at_once(partial(arena.client.merge_patch, plan, patch, brief=True) for plan in plans)
    return Burst(len(plans), perf_counter() - began, process_time() - used)


async def is_at_rest(process: Process) -> bool:
    """Whether it uses no CPU for longer than it lets pass between two writes of a status."""
    used = process.cpu
    await asyncio.sleep(1.5)
    return process.cpu == used


async def test_approver_with_5000_plans_is_fast_and_small(arena: Arena) -> None:
    (place,) = await arena.namespaces(1)
    await arena.approver([place])
    bare = await Bare.on(arena.client)
    numbers = count()
    with arena.process() as process:
        assert await eventually(partial(process.said, "started"))
        await reactions(arena, place, bare, numbers)  # warm
        alone, patch = await reactions(arena, place, bare, numbers)
        crowd = await a_crowd(arena)
        assert await eventually(partial(is_at_rest, process), within=30)
        in_crowd, patch_in_crowd = await reactions(arena, place, bare, numbers)
        assert await eventually(partial(is_at_rest, process))
        rss, used, mark = process.rss, process.cpu, arena.audit_log.mark()
        await asyncio.sleep(IDLE)  # what is measured is that nothing happens
        asked = [one for one in arena.audit_log.since(mark) if one.user == arena.account.user]
        idle = process.cpu - used
    print(
        f"\nmedian latency of an approval: {alone * 1000:.1f} ms, of a bare PATCH: {patch * 1000:.1f} ms, "
        f"ratio {alone / patch:.2f}"
        f"\nthe same with {CROWD} plans ({crowd / 2**20:.0f} MiB): {in_crowd * 1000:.1f} ms, "
        f"bare PATCH {patch_in_crowd * 1000:.1f} ms, ratio {in_crowd / patch_in_crowd:.2f}"
        f"\nmemory: {rss:.1f} MiB RSS; idle for {IDLE:.0f} s: {len(asked)} requests, {idle:.2f} s CPU"
    )
    assert asked == []
    assert idle <= 0.1
    assert rss <= 60
    assert alone <= 2 * patch
    assert in_crowd / patch_in_crowd <= 1.2 * alone / patch


async def reactions(arena: Arena, place: Lifecycle, bare: Bare, numbers: Iterator[int]) -> tuple[float, float]:
    """Medians in seconds: from RequiresApproval to approved by the server's clock, and of a bare request in turns."""
    mark = arena.audit_log.mark()
    patches = []
    for _ in range(TURNS):
        csv = f"turn-{next(numbers)}.v1.0.0"
        await place.subscribe(csv.partition(".")[0], csv)
        plan = await place.plan(csv)
        await place.catch_up(plan, csv)
        await place.set_phase(plan, "RequiresApproval", csv)
        assert await eventually(partial(place.is_approved, plan))
        started = perf_counter()
        await bare.patch()
        patches.append(perf_counter() - started)
    requests = [one for one in arena.audit_log.since(mark) if (one.resource, one.verb) == ("installplans", "patch")]
    waiting = {one.name: one.time for one in requests if one.subresource == "status"}
    approved = {one.name: one.time for one in requests if not one.subresource}
    return median((approved[name] - waiting[name]).total_seconds() for name in waiting), median(patches)


async def a_crowd(arena: Arena) -> int:
    """Plans of all sizes that are done; gives their bytes."""
    places = await arena.namespaces(max(CROWD // 50, 1))
    all_sizes = list(sizes(CROWD, random.Random(1)))

    async def one(place: Lifecycle, size: int) -> None:
        plan = await place.plan(V1)
        await place.client.merge_patch(Ref(INSTALL_PLAN, plan), {"spec": {"approved": True}})
        await place.set_phase(plan, "Complete", V1, size=size)

    await at_once(partial(one, places[number % len(places)], size) for number, size in enumerate(all_sizes))
    return sum(all_sizes)
