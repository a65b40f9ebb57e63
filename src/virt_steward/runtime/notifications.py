"""Notifications to people and systems outside of the cluster: sent in the background, late rather than never."""

from __future__ import annotations

import asyncio
import html
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from enum import Enum, auto
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import aiohttp
import msgspec
import structlog
from prometheus_client import Counter, Gauge

from virt_steward.objects.wallclock import rfc3339

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Collection, Mapping
    from datetime import datetime
    from random import Random

    from prometheus_client import CollectorRegistry

    from virt_steward.runtime.clock import Clock
    from virt_steward.runtime.endpoints import Endpoint

log = structlog.get_logger()

WAITING = 200
"""Notices kept per endpoint while it does not answer."""
TIMEOUT = 10.0
FIRST_PAUSE, LONGEST_PAUSE = 1.0, 60.0
OBJECTIONS = frozenset({400, 409, 413, 415, 422})
"""Answers that are about the notice. All others, redirects too, are about the endpoint, which may be put right."""
FLUSH = 1.0
"""Seconds that notices still to be sent get when the process stops."""


@dataclass(frozen=True, slots=True)
class Notification:
    """Something worth telling, with the attributes of a CloudEvent."""

    id: str
    """The same for the same news, so that a receiver may drop what it got before."""
    type: str
    source: str
    subject: str
    time: datetime
    text: str
    """One sentence for people."""
    data: Mapping[str, Any]
    """The facts for programs."""


class NotificationSender(Protocol):
    """What a controller sees of notifications."""

    @property
    def endpoints(self) -> Collection[str]:
        """The names that may be used."""

    def send(self, endpoint: str, notice: Notification) -> None:
        """Queue a notice for one of them and return at once."""


class EndpointResponse(Enum):
    """What came of one attempt."""

    TAKEN = auto()
    REFUSED = auto()
    """The receiver objects to this very notice: it would do so again."""
    NONE = auto()
    """No answer that counts: try again."""


class Notifier:
    """All endpoints, each with a queue of its own, so that a dead one delays no other."""

    def __init__(
        self, endpoints: Mapping[str, Endpoint], clock: Clock, rng: Random, registry: CollectorRegistry
    ) -> None:
        self._clock = clock
        self._rng = rng
        self._lines = {name: _Line(endpoint) for name, endpoint in endpoints.items()}
        self._notices = Counter(
            "virt_steward_notifications",
            "Notices by what became of them: sent, refused by the receiver, or lost since too many waited.",
            ["endpoint", "outcome"],
            registry=registry,
        )
        waiting = Gauge("virt_steward_notifications_waiting", "Notices to send.", ["endpoint"], registry=registry)
        for name, line in self._lines.items():
            waiting.labels(name).set_function(line.unsent)
            for outcome in ("sent", "refused", "lost"):
                self._notices.labels(name, outcome)

    @property
    def endpoints(self) -> Collection[str]:
        return self._lines.keys()

    def send(self, endpoint: str, notice: Notification) -> None:
        try:
            self._lines[endpoint].queue.put_nowait(notice)
        except asyncio.QueueFull:
            self._count(endpoint, "lost", notice)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Send in the background; at the end, what is left gets a moment."""
        # Without aiohttp's own limit: it loses a cancellation that comes together with it.
        unlimited = aiohttp.ClientTimeout(total=None)
        async with aiohttp.ClientSession(timeout=unlimited, cookie_jar=aiohttp.DummyCookieJar()) as session:
            tasks = [asyncio.create_task(self._deliver(name, line, session)) for name, line in self._lines.items()]
            try:
                yield
                with suppress(TimeoutError):
                    async with asyncio.timeout(FLUSH):
                        await asyncio.gather(*(line.queue.join() for line in self._lines.values()))
            finally:
                for task in tasks:
                    task.cancel()
                await asyncio.gather(*tasks, return_exceptions=True)

    async def _deliver(self, name: str, line: _Line, session: aiohttp.ClientSession) -> None:
        """One after the other, in order; ends only by cancellation."""
        while True:
            notice = line.in_hand = await line.queue.get()
            pause = FIRST_PAUSE
            while (answer := await self._attempt(name, line.endpoint, notice, session)) is EndpointResponse.NONE:
                await self._clock.sleep(self._rng.uniform(pause / 2, pause))
                pause = min(2 * pause, LONGEST_PAUSE)
            self._count(name, "sent" if answer is EndpointResponse.TAKEN else "refused", notice)
            line.in_hand = None
            line.queue.task_done()

    async def _attempt(
        self, name: str, endpoint: Endpoint, notice: Notification, session: aiohttp.ClientSession
    ) -> EndpointResponse:
        """One POST. Addresses stay out of the log: that of a chat is its password."""
        try:
            async with (
                asyncio.timeout(TIMEOUT),
                session.post(
                    endpoint.url, data=_body(endpoint, notice), headers=_headers(endpoint), allow_redirects=False
                ) as response,
            ):
                status = response.status
        except (aiohttp.ClientError, TimeoutError, OSError, ValueError) as error:  # the last: an odd header file
            log.warning("notice not sent yet", endpoint=name, error=type(error).__name__)
            return EndpointResponse.NONE
        if status < 300:
            return EndpointResponse.TAKEN
        log.warning("notice not accepted", endpoint=name, status=status)
        return EndpointResponse.REFUSED if status in OBJECTIONS else EndpointResponse.NONE

    def _count(self, endpoint: str, outcome: str, notice: Notification) -> None:
        self._notices.labels(endpoint, outcome).inc()
        if outcome != "sent":
            log.warning("notice dropped", endpoint=endpoint, outcome=outcome, notice=notice.text)


class _Line:
    """One endpoint, and what waits for it."""

    def __init__(self, endpoint: Endpoint) -> None:
        self.endpoint = endpoint
        self.queue: asyncio.Queue[Notification] = asyncio.Queue(WAITING)
        self.in_hand: Notification | None = None

    def unsent(self) -> int:
        """How many wait, with the one that is tried now: it may be tried for days."""
        return self.queue.qsize() + (self.in_hand is not None)


def _body(endpoint: Endpoint, notice: Notification) -> bytes:
    if endpoint.format == "slack":
        return msgspec.json.encode({"text": html.escape(notice.text, quote=False)})  # <1.2.0 would pass for a link
    return msgspec.json.encode(
        {
            "specversion": "1.0",
            "id": notice.id,
            "source": notice.source,
            "type": notice.type,
            "subject": notice.subject,
            "time": rfc3339(notice.time),
            "datacontenttype": "application/json",
            "data": {"text": notice.text, **notice.data},
        }
    )


def _headers(endpoint: Endpoint) -> dict[str, str]:
    """Raises OSError while the file is missing: it may be mounted a moment later."""
    content = "application/json" if endpoint.format == "slack" else "application/cloudevents+json; charset=utf-8"
    headers = {"Content-Type": content}
    if endpoint.authorization_file:
        headers["Authorization"] = Path(endpoint.authorization_file).read_text().strip()
    return headers
