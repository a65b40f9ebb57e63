"""Notifications to people and systems outside of the cluster.

Each is a CloudEvent (https://cloudevents.io) that `notification` makes, for all controllers. It is posted in the
background to an endpoint of `--notify-config`; one that does not answer is retried until it does.
"""

from __future__ import annotations

import asyncio
import hashlib
import html
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from enum import Enum, auto
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol

import aiohttp
import msgspec
import structlog
from prometheus_client import Counter, Gauge
from yarl import URL

from virt_steward.objects.errors import UserError
from virt_steward.objects.wallclock import rfc3339
from virt_steward.runtime.addresses import is_loopback
from virt_steward.runtime.supervision import essential, failure_of

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Collection, Mapping, Sequence
    from datetime import datetime
    from random import Random

    from prometheus_client import CollectorRegistry

    from virt_steward.kube.events import Occurrence
    from virt_steward.objects.identity import Regarding
    from virt_steward.runtime.clock import Clock

log = structlog.get_logger()

QUEUE_SIZE = 200
"""Notifications kept per endpoint while it does not answer."""
TIMEOUT = 10.0
FIRST_DELAY, MAX_DELAY = 1.0, 60.0
REFUSED_STATUSES = frozenset({400, 409, 413, 415, 422})
"""Answers that reject this one notification. All others, redirects too, are faults of the endpoint, and are retried."""
CORE_GROUP = "k8s.io"
"""Stands for the core API group, which has no name."""
FLUSH = 1.0
"""Seconds that queued notifications get when the process stops."""


@dataclass(frozen=True, slots=True)
class Notification:
    """The attributes of a CloudEvent, and a sentence for chats."""

    id: str
    """The same for the same occurrence, so that a receiver can drop duplicates."""
    type: str
    source: str
    subject: str
    time: datetime
    text: str
    """One sentence for people."""
    data: Mapping[str, Any]
    """The facts for programs."""


def notification(  # noqa: PLR0913 - the attributes of a CloudEvent
    regarding: Regarding,
    what: str,
    text: str,
    *,
    episode: Sequence[str],
    time: datetime,
    data: Mapping[str, Any],
    subject: str = "",
) -> Notification:
    """The CloudEvent about an object.

    The object gives `source` (its path in the API) and the first part of `type` (its API group, reversed); `what` is
    the rest of the type. The same `episode` of the same object has the same `id`. For example, about the
    VirtPlatformConfig `density`, with `what="virtplatformconfig.failed"`:

        id:      3f0c…                                   a digest of uid and episode
        type:    io.kubevirt.advisor.virtplatformconfig.failed
        source:  /apis/advisor.kubevirt.io/v1alpha1/virtplatformconfigs/density
        subject: density
    """
    story = "\0".join((regarding.uid, *episode))
    group = ".".join(reversed((regarding.ref.kind.group or CORE_GROUP).split(".")))
    return Notification(
        id=hashlib.blake2b(story.encode(), digest_size=16).hexdigest(),
        type=f"{group}.{what}",
        source=_path(regarding),
        subject=subject or str(regarding.ref.key),
        time=time,
        text=text,
        data=data,
    )


def _path(regarding: Regarding) -> str:
    kind, key = regarding.ref.kind, regarding.ref.key
    root = "/apis" if kind.group else "/api"
    namespace = f"/namespaces/{key.namespace}" if key.namespace else ""
    return f"{root}/{regarding.api_version}{namespace}/{kind.plural or kind.name.lower()}/{key.name}"


class BadEndpoints(UserError):
    """The file of --notify-config is invalid. The message never quotes a URL, which may be a secret."""


