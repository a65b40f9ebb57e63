"""The placement beside hostile members and bad KubevirtConfigs, within the limits that are shipped.

Each case goes on for HOSTILE_SECONDS (60). All the time, Machines are created and must be placed on the good cluster,
at most twice as late as without the hostile ones, and the process must stay below its memory limit.
"""

import asyncio
import os
import resource
import statistics
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from functools import partial
from itertools import count
from pathlib import Path

import pytest

from tests.clients import a_client
from tests.controllers.approver.process import ALONE, Process, a_process, home_of
from tests.controllers.placement.scene import Scene, an_installation
from tests.eventually import eventually
from tests.fleet import a_secret
from tests.grants import Account
from tests.hostile import CHANGING, HostileMember, a_hostile_member
from tests.machines import a_config, any_reference_allowed, the_config
from tests.stress.connections import OPEN_FILES
from tests.stress.limits import peak, shipped_limit
from virt_steward.objects.identity import Key
from virt_steward_demo.local.controlplane import ControlPlane

SECONDS = float(os.environ.get("HOSTILE_SECONDS", "60"))
QUIET_SECONDS = SECONDS / 4
GOOD = "good"
SELECTOR = {"vitistack.io/cluster-selector": "trusted=yes"}
"""Machines for trusted clusters: others are not asked for their VMs."""
ROOM = 0.05
"""Seconds by which a placement may be late in any case: the machine is busy."""


@contextmanager
def few_files() -> Iterator[None]:
    """Processes that are started meanwhile have the limit of a container."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(OPEN_FILES, hard), hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


class Bench:
    """A good cluster, and Machines that are placed on it one after the other."""

    def __init__(self, scene: Scene, account: Account, kubeconfig: Path) -> None:
        self.scene = scene
        self.account = account
        self.kubeconfig = kubeconfig
        self._numbers = count()

    @contextmanager
    def process(self) -> Iterator[Process]:
        with (
            few_files(),
            a_process(self.kubeconfig, home_of(self.account), *ALONE, controller="placement", measured=True) as started,
        ):
            yield started

    async def latencies(self, seconds: float) -> list[float]:
        """Seconds until each Machine was placed, one after the other for so long."""
        found = []
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            name = f"m{next(self._numbers):05}"
            began = time.monotonic()
            await self.scene.machine(name, annotations=SELECTOR)
            assert await eventually(partial(self.scene.is_on, name, GOOD))
            found.append(time.monotonic() - began)
            # Beside it, Machines that need all clusters, so that the hostile one is searched all the time.
            await self.scene.machine(f"all-{name}")
            await asyncio.sleep(0.1)
        return found


@pytest.fixture
async def bench(empty_cluster: ControlPlane, tmp_path: Path) -> AsyncIterator[Bench]:
    account = await an_installation(empty_cluster)
    kubeconfig = account.write_kubeconfig(tmp_path / "kubeconfig", empty_cluster)
    async with a_client(empty_cluster) as client:
        await client.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "crowd"}})
        scene = Scene(client, empty_cluster, "crowd", home_of(account))
        await scene.join(GOOD, labels={"trusted": "yes"})
        yield Bench(scene, account, kubeconfig)


@pytest.fixture
def hostile(empty_cluster: ControlPlane) -> Iterator[HostileMember]:
    with a_hostile_member(empty_cluster) as member:
        yield member


@pytest.mark.parametrize(
    "behaviour",
    [
        CHANGING,
        "page of a million",
        "page of small items",
        "long error",
        "endless continue",
        "pause of no number",
        "pause of a day",
        "dripping",
    ],
)
async def test_placement_goes_on_beside_hostile_member(bench: Bench, hostile: HostileMember, behaviour: str) -> None:
    hostile.behaviour = behaviour
    with bench.process() as process:
        assert await eventually(partial(process.said, "started"))
        quiet = await bench.latencies(QUIET_SECONDS)
        before = peak(process.pid)
        for number in range(3):
            await bench.scene.join(f"bad{number}", server=hostile.server)
        beside = await bench.latencies(SECONDS)
        report(f"hostile members ({behaviour}), {hostile.requests} requests", quiet, beside, process, before)
        statuses = [await bench.scene.status(f"bad{number}") for number in range(3)]
        assert all(status.get("phase") for status in statuses)
        check(quiet, beside, process)


async def test_placement_goes_on_beside_reference_to_impossible_secret(bench: Bench) -> None:
    """The CRD that others install has no pattern, so that such a KubevirtConfig can exist."""
    with bench.process() as process:
        assert await eventually(partial(process.said, "started"))
        quiet = await bench.latencies(QUIET_SECONDS)
        before = peak(process.pid)
        async with any_reference_allowed(bench.scene.client):
            await bench.scene.client.create(a_config("bad", Key(bench.scene.secrets, "a=b")))
        await bench.scene.client.create(a_secret(bench.scene.secrets, "garbage", "{[" * 1000))
        await bench.scene.client.create(a_config("garbage", Key(bench.scene.secrets, "garbage")))
        beside = await bench.latencies(SECONDS / 2)
        report("impossible Secret", quiet, beside, process, before)
        check(quiet, beside, process)
    with bench.process() as restarted:
        assert await eventually(partial(restarted.said, "started"))
        beside = await bench.latencies(SECONDS / 2)
        report("impossible Secret, after a restart", quiet, beside, restarted, peak(restarted.pid))
        check(quiet, beside, restarted)
    status = (await bench.scene.client.get(the_config("bad")))["status"]
    assert status["phase"] == "CredentialsInvalid"


def report(case: str, quiet: list[float], beside: list[float], process: Process, before: float) -> None:
    print(
        f"\n{case}: {len(beside)} Machines placed, median {statistics.median(beside) * 1000:.0f} ms"
        f" (alone {statistics.median(quiet) * 1000:.0f} ms), slowest {max(beside) * 1000:.0f} ms;"
        f" peak {peak(process.pid):.0f} MiB (alone {before:.0f}, limit {shipped_limit('placement')}),"
        f" {process.cpu:.1f} s CPU"
    )


def check(quiet: list[float], beside: list[float], process: Process) -> None:
    assert process.alive
    assert peak(process.pid) < shipped_limit("placement")
    assert statistics.median(beside) <= 2 * statistics.median(quiet) + ROOM
    assert [one for one in process.log() if one["level"] == "error"] == []
