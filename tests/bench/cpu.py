"""Measures the CPU per watch event on its way into the cache. Another process writes, so only reading counts."""

import asyncio
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Self

from tests.bench.bare import Bare
from tests.bench.figures import Figure, Round
from tests.installplans import INSTALL_PLAN, InstallPlan
from virt_steward.kube.client import Client
from virt_steward.kube.watch import projection
from virt_steward.objects.identity import Key
from virt_steward.runtime.informer import Informer, Source

WARM_UP = 100
ROUNDS = 5
REQUESTS = 200
EVENTS = 400

Plan = InstallPlan | None


async def measure(client: Client, bare: Bare, kubeconfig: Path) -> Figure:
    async with _Stream.of_plans(client, kubeconfig) as stream:
        await _of_requests(bare, WARM_UP)
        await stream.take(WARM_UP)
        rounds = [Round((await _of_events(stream),), (await _of_requests(bare, REQUESTS),)) for _ in range(ROUNDS)]
    return Figure("CPU per watch event", "ms", "CPU of a bare PATCH", tuple(rounds))


async def _of_events(stream: "_Stream") -> float:
    started = time.process_time()
    await stream.take(EVENTS)
    return (time.process_time() - started) * 1000 / EVENTS


async def _of_requests(bare: Bare, count: int) -> float:
    started = time.process_time()
    for _ in range(count):
        await bare.patch()
    return (time.process_time() - started) * 1000 / count


class _Stream:
    """An informer, and a process that writes the objects that it watches."""

    def __init__(self, informer: Informer[InstallPlan], orders: asyncio.StreamWriter) -> None:
        self._orders = orders
        self._left = 0
        self._taken = asyncio.Event()
        informer.tell(self._saw)

    @classmethod
    @asynccontextmanager
    async def of_plans(cls, client: Client, kubeconfig: Path) -> AsyncIterator[Self]:
        informer = Informer(client, Source(INSTALL_PLAN, projection(InstallPlan)))
        running = asyncio.create_task(informer.run())
        await informer.settled()
        writer = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "tests.bench.writer", str(kubeconfig), stdin=asyncio.subprocess.PIPE
        )
        assert writer.stdin
        stream = cls(informer, writer.stdin)
        try:
            yield stream
        finally:
            stream.end()
            await writer.wait()
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)

    async def take(self, events: int) -> None:
        """Let the process write so many changes, and wait until the informer has received all."""
        self._left = events
        self._taken.clear()
        self._orders.write(f"{events}\n".encode())
        await asyncio.wait_for(self._taken.wait(), timeout=60)

    def end(self) -> None:
        """End the process that writes."""
        self._orders.close()

    def _saw(self, _key: Key, _before: Plan, _after: Plan) -> None:
        self._left -= 1
        if self._left == 0:
            self._taken.set()
