"""How little memory a large cache takes."""

import asyncio
import random
import subprocess
import sys

import msgspec

from tests.cacher import Footprint
from tests.clients import a_client
from tests.eventually import eventually
from tests.installplans import DEFINITION, INSTALL_PLAN, an_install_plan, create_install_plan, sizes
from virt_steward.kube.client import Client
from virt_steward_demo.local.controlplane import ControlPlane

PLANS = 5_000
LIMIT_MIB = 60


async def test_informer_caches_5000_install_plans_in_60_mib(empty_cluster: ControlPlane) -> None:
    async with a_client(empty_cluster) as client:
        await client.apply(DEFINITION, manager="tests")
        assert await eventually(lambda: _is_served(client))
        total = await _fill(client)
    command = [sys.executable, "-m", "tests.cacher", str(empty_cluster.kubeconfig)]
    answer = await asyncio.to_thread(subprocess.run, command, capture_output=True, check=True)
    found = msgspec.json.decode(answer.stdout, type=Footprint)
    print(
        f"\n{found.objects} InstallPlans ({found.read:.0f} MiB read): {found.rss:.1f} MiB RSS, "
        f"peak {found.peak:.1f} MiB, imports alone {found.imports:.1f} MiB; synced in {found.seconds:.2f} s"
    )
    assert found.objects == PLANS
    assert found.read >= total / 2**20
    assert found.peak <= LIMIT_MIB


async def _is_served(client: Client) -> bool:
    await client.discovery.refresh()
    return client.discovery.serves(INSTALL_PLAN.group, INSTALL_PLAN.plural)


async def _fill(client: Client) -> int:
    some_at_once = asyncio.Semaphore(8)

    async def create(number: int, size: int) -> None:
        async with some_at_once:
            await create_install_plan(client, an_install_plan(f"install-{number}", "default", size=size))

    all_sizes = list(sizes(PLANS, random.Random(1)))
    async with asyncio.TaskGroup() as group:
        for number, size in enumerate(all_sizes):
            group.create_task(create(number, size))
    return sum(all_sizes)
