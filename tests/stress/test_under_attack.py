"""All attacks at once on one process with all controllers, within the limits of memory and open files that are shipped.

For ATTACK_SECONDS (300) there are windows that never open, patches that multiply, KubevirtConfigs with impossible
Secrets, hostile member clusters and silent connections, and their authors change them all the time. Meanwhile plans
are approved, Machines placed and changes planned, and the kubelet's probes are answered.
"""

import asyncio
import json
import os
import statistics
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from functools import partial
from itertools import count, cycle, pairwise
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.clients import a_client
from tests.controllers.advisor.conftest import NEEDED
from tests.controllers.advisor.rig import HCO, AdvisorRig
from tests.controllers.approver.builders import V1
from tests.controllers.approver.lifecycle import Lifecycle, a_lifecycle, an_approver, at_once, define_all
from tests.controllers.autopilot.pair import OTHER
from tests.controllers.placement.scene import Scene
from tests.eventually import eventually
from tests.fleet import a_secret
from tests.hostile import HostileMember, a_hostile_member
from tests.machines import a_config, any_reference_allowed
from tests.ports import a_free_port
from tests.stress.connections import (
    OPEN_FILES,
    all_answer,
    open_files_limit,
    probe,
)
from tests.stress.limits import open_files, peak, shipped_limit
from virt_steward.apis.installplanapprover import INSTALL_PLAN_APPROVER
from virt_steward.apis.virtplatformconfig import VIRT_PLATFORM_CONFIG_CRD
from virt_steward.catalog.load import load
from virt_steward.controllers.autopilot.annotation_keys import PATCH, SCOPE
from virt_steward.controllers.autopilot.watches import ref_of_asset
from virt_steward.kube.client import Client, Selection
from virt_steward.kube.events import EVENT
from virt_steward.objects.identity import Key, Ref
from virt_steward.runtime.access import LEASE
from virt_steward_demo.local.controlplane import ControlPlane
from virt_steward_demo.local.processes import Child
from virt_steward_demo.simulation.install import install
from virt_steward_demo.simulation.kinds import NAMES
from virt_steward_demo.simulation.platform import PlatformShape, SimulatedPlatform

SECONDS = float(os.environ.get("ATTACK_SECONDS", "300"))
QUIET_SECONDS = max(SECONDS / 10, 10.0)
HOME = "steward"
"""The namespace of the process, and with that a policy namespace."""
GOOD = "good"
SELECTOR = {"vitistack.io/cluster-selector": "trusted=yes"}
BAD_APPROVERS = 100
BAD_WINDOWS = 20
HOSTILE_MEMBERS = 3
SHAPE = PlatformShape(pace=0.02, without=tuple(name for name in NAMES if name not in NEEDED))
SLOWER = 2.0
"""Times the median latency without attacks, for each sort of work."""
BUSY = 0.5
"""Seconds by which work may be late in any case: attackers and API server share the machine with the process."""
DONE_WITHIN = 60.0
UNTIL_RESTART = 20.0
"""Seconds without an answer after which the kubelet may restart a pod: three probes, one every ten seconds."""
ROOT = Path(__file__).parents[2]


@dataclass(slots=True)
class Site:
    """A cluster with all that the four controllers look after, and the work that they are given."""

    client: Client
    scene: Scene
    team: Lifecycle
    """A team whose plans are approved."""
    tenant: Lifecycle
    """Who writes approvers with odd windows."""
    rig: AdvisorRig
    service: Ref
    """The object of an asset."""
    numbers: Iterator[int] = field(default_factory=count)

    async def approve(self) -> None:
        package = f"op{next(self.numbers)}"
        await self.team.subscribe(package, f"{package}.v1.0.0")
        plan = await self.team.offer(f"{package}.v1.0.0")
        assert await eventually(partial(self.team.is_approved, plan), within=DONE_WITHIN)

    async def place(self) -> None:
        name = f"m{next(self.numbers)}"
        await self.scene.machine(f"all-{name}")  # needs all clusters, so that the hostile ones are searched
        await self.scene.machine(name, annotations=SELECTOR)
        assert await eventually(partial(self.scene.is_on, name, GOOD), within=DONE_WITHIN)

    async def plan(self) -> None:
        for action, phase in (("Ignore", "Ignored"), ("DryRun", "ReviewRequired")):
            await self.rig.ask(action)
            assert await self.rig.reaches(phase, within=DONE_WITHIN)

    @property
    def work(self) -> dict[str, Callable[[], Awaitable[None]]]:
        return {"approval": self.approve, "placement": self.place, "plan": self.plan}

    async def refused_patches(self) -> int:
        return sum(
            one["reason"] == "InvalidPatch" for one in await self.client.list(EVENT, Selection(HCO.key.namespace))
        )

    async def leases(self) -> dict[str, tuple[str, int]]:
        """The holder of each, and how often it has changed."""
        found = await self.client.list(LEASE, Selection(HOME))
        specs = {one["metadata"]["name"]: one["spec"] for one in found}
        return {name: (spec.get("holderIdentity", ""), spec.get("leaseTransitions", 0)) for name, spec in specs.items()}


