"""Elections on the real API server. Each candidate has a clock of its own, which stands still until a test moves it."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any

import pytest
from aiohttp import web
from structlog.testing import capture_logs

from tests.clients import a_client
from tests.eventually import TIMEOUT, eventually
from tests.gateway import Gateway
from tests.grants import an_account
from tests.proxy import FaultProxy
from tests.runtime.clocks import ManualClock
from virt_steward.kube.client import Caller, Client
from virt_steward.kube.connection import ConnectionPool
from virt_steward.kube.errors import NotLeading
from virt_steward.objects.identity import Key, Ref
from virt_steward.runtime.access import Access, Installation
from virt_steward.runtime.clock import Clock, SystemClock
from virt_steward.runtime.leader import (
    FAILING,
    LAST_SUCCESS,
    LEASE,
    Candidacy,
    Elector,
    LeasesOnly,
    LeaseTimes,
    WorkReport,
    namespace_not_found,
)
from virt_steward_demo.local.controlplane import ControlPlane

TIMES = LeaseTimes(duration=15, retry=2.0)
MOMENTS = LeaseTimes(duration=3, retry=0.3)
LONGEST_PAUSE = 1.2 * TIMES.retry


class Candidate:
    """Campaigns, holds, and campaigns again, as a controller does."""

    def __init__(self, elector: Elector, clock: ManualClock) -> None:
        self.elector = elector
        self.clock = clock
        self.terms = 0
        self._running: asyncio.Task[None] | None = None

    @property
    def leads(self) -> bool:
        return self.elector.leads

    async def start(self) -> None:
        """Return when it has looked at the lease once, and taken it if it could."""
        self._running = asyncio.create_task(self._run())
        await self._has_acted()

    async def lives(self, seconds: float) -> None:
        """Let its clock run, and let it do whatever it does meanwhile."""
        while seconds > 0:
            step = min(seconds, LONGEST_PAUSE)
            await self.clock.advance(step)
            await self._has_acted()
            seconds -= step

    async def stop(self) -> None:
        if self._running:
            self._running.cancel()
            await asyncio.gather(self._running, return_exceptions=True)

    async def _run(self) -> None:
        while True:
            await self.elector.campaign()
            self.terms += 1
            await self.elector.hold()

    async def _has_acted(self) -> None:
        assert await eventually(lambda: self.clock.sleepers == 1)


@asynccontextmanager
async def an_elector(
    control_plane: ControlPlane, lease: Key, identity: str, clock: Clock, *, times: LeaseTimes = TIMES, server: str = ""
) -> AsyncIterator[Elector]:
    async with a_client(control_plane, server=server) as client:
        caller = Caller(identity, timeout=times.usable / 2, pool=ConnectionPool.LEASE)
        own = Client(client.connection, LeasesOnly(client.connection), caller)
        yield Elector(own, Candidacy(lease, identity, "tests-lease", times), clock, Random(identity))


@asynccontextmanager
async def a_candidate(
    control_plane: ControlPlane, lease: Key, identity: str, clock: ManualClock | None = None
) -> AsyncIterator[Candidate]:
    clock = clock or ManualClock()
    async with an_elector(control_plane, lease, identity, clock) as elector:
        candidate = Candidate(elector, clock)
        try:
            yield candidate
        finally:
            await candidate.stop()


@pytest.fixture
def lease(namespace: str) -> Key:
    return Key(namespace, "the-lease")


@pytest.fixture
async def ann(control_plane: ControlPlane, lease: Key) -> AsyncIterator[Candidate]:
    async with a_candidate(control_plane, lease, "ann") as candidate:
        yield candidate


@pytest.fixture
async def bob(control_plane: ControlPlane, lease: Key) -> AsyncIterator[Candidate]:
    async with a_candidate(control_plane, lease, "bob") as candidate:
        yield candidate


async def spec_of(admin: Client, lease: Key) -> dict[str, Any]:
    spec: dict[str, Any] = (await admin.get(Ref(LEASE, lease)))["spec"]
    return spec


def a_lease(lease: Key, **spec: Any) -> dict[str, Any]:
    metadata = {"name": lease.name, "namespace": lease.namespace}
    return {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": metadata, "spec": spec}


async def test_elector_reports_a_missing_namespace(control_plane: ControlPlane) -> None:
    async with a_candidate(control_plane, Key("never-created", "the-lease"), "ann") as candidate:
        with capture_logs() as logs:
            await candidate.start()
        assert not candidate.leads
        message = "namespace never-created not found: create it, or set --namespace"
        assert candidate.elector.trouble == message == namespace_not_found("never-created")
        assert [one["error"] for one in logs if one["event"] == "lease unavailable"] == [message]


async def test_elector_allows_one_leader(ann: Candidate, bob: Candidate) -> None:
    await asyncio.gather(ann.start(), bob.start())
    assert sorted([ann.leads, bob.leads]) == [False, True]
    leader, other = (ann, bob) if ann.leads else (bob, ann)
    assert leader.elector.remaining() == TIMES.usable
    with pytest.raises(NotLeading, match=other.elector.candidacy.identity):
        other.elector.remaining()


async def test_elector_keeps_renewed_lease(ann: Candidate, bob: Candidate) -> None:
    await ann.start()
    await bob.start()
    for _ in range(4):
        await ann.lives(5)
        await bob.lives(5)
        assert (ann.leads, bob.leads) == (True, False)


async def test_elector_writes_lease_spec(ann: Candidate, bob: Candidate, admin: Client, lease: Key) -> None:
    await ann.start()
    first = await spec_of(admin, lease)
    await ann.lives(LONGEST_PAUSE)
    renewed = await spec_of(admin, lease)
    assert (first["holderIdentity"], first["leaseDurationSeconds"], first["leaseTransitions"]) == ("ann", 15, 0)
    assert renewed["acquireTime"] == first["acquireTime"]
    assert renewed["renewTime"] > first["renewTime"]
    await bob.start()
    await bob.lives(TIMES.duration + LONGEST_PAUSE)
    taken = await spec_of(admin, lease)
    assert (taken["holderIdentity"], taken["leaseTransitions"]) == ("bob", 1)


async def test_elector_reports_its_work_in_the_lease(control_plane: ControlPlane, lease: Key, admin: Client) -> None:
    noon = datetime(2026, 3, 1, 12, tzinfo=UTC)
    reports = {"ann": WorkReport(noon, failing=2), "bob": WorkReport()}
    for identity, report in reports.items():
        async with a_client(control_plane) as client:
            own = Client(client.connection, LeasesOnly(client.connection), Caller(identity))
            candidacy = Candidacy(lease, identity, "tests-lease", TIMES)
            elector = Elector(own, candidacy, ManualClock(), Random(1), lambda report=report: report)
            await elector.campaign()
            await elector.release()
        written = (await admin.get(Ref(LEASE, lease)))["metadata"]["annotations"]
        # A new leader keeps the last success of the one before it, and so does a Lease that nobody holds.
        assert written == {LAST_SUCCESS: "2026-03-01T12:00:00Z", FAILING: str(report.failing)}


async def test_elector_stops_at_two_thirds_of_duration(ann: Candidate) -> None:
    await ann.elector.campaign()
    await ann.clock.advance(9.999)
    assert ann.elector.remaining() == pytest.approx(0.001)
    await ann.clock.advance(0.001)
    assert not ann.leads
    with pytest.raises(NotLeading):
        ann.elector.remaining()


async def test_elector_takes_over_after_full_duration(ann: Candidate, bob: Candidate) -> None:
    await ann.start()
    await bob.start()
    await bob.lives(TIMES.duration)
    assert not bob.leads
    await bob.lives(LONGEST_PAUSE)
    assert bob.leads


async def test_elector_takes_released_lease_at_next_read(
    ann: Candidate, bob: Candidate, admin: Client, lease: Key
) -> None:
    await ann.start()
    await bob.start()
    await ann.stop()
    await ann.elector.release()
    assert not ann.leads
    assert "holderIdentity" not in await spec_of(admin, lease)
    await bob.lives(LONGEST_PAUSE)
    assert bob.leads


async def test_release_survives_changed_lease(ann: Candidate, admin: Client, lease: Key) -> None:
    await ann.start()
    await ann.stop()
    await admin.merge_patch(Ref(LEASE, lease), {"metadata": {"annotations": {"touched": "yes"}}})
    await ann.elector.release()
    assert "holderIdentity" not in await spec_of(admin, lease)


async def test_release_spares_lease_of_another(ann: Candidate, bob: Candidate, admin: Client, lease: Key) -> None:
    await ann.start()
    await bob.start()
    await bob.lives(TIMES.duration + LONGEST_PAUSE)
    assert bob.leads
    await ann.elector.release()  # its own clock has not moved, so it does not know yet
    assert (await spec_of(admin, lease))["holderIdentity"] == "bob"


async def test_elector_survives_metadata_change(ann: Candidate, admin: Client, lease: Key) -> None:
    await ann.start()
    for turn in range(3):  # together longer than one renewal lasts
        await admin.merge_patch(Ref(LEASE, lease), {"metadata": {"annotations": {"turn": str(turn)}}})
        await ann.lives(2 * LONGEST_PAUSE)
        assert ann.leads
    assert ann.terms == 1


async def test_elector_stops_when_another_holds_lease(ann: Candidate, admin: Client, lease: Key) -> None:
    await ann.start()
    await admin.merge_patch(Ref(LEASE, lease), {"spec": {"holderIdentity": "an admin's choice"}})
    await ann.lives(LONGEST_PAUSE)
    assert not ann.leads
    assert ann.elector.holder == "an admin's choice"


async def test_elector_stops_when_lease_is_deleted(ann: Candidate, admin: Client, lease: Key) -> None:
    await ann.elector.campaign()
    await admin.delete(Ref(LEASE, lease))
    holding = asyncio.create_task(ann.elector.hold())
    await ann.clock.advance(LONGEST_PAUSE)
    await asyncio.wait_for(holding, timeout=TIMEOUT)
    assert not ann.leads
    await ann.start()
    assert ann.leads


async def test_elector_waits_for_holder_of_deleted_lease(
    ann: Candidate, bob: Candidate, admin: Client, lease: Key
) -> None:
    await ann.start()
    await bob.start()
    await admin.delete(Ref(LEASE, lease))
    await bob.lives(TIMES.usable + LONGEST_PAUSE)
    assert (ann.leads, bob.leads) == (True, False)  # ann has not looked
    await bob.lives(TIMES.duration)
    assert bob.leads


@pytest.mark.parametrize(
    ("spec", "taken_after"),
    [
        pytest.param({}, 0, id="nothing"),
        pytest.param({"leaseDurationSeconds": 3600, "leaseTransitions": 7}, 0, id="a-duration-without-a-holder"),
        pytest.param({"holderIdentity": "someone"}, TIMES.duration, id="a-holder-without-a-duration"),
        pytest.param({"holderIdentity": "someone", "leaseDurationSeconds": 3}, 3, id="a-holder-with-a-shorter-one"),
        pytest.param({"holderIdentity": "ann", "leaseDurationSeconds": 3600}, 0, id="a-claim-of-our-own"),
    ],
)
async def test_elector_takes_incomplete_lease(
    spec: dict[str, Any], taken_after: int, ann: Candidate, admin: Client, lease: Key
) -> None:
    await admin.create(a_lease(lease, **spec))
    await ann.start()
    await ann.lives(taken_after)
    assert ann.leads == (taken_after == 0)
    await ann.lives(LONGEST_PAUSE)
    assert ann.leads


class AnotherDay(ManualClock):
    """Its wall clock is ten years ahead."""

    def utc(self) -> datetime:
        return super().utc() + timedelta(days=3650)


async def test_elector_ignores_wall_clocks(control_plane: ControlPlane, lease: Key, ann: Candidate) -> None:
    async with a_candidate(control_plane, lease, "bob", AnotherDay()) as bob:
        await ann.start()
        await bob.start()
        assert (ann.leads, bob.leads) == (True, False)
        await bob.lives(TIMES.duration + LONGEST_PAUSE)
        assert bob.leads
        await ann.stop()
        await ann.clock.advance(TIMES.usable)
        await ann.start()
        assert not ann.leads


async def test_elector_stops_after_suspend(ann: Candidate, bob: Candidate) -> None:
    await ann.start()
    await bob.start()
    await bob.lives(TIMES.duration + LONGEST_PAUSE)
    await ann.stop()
    await ann.clock.advance(3600)  # a suspended machine: no timer has fired
    assert not ann.leads
    await ann.start()
    assert (ann.leads, bob.leads) == (False, True)


async def test_elector_requests_only_the_lease(control_plane: ControlPlane, lease: Key, gateway: Gateway) -> None:
    async with an_elector(control_plane, lease, "ann", ManualClock(), server=gateway.server) as elector:
        await elector.campaign()
    path = f"/apis/coordination.k8s.io/v1/namespaces/{lease.namespace}/leases/{lease.name}"
    assert [(request.method, request.path) for request in gateway.requests] == [("GET", path), ("PATCH", path)]


async def test_elector_counts_term_from_before_request(
    control_plane: ControlPlane, lease: Key, gateway: Gateway
) -> None:
    clock = ManualClock()

    async def slowly(request: web.BaseRequest) -> None:
        await clock.advance(3 if request.method == "PATCH" else 0)

    gateway.intercept = slowly
    async with an_elector(control_plane, lease, "ann", clock, server=gateway.server) as elector:
        await elector.campaign()
        assert elector.remaining() == TIMES.usable - 3


async def test_elector_reports_forbidden_lease(control_plane: ControlPlane, lease: Key, admin: Client) -> None:
    stranger = await an_account(admin, Access("stranger"), Installation(lease.namespace))
    async with a_client(control_plane, stranger.token) as client:
        elector = Elector(client, Candidacy(lease, "ann", "tests-lease", TIMES), ManualClock(), Random(1))
        campaign = asyncio.create_task(elector.campaign())
        assert await eventually(lambda: "forbidden" in elector.trouble)
        campaign.cancel()
        await asyncio.gather(campaign, return_exceptions=True)


async def test_elector_stops_before_another_leads(control_plane: ControlPlane, lease: Key, proxy: FaultProxy) -> None:
    clock = SystemClock()
    async with (
        an_elector(control_plane, lease, "ann", clock, times=MOMENTS, server=proxy.server) as ann,
        an_elector(control_plane, lease, "bob", clock, times=MOMENTS) as bob,
    ):
        await ann.campaign()
        holding = asyncio.create_task(ann.hold())
        campaign = asyncio.create_task(bob.campaign())
        assert await eventually(lambda: bob.holder == "ann")
        proxy.freeze()
        left, frozen_at = ann.remaining(), time.monotonic()
        assert left <= MOMENTS.usable
        await asyncio.wait_for(holding, timeout=TIMEOUT)
        stopped_after = time.monotonic() - frozen_at
        assert not bob.leads
        assert stopped_after < left + MOMENTS.usable
        with pytest.raises(NotLeading):
            ann.remaining()
        await asyncio.wait_for(campaign, timeout=TIMEOUT)
        assert bob.leads
        proxy.thaw()
        assert not ann.leads
