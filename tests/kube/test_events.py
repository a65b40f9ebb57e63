import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from structlog.testing import capture_logs

from tests.audit import AuditLog
from tests.clients import a_client
from tests.proxy import FaultProxy
from virt_steward.kube.client import Client, Selection
from virt_steward.kube.events import EVENT, LONGEST_NOTE, REPEAT_INTERVAL, Occurrence, Recorder
from virt_steward.objects.identity import Ref, Regarding, ref_of
from virt_steward.objects.wallclock import rfc3339_micro
from virt_steward_demo.local.controlplane import ControlPlane

GRACE = 10


class Clock:
    def __init__(self) -> None:
        self.now = datetime.now(UTC)

    def __call__(self) -> datetime:
        return self.now

    def advance(self, seconds: float) -> None:
        self.now += timedelta(seconds=seconds)


class Allowance:
    """Lets so many events pass."""

    def __init__(self, left: int) -> None:
        self._left = left

    def allows(self, _source: str) -> bool:
        self._left -= 1
        return self._left >= 0


class Rig:
    """A recorder at work."""

    def __init__(self, client: Client, allowance: int = 1000) -> None:
        self.clock = Clock()
        self.heard: list[Occurrence] = []
        self.recorder = Recorder(
            client,
            "virt-steward",
            "pod-1",
            limiter=Allowance(allowance),
            clock=self.clock,
            listener=self.heard.append,
        )

    async def written(self) -> None:
        await self.recorder.flush(GRACE)


@asynccontextmanager
async def a_desk(client: Client, allowance: int = 1000) -> AsyncIterator[Rig]:
    rig = Rig(client, allowance)
    task = asyncio.ensure_future(rig.recorder.run())
    try:
        yield rig
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


async def about(client: Client, namespace: str, name: str = "thing") -> Occurrence:
    metadata = {"name": name, "namespace": namespace}
    thing = await client.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata})
    return occurrence(thing)


def occurrence(regarding: dict[str, Any]) -> Occurrence:
    which = Regarding(ref_of(regarding), regarding["apiVersion"], regarding["metadata"]["uid"])
    return Occurrence(which, "Normal", "PlanApproved", "Approve", "plan install-abc approved", episode="1")


async def events(client: Client, namespace: str) -> list[dict[str, Any]]:
    return await client.list(EVENT, Selection(namespace, fields="reportingController=virt-steward"))


async def test_recorder_writes_event(admin: Client, namespace: str) -> None:
    happened = await about(admin, namespace)
    async with a_desk(admin) as rig:
        rig.recorder.once(happened)
        await rig.written()
    [event] = await events(admin, namespace)
    assert (event["type"], event["reason"], event["action"]) == ("Normal", "PlanApproved", "Approve")
    assert event["note"] == "plan install-abc approved"
    assert (event["reportingController"], event["reportingInstance"]) == ("virt-steward", "pod-1")
    assert event["regarding"] == {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "namespace": namespace,
        "name": "thing",
        "uid": happened.regarding.uid,
    }
    assert event["metadata"]["name"] == happened.key.name


async def test_recorder_tells_listener_every_occurrence(admin: Client, namespace: str) -> None:
    happened = await about(admin, namespace)
    async with a_desk(admin) as rig:
        rig.recorder.once(happened)
        rig.recorder.again(happened)
        rig.recorder.tell(replace(happened, reason="Fine"))
        await rig.written()
    assert [one.reason for one in rig.heard] == [happened.reason, happened.reason, "Fine"]
    assert [one["reason"] for one in await events(admin, namespace)] == [happened.reason]


async def test_recorder_writes_related_object(admin: Client, namespace: str) -> None:
    happened, other = await about(admin, namespace), await about(admin, namespace, "other")
    async with a_desk(admin) as rig:
        rig.recorder.once(replace(happened, related=other.regarding))
        await rig.written()
    [event] = await events(admin, namespace)
    assert (event["regarding"]["name"], event["related"]["name"]) == ("thing", "other")
    assert event["related"]["uid"] == other.regarding.uid


async def test_once_records_once_across_restarts(admin: Client, namespace: str) -> None:
    happened = await about(admin, namespace)
    with capture_logs() as logged:
        for _process in range(2):
            async with a_desk(admin) as rig:
                rig.recorder.once(happened)
                rig.recorder.once(happened)
                await rig.written()
                rig.recorder.once(replace(happened, note="in other words"))
                await rig.written()
    assert logged == []
    assert [event["note"] for event in await events(admin, namespace)] == [happened.note]


@pytest.mark.parametrize(
    "differs",
    [
        pytest.param(lambda first: replace(first, episode="2"), id="episode"),
        pytest.param(lambda first: replace(first, reason="PlanRefused"), id="reason"),
        pytest.param(lambda first: replace(first, related=first.regarding), id="related object"),
    ],
)
async def test_once_records_each_occurrence(
    differs: Callable[[Occurrence], Occurrence], admin: Client, namespace: str
) -> None:
    happened = await about(admin, namespace)
    async with a_desk(admin) as rig:
        rig.recorder.once(happened)
        rig.recorder.once(differs(happened))
        await rig.written()
    assert len(await events(admin, namespace)) == 2