@pytest.fixture
async def site(empty_cluster: ControlPlane) -> AsyncIterator[Site]:
    async with a_client(empty_cluster) as client, SimulatedPlatform(client, SHAPE):
        await install(client, VIRT_PLATFORM_CONFIG_CRD.manifest())
        await define_all(client)
        for name in (HOME, "crowd"):
            await client.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
        scene = Scene(client, empty_cluster, "crowd", HOME)
        await scene.install_crds()
        await scene.join(GOOD, labels={"trusted": "yes"})
        team, tenant = await a_lifecycle(client, "team"), await a_lifecycle(client, "tenant")
        await an_approver(client, HOME, targetNamespaces=[team.namespace])
        asset = load().find(OTHER)
        assert asset
        await client.merge_patch(HCO, {"metadata": {"annotations": {SCOPE: OTHER}}}, manager="admin")
        yield Site(client, scene, team, tenant, AdvisorRig(client), ref_of_asset(asset, HCO.key))


@contextmanager
def a_limited_process(control_plane: ControlPlane, log: Path, **ports: int) -> Iterator[Child]:
    """All controllers and the console in one process, which may open as few files as in a container."""
    run = [sys.executable, "-m", "virt_steward", "run", "--log-format=json"]
    run += [f"--kubeconfig={control_plane.kubeconfig}", f"--namespace={HOME}", "--debug-bind-address=0"]
    run += [f"--{server.replace('_', '-')}-bind-address=127.0.0.1:{port}" for server, port in ports.items()]
    child = Child(["/bin/sh", "-c", f'ulimit -n {OPEN_FILES}; exec "$@"', "sh", *run], log=log)
    try:
        yield child
    finally:
        child.kill()


async def test_process_works_on_under_all_attacks(site: Site, empty_cluster: ControlPlane, tmp_path: Path) -> None:
    ports = {server: a_free_port() for server in ("health_probe", "metrics", "console")}
    probes = {
        f"http://127.0.0.1:{ports['health_probe']}/healthz": 200,
        f"http://127.0.0.1:{ports['health_probe']}/readyz": 200,
        f"http://127.0.0.1:{ports['metrics']}/metrics": 200,
        f"http://127.0.0.1:{ports['console']}/sign-in": 200,
    }
    with (
        a_hostile_member(empty_cluster) as hostile,
        a_limited_process(empty_cluster, tmp_path / "run.log", **ports) as process,
    ):
        assert await eventually(lambda: all_answer(probes), within=60), process.last_output()
        assert open_files_limit(process.pid) == OPEN_FILES
        hostile.prepare()
        for job in site.work.values():
            await job()  # the first of each sort is slower
        quiet = await observed(site, process, probes, QUIET_SECONDS)
        leases = await site.leases()
        async with attacks(site, hostile, [*ports.values()], tmp_path / "silent.txt"):
            beside = await observed(site, process, probes, SECONDS)
        report(quiet, beside, process, hostile)
        assert await site.leases() == leases, "no lease was lost, not even for a moment"
        assert [one for one in log_of(process) if one["event"] == "no longer leading"] == []
        assert await site.refused_patches() > 0
        check(quiet, beside)


@dataclass(slots=True)
class Measured:
    """What was measured for a while."""

    latencies: dict[str, list[float]]
    probes: dict[str, list[tuple[float, bool]]]
    """When each was answered or not."""
    peak: float = 0.0
    files: int = 0


async def observed(site: Site, process: Child, probes: dict[str, int], seconds: float) -> Measured:
    """Give it work of each sort, one after the other, and look at the process beside that."""
    found = Measured({name: [] for name in site.work}, {url: [] for url in probes})
    end = time.monotonic() + seconds

    async def work(job: Callable[[], Awaitable[None]], latencies: list[float]) -> None:
        while time.monotonic() < end:
            began = time.monotonic()
            await job()
            latencies.append(time.monotonic() - began)
            await asyncio.sleep(0.2)

    async with asyncio.TaskGroup() as group:
        for name, job in site.work.items():
            group.create_task(work(job, found.latencies[name]))
        while time.monotonic() < end:
            assert process.alive, process.last_output()
            for url, status in probes.items():
                answer = await probe(url)
                found.probes[url].append((time.monotonic(), answer == status))
            found.files = max(found.files, open_files(process.pid))
            found.peak = peak(process.pid)
            await asyncio.sleep(0.5)
    return found


