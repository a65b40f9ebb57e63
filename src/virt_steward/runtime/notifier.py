"""Sends notifications in the background to the endpoints of --notify-config; one that does not answer is retried.

In a flood, each endpoint gets the first notifications of a minute one by one, and one digest that counts the others.
"""

from __future__ import annotations

import asyncio
import html
import ssl
from contextlib import asynccontextmanager, suppress
from enum import Enum, auto
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

import aiohttp
import msgspec
import structlog
from prometheus_client import Counter, Gauge

from virt_steward.objects.wallclock import rfc3339
from virt_steward.runtime.digests import DigestWindow
from virt_steward.runtime.supervision import essential, failure_of

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Collection, Mapping
    from random import Random

    from prometheus_client import CollectorRegistry

    from virt_steward.runtime.clock import Clock
    from virt_steward.runtime.notification_endpoints import Endpoint
    from virt_steward.runtime.notifications import Notification

log = structlog.get_logger()

QUEUE_SIZE = 200
"""Notifications kept per endpoint while it does not answer."""
TIMEOUT = 10.0
FIRST_DELAY, MAX_DELAY = 1.0, 60.0
REFUSED_STATUSES = frozenset({400, 409, 413, 415, 422})
"""Answers that reject this one notification. All others, redirects too, are faults of the endpoint, and are retried."""
FLUSH = 1.0
"""Seconds that queued notifications get when the process stops."""


class EndpointResponse(Enum):
    """The result of one attempt."""

    ACCEPTED = auto()
    REFUSED = auto()
    """The receiver rejects this notification, and would do so again."""
    UNAVAILABLE = auto()
    """The endpoint failed or did not answer: try again."""


