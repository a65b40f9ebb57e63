"""Two processes, one lease: handed over, taken over, never held by both. Users of their own tell them apart."""

import signal
from itertools import product

import pytest

from tests.audit import AuditLog, Request
from tests.eventually import eventually
from tests.grants import Account
from tests.proxy import FaultProxy
from tests.replicas import Replicas, effective
from virt_steward.kube.client import Client
from virt_steward.objects.identity import Key, Ref
from virt_steward.runtime.leader import LEASE
from virt_steward_demo.local.controlplane import ControlPlane

MOMENTS = ("--lease-duration=1", "--lease-retry=0.1")


@pytest.fixture
async def bob(replicas: Replicas) -> Account:
    return await replicas.account("bob")


def looks(requests: list[Request], account: Account) -> int:
    """How often somebody asked who leads."""
    return sum(one.user == account.user and one.resource == "leases" and one.verb == "get" for one in requests)


def attempts(requests: list[Request], account: Account) -> list[Request]:
    """Of somebody to stamp."""
    return [one for one in requests if one.user == account.user and one.resource == "configmaps" and one.is_write]


async def test_stopped_leader_hands_over_at_once(
    replicas: Replicas, ann: Account, bob: Account, admin: Client, audit_log: AuditLog
) -> None:
    begin = audit_log.mark()
    first = replicas.start(ann, "--lease-duration=60", "--lease-retry=1")
    assert await eventually(lambda: first.leads)
    second = replicas.start(bob, "--lease-duration=60", "--lease-retry=0.1")
    assert await eventually(lambda: looks(audit_log.since(begin), bob) > 0)
    assert not second.leads
    first.send(signal.SIGTERM)
    assert await eventually(lambda: second.leads)
    assert first.exit_code == 0
    assert first.log()[-1]["event"] == "stopped"
    second.send(signal.SIGINT)
    assert await eventually(lambda: not second.alive)
    assert second.exit_code == 0
    lease = await admin.get(Ref(LEASE, Key(replicas.namespace, ann.access.lease)))
    assert lease["spec"] == {"leaseTransitions": 1}


async def test_second_signal_ends_process(replicas: Replicas, ann: Account, proxy: FaultProxy) -> None:
    replica = replicas.start(ann, "--lease-duration=60", "--lease-retry=10", server=proxy.server)
    assert await eventually(lambda: replica.leads)
    proxy.freeze()  # it cannot release its lease now, and waits for that
    replica.send(signal.SIGTERM)
    assert await eventually(lambda: not replica.catches(signal.SIGTERM))
    assert replica.alive
    replica.send(signal.SIGTERM)
    assert await eventually(lambda: not replica.alive)
    assert replica.exit_code == -signal.SIGTERM


async def test_suspended_leader_writes_nothing_after_lease(
    replicas: Replicas, ann: Account, bob: Account, audit_log: AuditLog
) -> None:
    first = replicas.start(ann, *MOMENTS, fault="stamp.before:stop")
    assert await eventually(lambda: first.leads)
    await replicas.ask_for_stamps("one")
    assert await eventually(lambda: first.is_stopped)
    second = replicas.start(bob, *MOMENTS)
    assert await eventually(lambda: second.leads)
    takeover = audit_log.mark()
    first.send(signal.SIGCONT)
    assert await eventually(lambda: first.said("no longer leading"))
    assert await eventually(lambda: looks(audit_log.since(takeover), ann) > 2)
    assert await eventually(replicas.all_are_stamped)
    assert [one for one in audit_log.since(takeover) if one.user == ann.user and one.is_write] == []
    assert await replicas.stamps() == {"one": 1}


async def test_late_write_after_takeover_fails(
    replicas: Replicas, ann: Account, bob: Account, proxy: FaultProxy, audit_log: AuditLog
) -> None:
    begin = audit_log.mark()
    first = replicas.start(ann, "--lease-duration=2", fault="stamp.before:stop", server=proxy.server)
    assert await eventually(lambda: first.leads)
    second = replicas.start(bob, "--lease-duration=2")
    assert await eventually(lambda: looks(audit_log.since(begin), bob) > 0)
    await replicas.ask_for_stamps("one")
    assert await eventually(lambda: first.is_stopped)
    proxy.freeze()
    first.send(signal.SIGCONT)  # in time: the write goes out, and gets stuck on its way
    assert await eventually(lambda: first.said("no longer leading"))
    assert await eventually(replicas.all_are_stamped)
    assert second.leads
    takeover = audit_log.mark()
    proxy.thaw()
    assert await eventually(lambda: bool(attempts(audit_log.since(takeover), ann)))
    codes = {one.code for one in attempts(audit_log.since(takeover), ann)}
    assert codes <= {409, 504}  # the object has changed; or the server saw that nobody waits for its answer
    assert effective(audit_log.since(takeover), ann.user) == []
    assert await replicas.stamps() == {"one": 1}


async def test_frozen_server_never_has_two_leaders(
    replicas: Replicas, ann: Account, bob: Account, control_plane: ControlPlane
) -> None:
    both = [replicas.start(account, *MOMENTS) for account in (ann, bob)]
    assert await eventually(lambda: any(one.leads for one in both))
    await replicas.ask_for_stamps(*(f"before-{number}" for number in range(10)))
    control_plane.freeze()
    try:
        assert await eventually(lambda: not any(one.leads for one in both))
    finally:
        control_plane.thaw()
    await replicas.ask_for_stamps(*(f"after-{number}" for number in range(10)))
    assert await eventually(replicas.all_are_stamped)
    assert [(one, other) for one, other in product(*(one.terms() for one in both)) if one.overlaps(other)] == []
    assert set((await replicas.stamps()).values()) == {1}
