"""The placement in crowds and under kills. STRESS_SCALE=0.1 tries the same with a tenth of everything."""

import asyncio
import os
import random
from collections import Counter, defaultdict
from collections.abc import AsyncIterator
from contextlib import AbstractContextManager, asynccontextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from time import perf_counter

import pytest

from tests.audit import BEGINNING, AuditLog, Mark, Request
from tests.clients import a_client
from tests.controllers.approver.lifecycle import at_once
from tests.controllers.approver.process import ALONE, Process, a_process, home_of
from tests.controllers.placement.scene import Scene, an_installation
from tests.eventually import eventually
from tests.grants import Account, an_account
from virt_steward.controllers.placement.observation import CONFIG_ANNOTATION, MACHINE, Machine
from virt_steward.controllers.placement.options import SearchTimeouts
from virt_steward.controllers.placement.search import VIRTUAL_MACHINE
from virt_steward.controllers.placement.watches import MACHINES as WATCHED
from virt_steward.kube.client import Client, Selection
from virt_steward.objects.identity import Key
from virt_steward.runtime.access import Access, Grant, Installation
from virt_steward.runtime.informer import Informer
from virt_steward_demo.local.controlplane import ControlPlane

SCALE = float(os.environ.get("STRESS_SCALE", "1"))
MACHINES = int(1_000 * SCALE)
KILLS = int(20 * SCALE) or 2
MOST_WRITES = 1.2
MOST_MIB = 80
OPTIONS = ("--placement-strategy=round-robin",)


@dataclass(frozen=True, slots=True)
class Fleet:
    """One server, which each cluster knows under a user of its own."""

    scene: Scene
    audit_log: AuditLog
    account: Account
    kubeconfig: Path

    def process(self) -> AbstractContextManager[Process]:
        return a_process(
            self.kubeconfig, home_of(self.account), *ALONE, *OPTIONS, controller="placement", measured=True
        )

    async def join(self, number: int) -> dict[str, str]:
        """So many clusters; gives their users, by name."""
        users = {}
        for name in [f"c{one:02}" for one in range(number)]:
            grant = Grant(VIRTUAL_MACHINE, ("list",), "to be found")
            installation = Installation(self.scene.secrets, prefix="member")
            member = await an_account(self.scene.client, Access(name, (grant,)), installation)
            users[name] = member.user
            await self.scene.join(name, token=member.token)
        return users

    async def burst(self, number: int) -> None:
        await at_once(partial(self.scene.machine, f"m{one:04}") for one in range(number))

    async def placed(self) -> dict[str, str]:
        """Clusters by machine, for all that have one."""
        found = await self.scene.client.list(MACHINE, Selection(self.scene.namespace))
        clusters = {one["metadata"]["name"]: one["metadata"].get("annotations", {}) for one in found}
        return {name: own[CONFIG_ANNOTATION] for name, own in clusters.items() if own.get(CONFIG_ANNOTATION)}

    async def has_placed(self, number: int) -> bool:
        return len(await self.placed()) == number

    async def has_reported(self, number: int) -> bool:
        """Whether the statuses of all clusters together count so many machines."""
        configs = [await self.scene.status(name) for name in set((await self.placed()).values())]
        return sum(status.get("machines", 0) for status in configs) == number

    def writes(self, mark: Mark) -> list[Request]:
        """Events aside."""
        mine = [one for one in self.audit_log.since(mark) if one.user == self.account.user]
        return [one for one in mine if one.is_write and one.resource != "events"]


@pytest.fixture
async def fleet(empty_cluster: ControlPlane, tmp_path: Path) -> AsyncIterator[Fleet]:
    account = await an_installation(empty_cluster)
    kubeconfig = account.write_kubeconfig(tmp_path / "kubeconfig", empty_cluster)
    async with a_client(empty_cluster) as client:
        scene = Scene(client, empty_cluster, await a_namespace(client), home_of(account))
        yield Fleet(scene, AuditLog(empty_cluster.audit_log), account, kubeconfig)


async def a_namespace(client: Client) -> str:
    await client.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "crowd"}})
    return "crowd"