class Notifier:
    """All endpoints, each with its own queue, so that one that is down delays no other."""

    def __init__(
        self,
        endpoints: Mapping[str, Endpoint],
        clock: Clock,
        rng: Random,
        registry: CollectorRegistry,
        console_url: str = "",
    ) -> None:
        """`console_url` is where people find the console, for links; empty: no links."""
        self._clock = clock
        self._rng = rng
        self._console_url = console_url
        self._queues = {name: _EndpointQueue(endpoint) for name, endpoint in endpoints.items()}
        self._tasks: tuple[asyncio.Task[None], ...] = ()
        self._windows: set[asyncio.Task[None]] = set()
        self._notices = Counter(
            "virt_steward_notifications",
            "Notifications by outcome: sent, refused by the receiver, or lost because the queue was full.",
            ["endpoint", "outcome"],
            registry=registry,
        )
        waiting = Gauge("virt_steward_notifications_waiting", "Notifications queued.", ["endpoint"], registry=registry)
        for name, line in self._queues.items():
            waiting.labels(name).set_function(line.unsent)
            for outcome in ("sent", "refused", "lost"):
                self._notices.labels(name, outcome)

    @property
    def endpoints(self) -> Collection[str]:
        return self._queues.keys()

    def send(self, endpoint: str, notice: Notification) -> None:
        line, now = self._queues[endpoint], self._clock.now()
        if line.window.admits(notice, now):
            self._queue(endpoint, notice)
        elif line.window.counted == 1:
            window = asyncio.create_task(self._close_window(endpoint, line.window.closes_in(now)))
            self._windows.add(window)
            window.add_done_callback(self._windows.discard)

    async def delivered(self, endpoint: str) -> None:
        line = self._queues[endpoint]
        while line.window.counted or line.unsent():
            if self._windows:  # what a digest counts is queued when its window closes
                await asyncio.wait(self._windows)
            await line.queue.join()

    async def _close_window(self, endpoint: str, seconds: float) -> None:
        await self._clock.sleep(seconds)
        self._send_digest(endpoint)

    def _send_digest(self, endpoint: str) -> None:
        if digest := self._queues[endpoint].window.take(self._clock.utc()):
            self._queue(endpoint, digest)

    def _queue(self, endpoint: str, notice: Notification) -> None:
        try:
            self._queues[endpoint].queue.put_nowait(notice)
        except asyncio.QueueFull:
            self._count(endpoint, "lost", notice)

    def failure(self) -> str | None:
        """Why notifications are no longer sent; None if they are. An endpoint that does not answer is no reason."""
        return failure_of(self._tasks)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Send in the background; at the end, queued notifications get FLUSH seconds."""
        # Without aiohttp's own limit: it loses a cancellation that comes together with it.
        unlimited = aiohttp.ClientTimeout(total=None)
        connector = aiohttp.TCPConnector(ssl=await self._trust())
        async with aiohttp.ClientSession(
            timeout=unlimited, connector=connector, cookie_jar=aiohttp.DummyCookieJar()
        ) as session:
            self._tasks = tuple(
                essential(self._deliver(name, line, session), f"notify-{name}") for name, line in self._queues.items()
            )
            try:
                yield
                for name in self._queues:
                    self._send_digest(name)
                with suppress(TimeoutError):
                    async with asyncio.timeout(FLUSH):
                        await asyncio.gather(*(line.queue.join() for line in self._queues.values()))
            finally:
                tasks = (*self._tasks, *self._windows)
                for task in tasks:
                    task.cancel()
                await asyncio.gather(*tasks, return_exceptions=True)

    async def _trust(self) -> ssl.SSLContext | bool:
        """The certificates of the system, which are read only if an endpoint needs them."""
        if any(line.endpoint.url.startswith("https:") for line in self._queues.values()):
            return await asyncio.to_thread(ssl.create_default_context)
        return True

    async def _deliver(self, name: str, line: _EndpointQueue, session: aiohttp.ClientSession) -> None:
        """Send what is queued, one after the other, in order; ends only by cancellation."""
        while True:
            notice = line.sending = await line.queue.get()
            delay = FIRST_DELAY
            while (result := await self._attempt(name, line.endpoint, notice, session)) is EndpointResponse.UNAVAILABLE:
                await self._clock.sleep(self._rng.uniform(delay / 2, delay))
                delay = min(2 * delay, MAX_DELAY)
            self._count(name, "sent" if result is EndpointResponse.ACCEPTED else "refused", notice)
            line.sending = None
            line.queue.task_done()

    async def _attempt(
        self, name: str, endpoint: Endpoint, notice: Notification, session: aiohttp.ClientSession
    ) -> EndpointResponse:
        """Send one POST. URLs stay out of the log: that of a chat webhook is a secret."""
        try:
            async with (
                asyncio.timeout(TIMEOUT),
                session.post(
                    endpoint.url,
                    data=_body(endpoint, notice, self._console_url),
                    headers=_headers(endpoint),
                    allow_redirects=False,
                ) as response,
            ):
                status = response.status
        except (aiohttp.ClientError, TimeoutError, OSError, ValueError) as error:  # the last: a bad header file
            log.warning("notification not sent, retrying", endpoint=name, error=type(error).__name__)
            return EndpointResponse.UNAVAILABLE
        if status < 300:
            return EndpointResponse.ACCEPTED
        log.warning("notification rejected", endpoint=name, status=status)
        return EndpointResponse.REFUSED if status in REFUSED_STATUSES else EndpointResponse.UNAVAILABLE

    def _count(self, endpoint: str, outcome: str, notice: Notification) -> None:
        self._notices.labels(endpoint, outcome).inc()
        if outcome != "sent":
            log.warning("notification dropped", endpoint=endpoint, outcome=outcome, text=notice.text)


class _EndpointQueue:
    """One endpoint, and the notifications for it."""

    def __init__(self, endpoint: Endpoint) -> None:
        self.endpoint = endpoint
        self.window = DigestWindow(endpoint.digest_after)
        self.queue: asyncio.Queue[Notification] = asyncio.Queue(QUEUE_SIZE)
        self.sending: Notification | None = None

    def unsent(self) -> int:
        """How many are queued, with the one that is being retried."""
        return self.queue.qsize() + (self.sending is not None)


def _body(endpoint: Endpoint, notice: Notification, console_url: str) -> bytes:
    url = f"{console_url}{quote(notice.page)}" if console_url and notice.page else ""
    if endpoint.format == "slack":
        text = html.escape(notice.text, quote=False)  # <1.2.0 would pass for a link
        return msgspec.json.encode({"text": f"{text}\n<{url}|Open in the console>" if url else text})
    return msgspec.json.encode(
        {
            "specversion": "1.0",
            "id": notice.id,
            "source": notice.source,
            "type": notice.type,
            "subject": notice.subject,
            "time": rfc3339(notice.time),
            "datacontenttype": "application/json",
            "data": {"text": notice.text, **notice.data, **({"url": url} if url else {})},
        }
    )


def _headers(endpoint: Endpoint) -> dict[str, str]:
    """Raises OSError while the authorization file is missing: it may be mounted later."""
    content = "application/json" if endpoint.format == "slack" else "application/cloudevents+json; charset=utf-8"
    headers = {"Content-Type": content}
    if endpoint.authorization_file:
        headers["Authorization"] = Path(endpoint.authorization_file).read_text().strip()
    return headers
