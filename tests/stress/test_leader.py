"""Two candidates on a server that freezes again and again, each writing as fast as it may while it leads."""

import asyncio
import time
from contextlib import AsyncExitStack
from itertools import count, pairwise
from random import Random

from tests.clients import a_client
from tests.eventually import eventually
from virt_steward.kube.client import Caller, Client
from virt_steward.kube.connection import ConnectionPool
from virt_steward.kube.errors import KubeError
from virt_steward.objects.identity import Key, Kind, Ref
from virt_steward.runtime.clock import SystemClock
from virt_steward.runtime.leader import Candidacy, Elector, LeasesOnly, LeaseTimes
from virt_steward_demo.local.controlplane import ControlPlane

FREEZES = 20
TIMES = LeaseTimes(duration=1, retry=0.1)
CONFIG_MAP = Kind("", "ConfigMap")


class Ruler:
    """A candidate that adds the number of its term to a chronicle as long as it leads."""

    def __init__(self, client: Client, namespace: str, name: str, terms: "count[int]") -> None:
        self.overlaps = 0
        self.terms = 0
        self.rivals: list[Ruler] = []
        self.refused = 0
        candidacy = Candidacy(Key(namespace, "throne"), name, "tests-lease", TIMES)
        lease_caller = Caller(name, timeout=TIMES.usable / 2, pool=ConnectionPool.LEASE)
        lease_client = Client(client.connection, LeasesOnly(client.connection), lease_caller)
        self._rng = Random(name)
        self.elector = Elector(lease_client, candidacy, SystemClock(), self._rng)
        self._client = Client(client.connection, client.discovery, Caller(name, permit=self.elector.permit))
        self._chronicle = Ref(CONFIG_MAP, Key(namespace, "chronicle"))
        self._terms = terms

    async def run(self) -> None:
        while True:
            await self.elector.campaign()
            self.overlaps += sum(rival.elector.leads for rival in self.rivals)  # before anything else can happen
            self.terms += 1
            writing = asyncio.create_task(self._write(next(self._terms)))
            try:
                await self.elector.hold()
            finally:
                await cancelled(writing)
            await asyncio.sleep(self._rng.choice((0, 1.5 * TIMES.duration)))  # who is back first takes its own lease

    async def _write(self, term: int) -> None:
        while True:
            try:
                await self._add(term)
            except KubeError:
                self.refused += 1
            await asyncio.sleep(0.01)

    async def _add(self, term: int) -> None:
        seen = await self._client.get(self._chronicle)
        lock = {name: seen["metadata"][name] for name in ("name", "namespace", "uid", "resourceVersion")}
        data = {"terms": f"{seen['data']['terms']} {term}".strip()}
        intent = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": lock, "data": data}
        await self._client.apply(intent, manager="chronicler", force=True)


async def cancelled(*tasks: asyncio.Task[None]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def test_leader_is_unique_while_api_server_freezes(
    control_plane: ControlPlane, admin: Client, namespace: str
) -> None:
    seed = time.time_ns()
    rng, terms = Random(seed), count(1)
    metadata = {"name": "chronicle", "namespace": namespace}
    await admin.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"terms": ""}})
    async with AsyncExitStack() as stack:
        clients = [await stack.enter_async_context(a_client(control_plane)) for _ in range(2)]
        ann, bob = (Ruler(client, namespace, name, terms) for client, name in zip(clients, ("ann", "bob"), strict=True))
        ann.rivals, bob.rivals = [bob], [ann]
        running = [asyncio.create_task(ruler.run()) for ruler in (ann, bob)]
        gaps = []
        for _ in range(FREEZES):
            assert await eventually(lambda: ann.elector.leads or bob.elector.leads, within=30)
            await asyncio.sleep(rng.uniform(0, 0.6))
            control_plane.freeze()
            try:
                await asyncio.sleep(rng.uniform(0.1, 2 * TIMES.duration))
            finally:
                control_plane.thaw()
            thawed = time.monotonic()
            assert await eventually(lambda: ann.elector.leads or bob.elector.leads, within=30)
            gaps.append(time.monotonic() - thawed)
        await cancelled(*running)
    chronicle = (await admin.get(Ref(CONFIG_MAP, Key(namespace, "chronicle"))))["data"]["terms"]
    written = [int(term) for term in chronicle.split()]
    print(
        f"\n{FREEZES} freezes (seed {seed}): {ann.terms} terms of ann and {bob.terms} of bob, "
        f"{len(written)} writes, {ann.refused + bob.refused} refused or lost, "
        f"longest time without a leader after a thaw: {max(gaps):.2f} s"
    )
    assert ann.terms > 0 < bob.terms
    assert ann.overlaps + bob.overlaps == 0
    assert all(earlier <= later for earlier, later in pairwise(written)), "a former leader's write counted"
