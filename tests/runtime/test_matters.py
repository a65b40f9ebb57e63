"""One notification per matter and state, also across restarts and replicas."""

import asyncio
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest
from structlog.testing import capture_logs

from tests.clients import a_client
from tests.eventually import eventually
from tests.grants import an_account
from tests.runtime.clocks import ManualClock, settle
from virt_steward.kube.client import Client
from virt_steward.kube.errors import ServerUnreachable
from virt_steward.kube.events import Occurrence
from virt_steward.objects.identity import Key, Kind, Ref, Regarding
from virt_steward.runtime.access import Access, Installation
from virt_steward.runtime.matters import (
    MOST_REMEMBERED,
    NOTIFICATION_MEMORY,
    UNSEEN,
    ClosesMatters,
    ConfigMapMemory,
    IgnoresOccurrence,
    MatterMemory,
    MatterNotifications,
    NotificationRules,
    OpensMatter,
    memory_grants,
    memory_name,
)
from virt_steward.runtime.notifications import Notification
from virt_steward_demo.local.controlplane import ControlPlane

RULES = NotificationRules(
    {
        "Ambiguous": OpensMatter("placement"),
        "Silent": OpensMatter("placement"),
        "Placed": ClosesMatters(("placement",)),
        "Staged": OpensMatter("rollout", by_episode=True),
        "Released": ClosesMatters(("rollout",)),
        "Noise": IgnoresOccurrence(),
    },
    lambda occurrence: f"/machines/{occurrence.regarding.ref.key.name}",
)
MACHINE = Kind("vitistack.io", "Machine", "machines")


class Remembered:
    """A memory that a test looks into."""

    def __init__(self) -> None:
        self.states: dict[str, str] = {}
        self.writes = 0
        self.is_down = False

    async def read(self) -> Iterable[str]:
        self._check()
        return tuple(self.states)

    async def write(self, changes: Mapping[str, str | None]) -> None:
        self._check()
        self.writes += 1
        for key, value in changes.items():
            if value is None:
                self.states.pop(key, None)
            else:
                self.states[key] = value

    def _check(self) -> None:
        if self.is_down:
            raise ServerUnreachable("connection refused")


class Outbox:
    endpoints = ("team",)

    def __init__(self) -> None:
        self.sent: list[Notification] = []
        self.takes = asyncio.Event()
        """Whether the receiver answers."""
        self.takes.set()

    def send(self, endpoint: str, notice: Notification) -> None:
        assert endpoint == "team"
        self.sent.append(notice)

    async def delivered(self, endpoint: str) -> None:
        assert endpoint == "team"
        await self.takes.wait()

    @property
    def told(self) -> list[str]:
        return [f"{one.data['state']} {one.data['reason']} {one.subject}" for one in self.sent]


class Process:
    """One replica that notifies."""

    def __init__(self, memory: MatterMemory, clock: ManualClock) -> None:
        self.outbox = Outbox()
        self.matters = MatterNotifications("placement", "team", self.outbox, rules=RULES, memory=memory, clock=clock)

    async def hears(self, *occurrences: Occurrence) -> list[str]:
        for one in occurrences:
            self.matters.handle(one)
        await settle()
        return self.outbox.told


@asynccontextmanager
async def a_process(memory: MatterMemory, clock: ManualClock | None = None) -> AsyncIterator[Process]:
    process = Process(memory, clock or ManualClock())
    task = asyncio.create_task(process.matters.run())
    try:
        yield process
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


def an_occurrence(reason: str, name: str = "db", episode: str = "", type_: str = "Warning") -> Occurrence:
    regarding = Regarding(Ref(MACHINE, Key("shop", name)), "vitistack.io/v1alpha1", f"uid-{name}")
    return Occurrence(regarding, "Normal" if type_ == "Normal" else "Warning", reason, "Place", "why", episode)


AMBIGUOUS, SILENT, PLACED = an_occurrence("Ambiguous"), an_occurrence("Silent"), an_occurrence("Placed")


@pytest.mark.parametrize(
    ("heard", "told"),
    [
        pytest.param((AMBIGUOUS, AMBIGUOUS), ["open Ambiguous"], id="repeated"),
        pytest.param((AMBIGUOUS, replace(AMBIGUOUS, episode="2")), ["open Ambiguous"], id="other-words"),
        pytest.param((AMBIGUOUS, SILENT, AMBIGUOUS), ["open Ambiguous", "open Silent"], id="two-states"),
        pytest.param((AMBIGUOUS, SILENT, PLACED), ["open Ambiguous", "open Silent", "resolved Placed"], id="closed"),
        pytest.param((PLACED, PLACED), [], id="closed-without-being-open"),
        pytest.param(
            (AMBIGUOUS, PLACED, PLACED, AMBIGUOUS),
            ["open Ambiguous", "resolved Placed", "open Ambiguous"],
            id="opened-again",
        ),
        pytest.param(
            (an_occurrence("Staged", episode="1"), an_occurrence("Staged", episode="2"), an_occurrence("Released")),
            ["open Staged", "open Staged", "resolved Released"],
            id="episodes",
        ),
        pytest.param((AMBIGUOUS, an_occurrence("Released")), ["open Ambiguous"], id="another-topic-closed"),
        pytest.param((an_occurrence("Noise"),), [], id="ignored"),
        pytest.param((an_occurrence("Torn"), an_occurrence("Torn")), ["open Torn"], id="warning-without-a-rule"),
        pytest.param((an_occurrence("Fine", type_="Normal"),), [], id="normal-without-a-rule"),
    ],
)
async def test_matters_are_notified_once_per_state(heard: tuple[Occurrence, ...], told: list[str]) -> None:
    async with a_process(Remembered()) as process:
        assert await process.hears(*heard) == [f"{one} shop/db" for one in told]