class Endpoint(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """One receiver of notifications, as --notify-config defines it: no object in the cluster contains its URL."""

    url: str
    format: Literal["cloudevents", "slack"] = "cloudevents"
    authorization_file: str = ""
    """A file whose content is sent as the Authorization header; read each time, so it may be rotated."""


def load_endpoints(path: str) -> Mapping[str, Endpoint]:
    """Read --notify-config: a YAML mapping from names to endpoints."""
    try:
        found = msgspec.yaml.decode(Path(path).read_bytes(), type=dict[str, Endpoint])
    except OSError as error:
        raise BadEndpoints(f"--notify-config {path}: {error.strerror}") from None
    except msgspec.ValidationError as error:
        raise BadEndpoints(f"--notify-config {path}: {error}; an endpoint has url and format") from None
    except msgspec.DecodeError:  # its text quotes the file
        raise BadEndpoints(f"--notify-config {path}: not YAML") from None
    for name, endpoint in found.items():
        if problem := _problem(endpoint):
            raise BadEndpoints(f"--notify-config {path}: endpoint {name}: {problem}")
    return found


def _problem(endpoint: Endpoint) -> str | None:
    try:
        url = URL(endpoint.url)
    except ValueError:
        return "url is invalid"
    if url.scheme not in ("https", "http") or not url.host:
        return "url must start with https:// (or http://) and have a host"
    if url.user or url.password:
        return "url contains a password: put it into a file, and set authorizationFile"
    if endpoint.authorization_file and url.scheme == "http" and not is_loopback(url.host):
        return "authorizationFile would be sent unencrypted over http://: use https://, or remove authorizationFile"
    return None


class NotificationSender(Protocol):
    """What a controller uses of notifications."""

    @property
    def endpoints(self) -> Collection[str]:
        """The names that `send` takes."""

    def send(self, endpoint: str, notice: Notification) -> None:
        """Queue a notification for one of them and return at once."""


class WarningNotifications:
    """Sends the Warning events of a controller to one endpoint (`run --notify CONTROLLER=ENDPOINT`).

    This is for controllers whose objects have no `spec.notify`: autopilot and placement. It is called when an event has
    been created, and event names are deterministic (`kube/events.py`), so a restart sends nothing twice.
    """

    def __init__(self, sender: NotificationSender, endpoint: str, controller: str, clock: Clock) -> None:
        self._sender = sender
        self._endpoint = endpoint
        self._controller = controller
        self._clock = clock

    def __call__(self, occurrence: Occurrence) -> None:
        if occurrence.type != "Warning":
            return
        ref, related = occurrence.regarding.ref, occurrence.related
        about = f"{ref} ({related.ref})" if related else str(ref)
        self._sender.send(
            self._endpoint,
            notification(
                occurrence.regarding,
                f"{ref.kind.name}.{occurrence.reason}".lower(),
                f"{about}: {occurrence.reason}. {occurrence.note}",
                episode=(occurrence.reason, occurrence.episode, str(related.ref) if related else ""),
                time=self._clock.utc(),
                data={
                    "reason": occurrence.reason,
                    "action": occurrence.action,
                    "severity": occurrence.type,
                    "controller": self._controller,
                    **({"related": str(related.ref)} if related else {}),
                },
            ),
        )


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
        self, endpoints: Mapping[str, Endpoint], clock: Clock, rng: Random, registry: CollectorRegistry
    ) -> None:
        self._clock = clock
        self._rng = rng
        self._queues = {name: _EndpointQueue(endpoint) for name, endpoint in endpoints.items()}
        self._tasks: tuple[asyncio.Task[None], ...] = ()
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
        async with aiohttp.ClientSession(timeout=unlimited, cookie_jar=aiohttp.DummyCookieJar()) as session:
            self._tasks = tuple(
                essential(self._deliver(name, line, session), f"notify-{name}") for name, line in self._queues.items()
            )
            try:
                yield
                with suppress(TimeoutError):
                    async with asyncio.timeout(FLUSH):
                        await asyncio.gather(*(line.queue.join() for line in self._queues.values()))
            finally:
                for task in self._tasks:
                    task.cancel()
                await asyncio.gather(*self._tasks, return_exceptions=True)

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
                    endpoint.url, data=_body(endpoint, notice), headers=_headers(endpoint), allow_redirects=False
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
        self.queue: asyncio.Queue[Notification] = asyncio.Queue(QUEUE_SIZE)
        self.sending: Notification | None = None

    def unsent(self) -> int:
        """How many are queued, with the one that is being retried."""
        return self.queue.qsize() + (self.sending is not None)


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
    """Raises OSError while the authorization file is missing: it may be mounted later."""
    content = "application/json" if endpoint.format == "slack" else "application/cloudevents+json; charset=utf-8"
    headers = {"Content-Type": content}
    if endpoint.authorization_file:
        headers["Authorization"] = Path(endpoint.authorization_file).read_text().strip()
    return headers
