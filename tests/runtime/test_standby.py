"""Standing by while the Lease of another implementation is renewed, and taking over when it is not."""

from datetime import datetime, timedelta

import pytest

from tests.audit import AuditLog
from tests.eventually import eventually
from tests.grants import Account
from tests.otheroperator import OtherOperator
from tests.replicas import Replicas, effective
from tests.runtime.clocks import ManualClock
from tests.stamper import other_lease
from virt_steward.kube.client import Client, Object, Selection
from virt_steward.kube.errors import NotLeading
from virt_steward.kube.events import EVENT
from virt_steward.objects.identity import Key, Ref
from virt_steward.objects.meta import Meta
from virt_steward.runtime.access import LEASE
from virt_steward.runtime.leader import Unopposed
from virt_steward.runtime.standby import LONG_AGO, LONGEST_DURATION, OtherLease, OtherLeaseSpec, StandBy

KEY = Key("operators", "other")
SECOND = timedelta(seconds=1)


def a_lease(renewed: datetime | None, holder: str | None = "go-1", duration: int | None = 15) -> OtherLease:
    return OtherLease(Meta("other", "operators", "uid-1"), OtherLeaseSpec(holder, duration, renewed))


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def standby(clock: ManualClock) -> StandBy:
    return StandBy(Unopposed(), clock)


@pytest.mark.parametrize(
    ("lease", "lasts"),
    [
        pytest.param(("go-1", 15, SECOND), 15.0, id="held"),
        pytest.param(("go-1", 30, SECOND), 30.0, id="held-for-longer"),
        pytest.param(("go-1", None, SECOND), 15.0, id="without-a-duration"),
        pytest.param(("go-1", 10**9, SECOND), LONGEST_DURATION, id="for-decades"),
        pytest.param(("go-1", 15, 60 * SECOND), 15.0, id="by-a-clock-that-is-slow"),
        pytest.param(("go-1", 15, -3600 * SECOND), 15.0, id="by-a-clock-that-is-fast"),
        pytest.param(("go-1", 15, LONG_AGO), None, id="left-behind-long-ago"),
        pytest.param(("go-1", 15, None), None, id="never-renewed"),
        pytest.param(("", 15, SECOND), None, id="released"),
        pytest.param((None, 15, SECOND), None, id="released-by-removal"),
    ],
)
async def test_lease_counts_for_its_duration_since_it_was_observed(
    standby: StandBy, clock: ManualClock, lease: tuple[str, int, timedelta | None], lasts: float | None
) -> None:
    holder, duration, age = lease
    renewed = None if age is None else clock.utc() - age
    standby.handle(KEY, None, a_lease(renewed, holder, duration))
    if lasts is None:
        assert standby.rival is None
        return
    assert standby.rival is not None
    await clock.advance(lasts)
    assert standby.rival is not None
    await clock.advance(0.001)
    assert standby.rival is None


async def test_renewal_starts_the_duration_again_and_a_mere_edit_does_not(standby: StandBy, clock: ManualClock) -> None:
    first = a_lease(clock.utc())
    standby.handle(KEY, None, first)
    await clock.advance(10)
    second = a_lease(clock.utc())
    standby.handle(KEY, first, second)
    await clock.advance(10)
    assert standby.rival is not None
    standby.handle(KEY, second, OtherLease(Meta("other", "operators", "uid-1", "9"), second.spec))
    await clock.advance(5.001)
    assert standby.rival is None


async def test_permit_refuses_writes_while_another_implementation_runs(standby: StandBy, clock: ManualClock) -> None:
    assert standby.remaining() > 0
    lease = a_lease(clock.utc())
    standby.handle(KEY, None, lease)
    with pytest.raises(NotLeading, match="standing by: go-1 holds Lease operators/other"):
        standby.remaining()
    standby.handle(KEY, lease, None)
    assert standby.remaining() > 0


async def test_one_of_two_leases_is_enough(standby: StandBy, clock: ManualClock) -> None:
    lease = a_lease(clock.utc())
    standby.handle(KEY, None, lease)
    standby.handle(Key("elsewhere", "other"), None, lease)
    standby.handle(KEY, lease, None)
    assert standby.rival is not None
    assert standby.rival.lease.namespace == "elsewhere"


@pytest.fixture
def other(admin: Client, namespace: str) -> OtherOperator:
    return OtherOperator(admin, Key(namespace, other_lease(namespace)))


async def events(admin: Client, namespace: str) -> list[Object]:
    return [one for one in await admin.list(EVENT, Selection(namespace)) if one["reason"] == "StandingBy"]


async def test_controller_stands_by_and_takes_over_when_the_lease_expires(
    replicas: Replicas, ann: Account, other: OtherOperator, admin: Client, audit_log: AuditLog
) -> None:
    begin = audit_log.mark()
    async with other.running():
        await replicas.ask_for_stamps("a")
        replica = replicas.start(ann)
        assert await eventually(lambda: replica.stands_by)
        assert await eventually(lambda: events(admin, replicas.namespace))
        assert not effective(audit_log.since(begin), ann.user)
    assert await eventually(replicas.all_are_stamped)
    (event,) = await events(admin, replicas.namespace)
    assert event["note"].startswith(f"standing by: go-1 holds Lease {replicas.namespace}/")
    assert not replica.stands_by


async def test_leader_stops_writing_when_another_implementation_starts(
    replicas: Replicas, ann: Account, other: OtherOperator, admin: Client, audit_log: AuditLog
) -> None:
    replica = replicas.start(ann)
    assert await eventually(lambda: replica.leads)
    async with other.running():
        assert await eventually(lambda: replica.stands_by)
        mark = audit_log.mark()
        await replicas.ask_for_stamps("a")
        assert await eventually(lambda: len([one for one in audit_log.since(mark) if one.resource == "leases"]) > 3)
        assert not effective(audit_log.since(mark), ann.user)
    await other.delete()
    assert await eventually(replicas.all_are_stamped)
    lease = await admin.get(Ref(LEASE, Key(replicas.namespace, ann.access.lease)))
    assert lease["spec"]["leaseTransitions"] == 1  # it had released it
    assert [entry["event"] for entry in replica.log()].count("stamper begins") == 2, "whenever it leads"