async def test_again_sends_count_once_a_minute(admin: Client, namespace: str, audit_log: AuditLog) -> None:
    happened = await about(admin, namespace)
    mark = audit_log.mark()
    async with a_desk(admin) as rig:
        for _ in range(5):
            rig.recorder.again(happened)
        await rig.written()
        [event] = await events(admin, namespace)
        assert "series" not in event
        rig.clock.advance(REPEAT_INTERVAL)
        rig.recorder.again(happened)
        rig.recorder.again(happened)
        await rig.written()
    [event] = await events(admin, namespace)
    assert event["series"]["count"] == 6
    assert event["series"]["lastObservedTime"] == rig.clock.now.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    writes = [request.verb for request in audit_log.since(mark) if request.resource == "events" and request.is_write]
    assert writes == ["create", "patch"]


async def test_again_recreates_expired_event(admin: Client, namespace: str) -> None:
    happened = await about(admin, namespace)
    async with a_desk(admin) as rig:
        rig.recorder.again(happened)
        await rig.written()
        await admin.delete(Ref(EVENT, happened.key))
        rig.clock.advance(REPEAT_INTERVAL)
        rig.recorder.again(happened)
        await rig.written()
    assert len(await events(admin, namespace)) == 1


async def test_again_counts_across_restarts(admin: Client, namespace: str) -> None:
    happened = await about(admin, namespace)
    for _process in range(2):
        async with a_desk(admin) as rig:
            rig.recorder.again(happened)
            await rig.written()
    [event] = await events(admin, namespace)
    assert event["series"]["count"] == 2
    assert event["series"]["lastObservedTime"] == rfc3339_micro(rig.clock.now)


async def test_anew_sends_at_once(admin: Client, namespace: str) -> None:
    happened = await about(admin, namespace)
    async with a_desk(admin) as rig:
        rig.recorder.again(happened)
        await rig.written()
        rig.clock.advance(1)
        rig.recorder.again_now(happened)
        await rig.written()
    [event] = await events(admin, namespace)
    assert event["series"]["count"] == 2
    assert event["series"]["lastObservedTime"] == rfc3339_micro(rig.clock.now)


async def test_recorder_limits_hot_loop(admin: Client, namespace: str) -> None:
    happened = await about(admin, namespace)
    async with a_desk(admin, allowance=3) as rig:
        for episode in range(50):
            rig.recorder.once(replace(happened, episode=str(episode)))
        await rig.written()
    assert len(await events(admin, namespace)) == 3
    assert rig.recorder.dropped == 47


@pytest.mark.parametrize("letter", ["x", "ü", "€"], ids=["one byte", "two bytes", "three bytes"])
async def test_recorder_shortens_long_notes(letter: str, admin: Client, namespace: str) -> None:
    happened = replace(await about(admin, namespace), note=letter * 2000)
    async with a_desk(admin) as rig:
        rig.recorder.once(happened)
        await rig.written()
    [event] = await events(admin, namespace)
    assert event["note"].endswith(letter + "…")
    assert LONGEST_NOTE - 5 < len(event["note"].encode()) <= LONGEST_NOTE


@pytest.mark.parametrize("name", ["n" * 253, f"{'n' * 229}.{'n' * 23}"], ids=["long", "with a dot where it is cut"])
async def test_event_name_is_valid_for_any_object_name(name: str, admin: Client, namespace: str) -> None:
    happened = await about(admin, namespace, name)
    async with a_desk(admin) as rig:
        rig.recorder.once(happened)
        await rig.written()
    assert len(await events(admin, namespace)) == 1


async def test_event_of_cluster_scoped_object_is_in_default_namespace(admin: Client, namespace: str) -> None:
    name = f"System:{namespace}"
    rbac = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": name}}
    happened = occurrence(await admin.create(rbac))
    async with a_desk(admin) as rig:
        rig.recorder.once(happened)
        await rig.written()
    event = await admin.get(Ref(EVENT, happened.key))
    assert event["metadata"]["namespace"] == "default"
    assert event["regarding"]["name"] == name


async def test_recorder_logs_refused_event_and_goes_on(admin: Client, namespace: str) -> None:
    happened = await about(admin, namespace)
    with capture_logs() as logged:
        async with a_desk(admin) as rig:
            rig.recorder.once(replace(happened, reason=""))
            rig.recorder.once(happened)
            await rig.written()
    assert [line["event"] for line in logged] == ["event not sent"]
    assert [event["reason"] for event in await events(admin, namespace)] == ["PlanApproved"]


async def test_recorder_retries_failed_event_on_next_occurrence(
    admin: Client, namespace: str, control_plane: ControlPlane, proxy: FaultProxy
) -> None:
    happened = await about(admin, namespace)
    async with a_client(control_plane, server=proxy.server) as client, a_desk(client) as rig:
        await proxy.refuse()
        with capture_logs() as logged:
            rig.recorder.once(happened)
            await rig.written()
        assert [line["event"] for line in logged] == ["event not sent"]
        await proxy.accept()
        rig.recorder.once(happened)
        await rig.written()
    assert len(await events(admin, namespace)) == 1


async def test_flush_is_limited_by_grace(
    control_plane: ControlPlane, proxy: FaultProxy, admin: Client, namespace: str
) -> None:
    happened = await about(admin, namespace)
    async with a_client(control_plane, server=proxy.server) as client, a_desk(client) as rig:
        proxy.freeze()
        rig.recorder.once(happened)
        async with asyncio.timeout(GRACE):
            await rig.recorder.flush(0.1)
        await proxy.cut()
