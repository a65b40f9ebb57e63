"""Measures the memory of cached objects: in new processes, first with an empty cache and then with thousands."""

import asyncio
import sys
from pathlib import Path

import msgspec

from tests.bench.bare import NAMESPACE
from tests.bench.figures import Figure, Round
from tests.bench.writer import plan_name
from tests.cacher import Footprint
from tests.installplans import an_install_plan, create_install_plan
from virt_steward.kube.client import Client

PLANS = 4_000
ROUNDS = 3
AT_ONCE = 8


async def measure(client: Client, kubeconfig: Path) -> Figure:
    """The plans are kept for the measurements that follow."""
    empty = [await _footprint(kubeconfig) for _ in range(ROUNDS)]
    await _fill(client)
    full = [await _footprint(kubeconfig) for _ in range(ROUNDS)]
    rounds = tuple(
        Round(((after.rss - before.rss) * 1000 / after.objects,), (before.rss,))
        for before, after in zip(empty, full, strict=True)
    )
    return Figure("memory per 1,000 objects", "MiB", "empty cache", rounds)


async def _footprint(kubeconfig: Path) -> Footprint:
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "tests.cacher", str(kubeconfig), stdout=asyncio.subprocess.PIPE
    )
    output, _ = await process.communicate()
    return msgspec.json.decode(output, type=Footprint)


async def _fill(client: Client) -> None:
    places = asyncio.Semaphore(AT_ONCE)

    async def create(number: int) -> None:
        async with places:
            await create_install_plan(client, an_install_plan(plan_name(number), NAMESPACE))

    async with asyncio.TaskGroup() as group:
        for number in range(PLANS):
            group.create_task(create(number))