async def test_placement_distributes_1000_machines_with_few_requests(fleet: Fleet) -> None:
    users = await fleet.join(5)
    mark = fleet.audit_log.mark()
    with fleet.process() as process:
        assert await eventually(partial(process.said, "started"))
        started = perf_counter()
        await fleet.burst(MACHINES)
        created = perf_counter() - started
        assert await eventually(partial(fleet.has_placed, MACHINES), within=60)
        took = perf_counter() - started
        assert await eventually(partial(fleet.has_reported, MACHINES))
        cpu, troubles = process.cpu, process.troubles
    spread = Counter((await fleet.placed()).values())
    writes = fleet.writes(mark)
    lists = times_of_lists(fleet.audit_log.since(mark), set(users.values()))
    print(
        f"\n{MACHINES} Machines created in {created:.1f} s, placed in {took:.1f} s, {cpu:.1f} s CPU: "
        f"{dict(sorted(spread.items()))}, {len(writes) / MACHINES:.3f} writes each"
        f"\nlists of VMs on {len(users)} clusters: {sum(map(len, lists))}, at most {max(map(len, lists))} on one"
    )
    assert max(spread.values()) - min(spread.values()) <= 1
    assert len(writes) <= MOST_WRITES * MACHINES
    for times in lists:  # one per window; the first may reach the server late
        assert (len(times) - 1) * SearchTimeouts().apart <= times[-1] - times[0] + SearchTimeouts().apart / 2
    assert [one for one in troubles if one["level"] == "error"] == []


def times_of_lists(requests: list[Request], users: set[str]) -> list[list[float]]:
    """When the same namespace of the same cluster was asked for."""
    asked: dict[tuple[str, str], list[float]] = defaultdict(list)
    for one in requests:
        if one.user in users and one.resource == VIRTUAL_MACHINE.plural and one.stage == "ResponseComplete":
            asked[one.user, one.namespace].append(one.received.timestamp())
    assert len(asked) == len(users)
    return [sorted(times) for times in asked.values()]


async def test_placement_with_20_clusters_uses_80_mib(fleet: Fleet) -> None:
    users = await fleet.join(20)
    with fleet.process() as process:
        await fleet.burst(100)
        assert await eventually(partial(fleet.has_placed, 100), within=60)
        assert await eventually(partial(fleet.has_reported, 100))
        rss = process.rss
    asked = {one.user for one in fleet.audit_log.since(BEGINNING) if one.resource == VIRTUAL_MACHINE.plural}
    print(f"\nmemory with {len(users)} clusters: {rss:.1f} MiB RSS")
    assert set(users.values()) <= asked
    assert rss <= MOST_MIB


async def test_placement_places_each_machine_once_despite_kills(fleet: Fleet) -> None:
    rng = random.Random(7)
    await fleet.join(5)
    async with histories(fleet.scene.client) as choices:
        burst = asyncio.create_task(fleet.burst(MACHINES))
        for _ in range(KILLS):
            with fleet.process() as process:
                assert await eventually(partial(process.said, "started"))
                await asyncio.sleep(rng.uniform(0.0, 1.0))  # a kill at any moment is what is tried
                process.kill()
        await burst
        with fleet.process():
            assert await eventually(partial(fleet.has_placed, MACHINES), within=60)
        assert await eventually(lambda: len(choices) == MACHINES)
    spread = Counter((await fleet.placed()).values())
    print(f"\n{KILLS} kills: {len(choices)} Machines, each placed once: {dict(sorted(spread.items()))}")
    assert {len(clusters) for clusters in choices.values()} == {1}


@asynccontextmanager
async def histories(client: Client) -> AsyncIterator[dict[str, set[str]]]:
    """All clusters that were ever written on each machine, as a watch sees every change."""
    seen: dict[str, set[str]] = defaultdict(set)

    def note(key: Key, _before: Machine | None, after: Machine | None) -> None:
        if after and after.request.config:
            seen[key.name].add(after.request.config)

    informer = Informer(client, WATCHED)
    informer.tell(note)
    watching = asyncio.create_task(informer.run())
    try:
        await informer.settled()
        yield seen
    finally:
        watching.cancel()
        with suppress(asyncio.CancelledError):
            await watching
