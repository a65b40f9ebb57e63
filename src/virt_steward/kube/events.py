"""Events that people see beside an object: told once, even across restarts, and never in a flood.

An event's name follows from what it regards, its reason and its episode, so a second telling meets the first one.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import re
from collections import OrderedDict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Protocol

import structlog

from virt_steward.kube.errors import AlreadyExists, KubeError, NotFound
from virt_steward.objects.identity import Key, Kind, Ref, Regarding
from virt_steward.objects.wallclock import rfc3339_micro

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from virt_steward.kube.client import Client, Object

log = structlog.get_logger()

EVENT = Kind("events.k8s.io", "Event", "events")
REMEMBERED = 2048
WAITING = 1000
REPEAT_INTERVAL = 60.0
FEWEST_REPEATS = 2
"""A series of fewer is none to the server."""
LONGEST_NOTE = 1024


@dataclass(frozen=True, slots=True)
class Occurrence:
    """Something that happened, in words."""

    regarding: Regarding
    type: Literal["Normal", "Warning"]
    reason: str
    """For machines, in CamelCase."""
    action: str
    """What was done or refused, in CamelCase."""
    note: str
    """For people, a sentence with names."""
    episode: str = ""
    """Tells one occurrence from the next of the same reason: a generation, a hash, a point in time."""
    related: Regarding | None = None
    """The other object that it is about, where many are reported on one."""

    @property
    def source(self) -> str:
        """What a flood of events would be about."""
        return f"{self.regarding.uid} {self.related.ref}" if self.related else self.regarding.uid

    @property
    def key(self) -> Key:
        told = f"{self.source}\0{self.reason}\0{self.episode}"
        digest = hashlib.blake2b(told.encode(), digest_size=8).hexdigest()
        # Roles and their like have colons in their names, which events may not have.
        name = re.sub("[^a-z0-9.-]", "-", self.regarding.ref.key.name.lower())[:230].rstrip(".-")
        return Key(self.regarding.ref.key.namespace or "default", f"{name}.{digest}")


class Limiter(Protocol):
    """Says whether one more event of a source is acceptable now."""

    def allows(self, source: str) -> bool: ...


@dataclass(slots=True)
class _Told:
    count: int
    last_sent: float


@dataclass(frozen=True, slots=True)
class _Telling:
    key: Key
    occurrence: Occurrence
    count: int
    renews: bool
    """Whether an event that a process before us has told is to say that it happened again."""


class Recorder:
    """Tells occurrences in the background: a reconcile never waits for an event, nor fails because of one."""

    def __init__(
        self, client: Client, controller: str, instance: str, *, limiter: Limiter, clock: Callable[[], datetime]
    ) -> None:
        self._client = client
        self._controller = controller
        self._instance = instance
        self._limiter = limiter
        self._clock = clock
        self._told: OrderedDict[Key, _Told] = OrderedDict()
        self._waiting: asyncio.Queue[_Telling] = asyncio.Queue(WAITING)
        self.dropped = 0

    def once(self, occurrence: Occurrence) -> None:
        """Tell it, unless it was told before: by us, or by a process before us."""
        key = occurrence.key
        if key not in self._told:
            self._enqueue(_Telling(key, occurrence, 1, renews=False))

    def again(self, occurrence: Occurrence) -> None:
        """Tell it, and count how often it happened; the count reaches the server at most once a minute."""
        self._repeat(occurrence, REPEAT_INTERVAL)

    def anew(self, occurrence: Occurrence) -> None:
        """Tell it, and if it was told before, say at once that it happened again: it was otherwise in between."""
        self._repeat(occurrence, 0.0)

    async def run(self) -> None:
        """Send what is recorded, one at a time; ends only by cancellation."""
        while True:
            telling = await self._waiting.get()
            try:
                await self._send(telling)
            except KubeError as error:
                self._told.pop(telling.key, None)  # the next telling tries again
                log.warning("event not written", reason=telling.occurrence.reason, error=str(error))
            finally:
                self._waiting.task_done()

    async def flush(self, grace: float) -> None:
        """Wait until all is sent, but not for ever."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(grace):
                await self._waiting.join()

    def _repeat(self, occurrence: Occurrence, interval: float) -> None:
        key = occurrence.key
        told = self._told.get(key)
        if told is None:
            self._enqueue(_Telling(key, occurrence, 1, renews=True))
            return
        told.count += 1
        if self._now() - told.last_sent >= interval:
            self._enqueue(_Telling(key, occurrence, told.count, renews=True))

    def _enqueue(self, telling: _Telling) -> None:
        if self._waiting.full() or not self._limiter.allows(telling.occurrence.source):
            self.dropped += 1  # a hot loop: the log has it all
            return
        self._remember(telling.key, telling.count)
        self._waiting.put_nowait(telling)

    def _remember(self, key: Key, count: int) -> None:
        self._told[key] = _Told(count, self._now())
        self._told.move_to_end(key)
        while len(self._told) > REMEMBERED:
            self._told.popitem(last=False)

    async def _send(self, telling: _Telling) -> None:
        if telling.count > 1:
            await self._renew(telling)
            return
        try:
            await self._client.create(self._event(telling.key, telling.occurrence))
        except AlreadyExists:  # told before a restart
            if telling.renews:
                await self._renew(telling)

    async def _renew(self, telling: _Telling) -> None:
        count = max(telling.count, FEWEST_REPEATS)
        series = {"count": count, "lastObservedTime": rfc3339_micro(self._clock())}
        try:
            await self._client.merge_patch(Ref(EVENT, telling.key), {"series": series})
        except NotFound:  # expired meanwhile
            await self._client.create(self._event(telling.key, telling.occurrence))

    def _event(self, key: Key, occurrence: Occurrence) -> Object:
        related = {"related": _reference(occurrence.related)} if occurrence.related else {}
        return {
            "apiVersion": "events.k8s.io/v1",
            "kind": "Event",
            "metadata": {"name": key.name, "namespace": key.namespace},
            "eventTime": rfc3339_micro(self._clock()),
            "reportingController": self._controller,
            "reportingInstance": self._instance,
            "type": occurrence.type,
            "reason": occurrence.reason,
            "action": occurrence.action,
            "note": _shortened(occurrence.note),
            "regarding": _reference(occurrence.regarding),
            **related,
        }

    def _now(self) -> float:
        return self._clock().timestamp()


def _reference(regarding: Regarding) -> dict[str, str]:
    return {
        "apiVersion": regarding.api_version,
        "kind": regarding.ref.kind.name,
        "namespace": regarding.ref.key.namespace,
        "name": regarding.ref.key.name,
        "uid": regarding.uid,
    }


def _shortened(note: str) -> str:
    raw = note.encode()
    return note if len(raw) <= LONGEST_NOTE else raw[: LONGEST_NOTE - 3].decode(errors="ignore") + "…"