@asynccontextmanager
async def attacks(site: Site, hostile: HostileMember, ports: list[int], log: Path) -> AsyncIterator[None]:
    async with any_reference_allowed(site.client):
        await site.client.create(a_config("impossible", Key(HOME, "a=b")))
    await site.client.create(a_secret(HOME, "garbage", "{[" * 1000))
    await site.client.create(a_config("garbage", Key(HOME, "garbage")))
    await site.scene.join(*(f"hostile{number}" for number in range(HOSTILE_MEMBERS)), server=hostile.server)
    silent = Child([sys.executable, "-m", "tests.stress.connections", *map(str, ports)], log=log, cwd=ROOT)
    try:
        async with asyncio.TaskGroup() as group:
            running = [group.create_task(odd_windows(site)), group.create_task(odd_patches(site))]
            yield
            for one in running:
                one.cancel()
        assert silent.alive, silent.last_output()
    finally:
        silent.kill()


async def odd_windows(site: Site) -> None:
    """Many windows that never open; after a while, one approver after the other gets new ones."""
    days = cycle(f"{minute} {hour} {day} 2 *" for day in (30, 31) for hour in range(24) for minute in range(60))

    def windows() -> dict[str, Any]:
        return {"windows": [{"schedule": next(days), "duration": "1h"} for _ in range(BAD_WINDOWS)]}

    await site.tenant.subscribe("db", V1)
    for _ in range(3):
        await site.tenant.offer(V1)
    names = [f"odd-{number}" for number in range(BAD_APPROVERS)]
    await at_once(partial(an_approver, site.client, site.tenant.namespace, name, policy=windows()) for name in names)
    while True:
        for name in names:
            approver = Ref(INSTALL_PLAN_APPROVER, Key(site.tenant.namespace, name))
            await site.client.merge_patch(approver, {"spec": {"policy": windows()}})
            await asyncio.sleep(1)


async def odd_patches(site: Site) -> None:
    """A patch that copies a large map again and again, each time another text."""
    copies = [{"op": "copy", "from": "/spec/large", "path": f"/spec/copy{number}"} for number in range(499)]
    for number in count():
        large = {f"key{number}-{one}": "value" for one in range(1000)}
        bomb = json.dumps([{"op": "add", "path": "/spec/large", "value": large}, *copies])
        await site.client.merge_patch(site.service, {"metadata": {"annotations": {PATCH: bomb}}}, manager="admin")
        await asyncio.sleep(1)


def longest_outage(probes: list[tuple[float, bool]]) -> float:
    """Seconds between two answers."""
    answered = [probes[0][0], *(when for when, was_answered in probes if was_answered), probes[-1][0]]
    return max(later - earlier for earlier, later in pairwise(answered))


def log_of(process: Child) -> list[dict[str, Any]]:
    return [msgspec.json.decode(line) for line in process.log.read_bytes().split(b"\n")[:-1] if line.startswith(b"{")]


def report(quiet: Measured, beside: Measured, process: Child, hostile: HostileMember) -> None:
    blocked = [one for one in log_of(process) if one["event"] == "event loop blocked"]
    failures = sum(not was_answered for found in beside.probes.values() for _, was_answered in found)
    print(f"\n{SECONDS:.0f} s of attacks, {hostile.requests} requests to hostile members, restarts 0, leases kept")
    for name, alone in quiet.latencies.items():
        took = beside.latencies[name]
        print(
            f"{name}: {len(took)} done, median {statistics.median(took) * 1000:.0f} ms "
            f"(alone {statistics.median(alone) * 1000:.0f} ms), slowest {max(took) * 1000:.0f} ms"
        )
    print(
        f"probes: {sum(map(len, beside.probes.values()))}, {failures} not answered within 1 s, "
        f"at most {max(map(longest_outage, beside.probes.values())):.1f} s between two answers\n"
        f"memory: peak {beside.peak:.0f} MiB (alone {quiet.peak:.0f}, limit {shipped_limit('placement')}); "
        f"open files: at most {beside.files} (alone {quiet.files}, limit {OPEN_FILES}); "
        f"log: {process.log.stat().st_size // 1024} KiB\n"
        f"blocked turns in the log: {len(blocked)}, longest {max((one['seconds'] for one in blocked), default=0)} s, "
        f"most CPU {max((one['cpu'] for one in blocked), default=0)} s"
    )


def check(quiet: Measured, beside: Measured) -> None:
    assert max(map(longest_outage, beside.probes.values())) < UNTIL_RESTART
    assert beside.peak < shipped_limit("placement")
    late = {
        name: (statistics.median(took), statistics.median(quiet.latencies[name]))
        for name, took in beside.latencies.items()
        if statistics.median(took) > SLOWER * statistics.median(quiet.latencies[name]) + BUSY
    }
    assert late == {}
