"""Kubernetes Events: each occurrence is recorded once, also across restarts, and a hot loop cannot flood the server.

The name of an Event is deterministic: it is derived from the object that it regards, the reason and the episode. A
second attempt to record the same occurrence is a create of the same name, and the API server answers AlreadyExists.
No state has to survive a restart for that, since the server itself remembers.

Example: the approver approves plan `install-abc` (uid 7f3…) and records `PlanApproved` with the episode `csv-1.2.0`.
The Event is called `install-abc.` and a digest of these three. The process dies before it could note that. After the
restart it decides the same, records the same occurrence, gets AlreadyExists, and users see one Event. When the same
plan is approved for another CSV, the episode differs, so that is another name and another Event.

Three verbs say what a repetition means: `once` ignores it, `again` counts it in the Event's series (sent at most once a
minute), `again_now` counts it and sends that at once, for something that was different in between.
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
QUEUE_SIZE = 1000
REPEAT_INTERVAL = 60.0
FEWEST_REPEATS = 2
"""The smallest count that the API server accepts in a series."""
LONGEST_NOTE = 1024


@dataclass(frozen=True, slots=True)
class Occurrence:
    """Something that happened to an object: the content of an Event."""

    regarding: Regarding
    type: Literal["Normal", "Warning"]
    reason: str
    """For machines, in CamelCase."""
    action: str
    """What was done or refused, in CamelCase."""
    note: str
    """The message for people: a sentence with names."""
    episode: str = ""
    """Distinguishes one occurrence from the next of the same reason: a generation, a hash, a point in time."""
    related: Regarding | None = None
    """Another object that it is about, where events about many objects regard one."""

    @property
    def source(self) -> str:
        """What the rate limit counts by."""
        return f"{self.regarding.uid} {self.related.ref}" if self.related else self.regarding.uid

    @property
    def key(self) -> Key:
        """The deterministic name of the Event."""
        story = f"{self.source}\0{self.reason}\0{self.episode}"
        digest = hashlib.blake2b(story.encode(), digest_size=8).hexdigest()
        # Roles and some other kinds allow colons in names; Events do not.
        name = re.sub("[^a-z0-9.-]", "-", self.regarding.ref.key.name.lower())[:230].rstrip(".-")
        return Key(self.regarding.ref.key.namespace or "default", f"{name}.{digest}")


class Limiter(Protocol):
    """Decides whether one more event of a source may be sent now."""

    def allows(self, source: str) -> bool: ...


@dataclass(slots=True)
class _Sent:
    count: int
    last_sent: float


@dataclass(frozen=True, slots=True)
class _QueuedEvent:
    key: Key
    occurrence: Occurrence
    count: int
    renews: bool
    """Whether an Event that exists already, from before a restart, gets a higher count."""


def _ignore(_occurrence: Occurrence) -> None:
    """Do nothing: the default of Recorder's `listener`."""


class Recorder:
    """Sends events in the background: a reconcile never waits for one, nor fails because of one."""

    def __init__(  # noqa: PLR0913 - the parts of an event's origin, and what it goes through
        self,
        client: Client,
        controller: str,
        instance: str,
        *,
        limiter: Limiter,
        clock: Callable[[], datetime],
        listener: Callable[[Occurrence], None] = _ignore,
    ) -> None:
        """`listener` is called with every occurrence, also with one that was recorded before."""
        self._client = client
        self._controller = controller
        self._instance = instance
        self._limiter = limiter
        self._clock = clock
        self._listener = listener
        self._sent: OrderedDict[Key, _Sent] = OrderedDict()
        self._queue: asyncio.Queue[_QueuedEvent] = asyncio.Queue(QUEUE_SIZE)
        self.dropped = 0

    def once(self, occurrence: Occurrence) -> None:
        """Record it, unless it was recorded before, also by an earlier process."""
        self._listener(occurrence)
        key = occurrence.key
        if key not in self._sent:
            self._enqueue(_QueuedEvent(key, occurrence, 1, renews=False))

    def again(self, occurrence: Occurrence) -> None:
        """Record it, and count how often it happened; the count is sent at most once a minute."""
        self._repeat(occurrence, REPEAT_INTERVAL)

    def again_now(self, occurrence: Occurrence) -> None:
        """Record it, and if it was recorded before, send at once that it happened again."""
        self._repeat(occurrence, 0.0)

    def tell(self, occurrence: Occurrence) -> None:
        """Tell the listener alone, without an Event: for what is said again and again, such as that all is well."""
        self._listener(occurrence)

    async def run(self) -> None:
        """Send what is queued, one event at a time; ends only by cancellation."""
        while True:
            queued = await self._queue.get()
            try:
                await self._send(queued)
            except KubeError as error:
                self._sent.pop(queued.key, None)  # so that the next attempt is sent
                log.warning("event not sent", reason=queued.occurrence.reason, error=str(error))
            finally:
                self._queue.task_done()

    async def flush(self, grace: float) -> None:
        """Wait until all is sent, at most `grace` seconds."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(grace):
                await self._queue.join()

    def _repeat(self, occurrence: Occurrence, interval: float) -> None:
        self._listener(occurrence)
        key = occurrence.key
        sent = self._sent.get(key)
        if sent is None:
            self._enqueue(_QueuedEvent(key, occurrence, 1, renews=True))
            return
        sent.count += 1
        if self._now() - sent.last_sent >= interval:
            self._enqueue(_QueuedEvent(key, occurrence, sent.count, renews=True))

    def _enqueue(self, queued: _QueuedEvent) -> None:
        if self._queue.full() or not self._limiter.allows(queued.occurrence.source):
            self.dropped += 1  # a hot loop: the log has each occurrence
            return
        self._remember(queued.key, queued.count)
        self._queue.put_nowait(queued)

    def _remember(self, key: Key, count: int) -> None:
        self._sent[key] = _Sent(count, self._now())
        self._sent.move_to_end(key)
        while len(self._sent) > REMEMBERED:
            self._sent.popitem(last=False)

    async def _send(self, queued: _QueuedEvent) -> None:
        if queued.count > 1:
            await self._renew(queued)
            return
        try:
            await self._client.create(self._event(queued.key, queued.occurrence))
        except AlreadyExists:  # recorded before a restart
            if queued.renews:
                await self._renew(queued)

    async def _renew(self, queued: _QueuedEvent) -> None:
        count = max(queued.count, FEWEST_REPEATS)
        series = {"count": count, "lastObservedTime": rfc3339_micro(self._clock())}
        try:
            await self._client.merge_patch(Ref(EVENT, queued.key), {"series": series})
        except NotFound:  # the API server deletes events after an hour
            await self._client.create(self._event(queued.key, queued.occurrence))

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
