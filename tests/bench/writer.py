"""A process that changes InstallPlans, as many as each line of its input says: `python -m tests.bench.writer FILE`."""

import asyncio
import sys
from itertools import count

from tests.bench.bare import NAMESPACE
from tests.installplans import INSTALL_PLAN
from virt_steward.app import connected
from virt_steward.kube.client import Client
from virt_steward.objects.identity import Key, Ref

AT_ONCE = 4

_numbers = count()


def plan_name(number: int) -> str:
    return f"install-{number}"


async def write(client: Client, changes: int) -> None:
    """One change to each of the first plans."""
    places = asyncio.Semaphore(AT_ONCE)

    async def change(number: int) -> None:
        async with places:
            patch = {"metadata": {"annotations": {"bench/number": str(next(_numbers))}}}
            await client.merge_patch(Ref(INSTALL_PLAN, Key(NAMESPACE, plan_name(number))), patch)

    async with asyncio.TaskGroup() as group:
        for number in range(changes):
            group.create_task(change(number))


async def main(kubeconfig: str) -> None:
    async with connected(kubeconfig, None) as client:
        while line := await asyncio.to_thread(sys.stdin.readline):
            await write(client, int(line))


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
