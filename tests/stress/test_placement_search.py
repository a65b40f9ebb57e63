"""A search over many clusters takes as long as one answer, and dead ones cost no more than the deadline."""

import time
from collections.abc import AsyncIterator, Awaitable
from contextlib import AsyncExitStack

import pytest

from tests.controllers.placement.builders import a_cluster, a_machine, a_view
from tests.fleet import Members, a_fleet, a_machine_definition
from tests.proxy import FaultProxy
from tests.widgets import install_crd
from virt_steward.controllers.placement.decide import decide
from virt_steward.controllers.placement.observation import Unreachable, VmAbsent
from virt_steward.controllers.placement.options import FleetTimeouts, SearchTimeouts
from virt_steward.controllers.placement.search import Search
from virt_steward.controllers.placement.verdicts import Blocked, PlacementReason
from virt_steward.kube.client import Client
from virt_steward.kube.events import LONGEST_NOTE
from virt_steward.runtime.clock import SystemClock
from virt_steward_demo.local.controlplane import ControlPlane

HELD_BACK = 0.05
"""Seconds by which a slow cluster is late, there and back."""
TWENTY = [f"c{number:02}" for number in range(20)]


@pytest.fixture
async def vms(admin: Client, namespace: str) -> str:
    """A namespace that may hold VMs."""
    await install_crd(admin, a_machine_definition())
    return namespace


async def test_search_of_20_clusters_takes_at_most_two_answers_of_one(
    control_plane: ControlPlane, admin: Client, vms: str, proxies: list[FaultProxy]
) -> None:
    async with a_fleet(control_plane, admin, vms) as members:
        await joined(members, proxies)
        search = Search(members.fleet, SearchTimeouts(memory=0, apart=0), SystemClock())
        connected = await search.find(vms, ("vm-web",), TWENTY, since=0)
        for proxy in proxies:
            proxy.delay(HELD_BACK)
        # The best of three: others may want the processor too.
        alone = min([await seconds(search.find(vms, ("vm-web",), TWENTY[:1], since=0)) for _ in range(3)])
        together = min([await seconds(search.find(vms, ("vm-web",), TWENTY, since=0)) for _ in range(3)])
    print(f"\nsearch of 1 cluster: {alone * 1000:.0f} ms, of 20 clusters: {together * 1000:.0f} ms")
    assert connected == dict.fromkeys(TWENTY, VmAbsent())
    assert alone >= 2 * HELD_BACK
    assert together <= 2 * alone


async def test_search_names_5_unreachable_clusters_of_20_in_time(
    control_plane: ControlPlane, admin: Client, vms: str, proxies: list[FaultProxy]
) -> None:
    patience = SearchTimeouts(deadline=5)
    async with a_fleet(control_plane, admin, vms, limits=FleetTimeouts(timeout=3, first_retry=60)) as members:
        await joined(members, proxies)
        for dead in proxies[:3]:
            await dead.refuse()
        for frozen in proxies[3:5]:
            frozen.freeze()
        search = Search(members.fleet, patience, SystemClock())
        started = time.monotonic()
        findings = await search.find(vms, ("vm-web",), TWENTY, since=0)
        took = time.monotonic() - started
        members.observed.clear()
        again = await search.find(vms, ("vm-web",), TWENTY, since=0)
    silent = {name: finding for name, finding in findings.items() if isinstance(finding, Unreachable)}
    assert list(silent) == TWENTY[:5]
    assert all(f"cluster {name}: " in finding.message for name, finding in silent.items())
    assert all(finding == VmAbsent() for name, finding in findings.items() if name not in silent)
    assert took <= patience.deadline
    assert again == findings
    assert members.observed == []
    verdict = decide(a_view(a_machine("web"), *map(a_cluster, TWENTY), findings=findings)).outcome
    assert isinstance(verdict, Blocked)
    assert verdict.reason is PlacementReason.CLUSTERS_SILENT
    told = verdict.message[:LONGEST_NOTE]
    assert [name for name in TWENTY if f"cluster {name}: " in told] == TWENTY[:5]


@pytest.fixture
async def proxies(control_plane: ControlPlane) -> AsyncIterator[list[FaultProxy]]:
    async with AsyncExitStack() as stack:
        yield [await stack.enter_async_context(FaultProxy(control_plane.port)) for _ in TWENTY]


async def joined(members: Members, proxies: list[FaultProxy]) -> None:
    for name, proxy in zip(TWENTY, proxies, strict=True):
        await members.join(name, server=proxy.server)


async def seconds(finding: Awaitable[object]) -> float:
    started = time.monotonic()
    await finding
    return time.monotonic() - started