@pytest.mark.parametrize("heard", [1, 2, 3])
async def test_matters_are_the_same_whenever_the_process_restarts(heard: int) -> None:
    memory, clock = Remembered(), ManualClock()
    story = (AMBIGUOUS, SILENT, AMBIGUOUS, PLACED, PLACED)
    told = []
    for part in (story[:heard], (AMBIGUOUS, SILENT), story[heard:]):  # in between, all that lasts is recorded again
        async with a_process(memory, clock) as process:
            told += await process.hears(*part)
    assert told == ["open Ambiguous shop/db", "open Silent shop/db", "resolved Placed shop/db"]
    assert memory.states == {}


@pytest.mark.parametrize(
    ("before", "lost", "told"),
    [
        pytest.param((), AMBIGUOUS, "open Ambiguous shop/db", id="beginning"),
        pytest.param((AMBIGUOUS,), PLACED, "resolved Placed shop/db", id="end"),
    ],
)
async def test_what_was_not_delivered_is_notified_by_next_process(
    before: tuple[Occurrence, ...], lost: Occurrence, told: str
) -> None:
    """The first process ends while the receiver does not answer: its queue is lost."""
    memory = Remembered()
    async with a_process(memory) as process:
        await process.hears(*before)
        process.outbox.takes.clear()
        await process.hears(lost, lost)
    async with a_process(memory) as successor:
        assert await successor.hears(lost, lost) == [told]
        await successor.matters.flush(5)
    async with a_process(memory) as last:
        assert await last.hears(lost) == []


async def test_what_is_not_delivered_yet_is_known_after_reload() -> None:
    memory = Remembered()
    async with a_process(memory) as process:
        await process.hears(AMBIGUOUS)
        process.outbox.takes.clear()
        await process.hears(SILENT)
        process.matters.reload()
        assert await process.hears(SILENT) == ["open Ambiguous shop/db", "open Silent shop/db"]
        await process.hears(PLACED)
        process.matters.reload()
        assert (await process.hears(PLACED))[2:] == ["resolved Placed shop/db"]
        process.outbox.takes.set()
        await process.matters.flush(5)
    assert memory.states == {}


async def test_new_leader_reads_what_others_have_notified() -> None:
    memory = Remembered()
    async with a_process(memory) as one, a_process(memory) as other:
        await other.hears(an_occurrence("Ambiguous", "web"))
        assert await one.hears(AMBIGUOUS) == ["open Ambiguous shop/db"]
        other.matters.reload()
        assert await other.hears(AMBIGUOUS, SILENT) == ["open Ambiguous shop/web", "open Silent shop/db"]


async def test_flood_costs_few_writes_and_bounded_memory() -> None:
    memory = Remembered()
    async with a_process(memory) as process:
        await process.hears(*(an_occurrence("Ambiguous", f"m-{number}") for number in range(MOST_REMEMBERED + 50)))
        assert len(process.outbox.sent) == MOST_REMEMBERED + 50
        assert len(memory.states) == MOST_REMEMBERED
        writes = memory.writes
        assert writes <= 4
        await process.hears(*(an_occurrence("Ambiguous", f"m-{number}") for number in range(50, MOST_REMEMBERED)))
        assert memory.writes == writes, "what is known costs nothing"


async def test_warning_that_nothing_closes_is_new_after_a_day() -> None:
    clock = ManualClock()
    async with a_process(Remembered(), clock) as process:
        torn = an_occurrence("Torn", episode="1")
        for _ in range(3):
            assert await process.hears(torn) == ["open Torn shop/db"]
            await clock.advance(UNSEEN)
        await clock.advance(1)
        assert await process.hears(torn) == ["open Torn shop/db"] * 2


async def test_matters_are_notified_though_nothing_remembers_them() -> None:
    memory = Remembered()
    memory.is_down = True
    with capture_logs() as logged:
        async with a_process(memory) as process:
            assert await process.hears(AMBIGUOUS, AMBIGUOUS) == ["open Ambiguous shop/db"]
            memory.is_down = False
            await process.hears(SILENT)
    assert [one["event"] for one in logged] == ["notifications not remembered, so a restart may repeat them"]
    assert len(memory.states) == 2, "what could not be written is written with the next"


async def test_notification_has_link_and_facts() -> None:
    async with a_process(Remembered()) as process:
        await process.hears(AMBIGUOUS, PLACED)
    opened, closed = process.outbox.sent
    assert opened.page == "/machines/db"
    assert opened.data == {
        "reason": "Ambiguous",
        "action": "Place",
        "severity": "Warning",
        "controller": "placement",
        "state": "open",
    }
    assert closed.text == "Resolved: Machine shop/db: Placed. why"
    assert opened.id != closed.id


async def test_memory_survives_in_a_config_map_with_granted_rights(
    control_plane: ControlPlane, admin: Client, namespace: str
) -> None:
    access = Access("placement", extras={NOTIFICATION_MEMORY: memory_grants("placement")})
    installation = Installation(namespace, prefix=namespace, extras=(NOTIFICATION_MEMORY,))
    account = await an_account(admin, access, installation)
    async with a_client(control_plane, account.token) as client:
        key = Key(namespace, memory_name("placement"))
        memory = ConfigMapMemory(client, key, "tests-notified")
        for occurrence, count in ((AMBIGUOUS, 1), (SILENT, 2), (PLACED, 0)):
            async with a_process(memory) as process:
                process.matters.handle(occurrence)
                assert await eventually(lambda process=process: len(process.outbox.sent) == 1)  # type: ignore[misc]
                assert await eventually(lambda process=process: not process.matters._unsaved)  # type: ignore[misc]
            assert len([*await memory.read()]) == count
