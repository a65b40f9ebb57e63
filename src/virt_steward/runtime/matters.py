"""Notifications of controllers whose objects have no `spec.notify`: one per matter and state, also across restarts.

A matter is something on an object that concerns people: a Machine that cannot be placed, a change that waits for a
reboot. Controllers only record occurrences, as for events; a table (`NotificationRules`) says which of them open a
matter, and which close one. For example, for the placement:

    AmbiguousPlacement  opens "placement" of the Machine    notified once, however often it is recorded
    ClustersSilent      opens it in another state           notified, too
    Placed              closes it                           notified as resolved; the next one of the above is new

What was notified is remembered in a ConfigMap beside the Leases, so that the next process does not repeat it. It is
written after a notification was delivered: after a kill in between, that is sent twice, and none is lost. For example,
the end of a matter is queued while the chat is down, and the process is killed. The ConfigMap still has the matter, so
the next process finds the Machine placed and notifies its end.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
from collections import OrderedDict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

import structlog

from virt_steward.kube.errors import KubeError, NotFound
from virt_steward.objects.corekinds import CONFIG_MAP
from virt_steward.objects.identity import Key, Ref
from virt_steward.runtime.access import PATCH, READ, Grant, Reach
from virt_steward.runtime.notifications import notification

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from virt_steward.kube.client import Client
    from virt_steward.kube.events import Occurrence
    from virt_steward.runtime.clock import Clock
    from virt_steward.runtime.notifications import Notification, NotificationSender

log = structlog.get_logger()

QUEUE_SIZE = 1000
MOST_REMEMBERED = 500
"""States that are remembered; the oldest is forgotten first."""
BATCH = 200
"""Occurrences that are handled with one write to the ConfigMap."""
LONGEST_VALUE = 100
UNSEEN = 24 * 3600.0
"""Seconds without an occurrence after which one that nothing closes counts as new."""


@dataclass(frozen=True, slots=True)
class OpensMatter:
    """The occurrence needs attention. Occurrences of one topic on one object are states of one matter."""

    topic: str
    by_episode: bool = False
    """Whether another episode of the same reason is another state."""
    is_closed: bool = True
    """Whether an occurrence closes it. Otherwise it is forgotten when it has not occurred for UNSEEN seconds."""


@dataclass(frozen=True, slots=True)
class ClosesMatters:
    """The occurrence ends the matters with these topics on its object."""

    topics: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class IgnoresOccurrence:
    """The occurrence concerns nobody outside of the cluster."""


MatterRule = OpensMatter | ClosesMatters | IgnoresOccurrence


def _no_page(_: Occurrence) -> str:
    return ""


@dataclass(frozen=True, slots=True)
class NotificationRules:
    """Which occurrences of a controller are notified, and which page of the console shows them.

    A Warning that is not listed is a matter of its own, in each of its episodes. A Normal one is not notified.
    """

    by_reason: Mapping[str, MatterRule] = field(default_factory=dict)
    page: Callable[[Occurrence], str] = _no_page

    def rule(self, occurrence: Occurrence) -> MatterRule:
        if found := self.by_reason.get(occurrence.reason):
            return found
        if occurrence.type == "Warning":
            return OpensMatter(occurrence.reason, by_episode=True, is_closed=False)
        return IgnoresOccurrence()


def memory_name(controller: str) -> str:
    """The name of the ConfigMap with what was notified."""
    return f"virt-steward-notified-{controller}"


NOTIFICATION_MEMORY = "notifications"
"""The name of the optional grant to write it."""


def memory_grants(controller: str) -> tuple[Grant, ...]:
    """The rights to remember what was notified, as an optional grant."""
    name = memory_name(controller)
    return (
        Grant(CONFIG_MAP, (*READ, *PATCH), "to remember what was notified", where=Reach.OWN, names=(name,)),
        Grant(CONFIG_MAP, ("create",), "to remember what was notified", where=Reach.OWN),
    )


@dataclass(frozen=True, slots=True)
class MatterSettings:
    """Who is notified, and where that is remembered."""

    endpoints: Mapping[str, str] = field(default_factory=dict)
    """By the name of the controller. The others notify nobody in this way."""
    namespace: str = ""
    """That of the ConfigMaps with what was notified."""
    manager: str = ""
    """The field manager that writes them."""


class MatterMemory(Protocol):
    """Keeps which states were notified."""

    async def read(self) -> Iterable[str]:
        """Raises KubeError."""

    async def write(self, changes: Mapping[str, str | None]) -> None:
        """Keep these, and forget those with None. Raises KubeError."""


class ConfigMapMemory:
    """Keeps them in a ConfigMap: a key for each state, with a value for people who look at it."""

    def __init__(self, client: Client, key: Key, manager: str) -> None:
        self._client = client
        self._ref = Ref(CONFIG_MAP, key)
        self._manager = manager

    async def read(self) -> Iterable[str]:
        try:
            found = await self._client.get(self._ref)
        except NotFound:
            return ()
        return tuple(found.get("data") or {})

    async def write(self, changes: Mapping[str, str | None]) -> None:
        try:
            await self._client.merge_patch(self._ref, {"data": dict(changes)}, manager=self._manager)
        except NotFound:
            kept = {key: value for key, value in changes.items() if value is not None}
            metadata = {"name": self._ref.key.name, "namespace": self._ref.key.namespace}
            await self._client.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": kept})


class MatterNotifications:
    """Notifies one endpoint of the matters of one controller (`run --notify CONTROLLER=ENDPOINT`)."""

    def __init__(  # noqa: PLR0913 - whose notifications, to whom, and what they go through
        self,
        controller: str,
        endpoint: str,
        sender: NotificationSender,
        *,
        rules: NotificationRules,
        memory: MatterMemory,
        clock: Clock,
    ) -> None:
        self._controller = controller
        self._endpoint = endpoint
        self._sender = sender
        self._rules = rules
        self._memory = memory
        self._clock = clock
        self._known: OrderedDict[str, float] | None = None  # when each state was last seen; None: not read yet
        self._unsaved: dict[str, str | None] = {}
        self._changed, self._all_saved = asyncio.Event(), asyncio.Event()
        self._all_saved.set()
        self._queue: asyncio.Queue[Occurrence] = asyncio.Queue(QUEUE_SIZE)
        self._problem = ""

    def handle(self, occurrence: Occurrence) -> None:
        """Called for each occurrence, also for a repeated one; returns at once."""
        if not self._is_news(occurrence):
            return
        try:
            self._queue.put_nowait(occurrence)
        except asyncio.QueueFull:
            log.warning("notification dropped", endpoint=self._endpoint, outcome="lost", text=occurrence.note)

    def reload(self) -> None:
        """Read the memory again: another replica may have written to it."""
        self._known = None

    async def run(self) -> None:
        """Handle what is queued, and remember what was delivered; ends only by cancellation."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._handle_queued())
            group.create_task(self._remember_delivered())

    async def flush(self, grace: float) -> None:
        """Wait until all is delivered and remembered, at most `grace` seconds."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(grace):
                await self._queue.join()
                await self._all_saved.wait()

    async def _handle_queued(self) -> None:
        while True:
            occurrences = [await self._queue.get()]
            while not self._queue.empty() and len(occurrences) < BATCH:
                occurrences.append(self._queue.get_nowait())
            await self._load()
            for occurrence in occurrences:
                self._notify(occurrence)
            if self._unsaved:
                self._all_saved.clear()
                self._changed.set()
            for _ in occurrences:
                self._queue.task_done()

    async def _remember_delivered(self) -> None:
        while True:
            await self._changed.wait()
            self._changed.clear()
            await self._save()

    def _is_news(self, occurrence: Occurrence) -> bool:
        """A quick look, so that what is recorded in every pass costs nothing."""
        rule = self._rules.rule(occurrence)
        if isinstance(rule, IgnoresOccurrence):
            return False
        if self._known is None:
            return True
        if isinstance(rule, ClosesMatters):
            return bool(self._open_states(occurrence, rule))
        key, now = _state_key(occurrence, rule), self._clock.now()
        seen = self._known.get(key)
        if seen is None or (now > seen + UNSEEN and not rule.is_closed):
            return True
        self._known[key] = now
        return False

    def _open_states(self, occurrence: Occurrence, rule: ClosesMatters) -> list[str]:
        prefixes = tuple(f"{_matter_key(occurrence, topic)}." for topic in rule.topics)
        return [key for key in self._known or () if key.startswith(prefixes)]

    async def _load(self) -> None:
        """Without the memory nothing is known: what was notified before may be repeated, with the same id."""
        if self._known is not None:
            return
        try:
            found = await self._memory.read()
        except KubeError as error:
            self._note_problem(error)
            found = ()
        opened = [key for key, value in self._unsaved.items() if value is not None]
        kept = (key for key in (*found, *opened) if self._unsaved.get(key, "") is not None)
        self._known = OrderedDict.fromkeys(kept, self._clock.now())

    def _notify(self, occurrence: Occurrence) -> None:
        """Decide again: an earlier one of the same batch may have been about the same."""
        if not self._is_news(occurrence):
            return
        rule = self._rules.rule(occurrence)
        assert self._known is not None  # noqa: S101 - `run` has loaded it
        if isinstance(rule, ClosesMatters):
            for key in self._open_states(occurrence, rule):
                self._forget(key)
            self._send(occurrence, "resolved", self._minute())
        elif isinstance(rule, OpensMatter):
            key = _state_key(occurrence, rule)
            self._known[key] = self._clock.now()
            self._unsaved[key] = f"{_about(occurrence)}: {occurrence.reason}"[:LONGEST_VALUE]
            while len(self._known) > MOST_REMEMBERED:
                self._forget(next(iter(self._known)))
            self._send(occurrence, "open", occurrence.episode if rule.by_episode else self._minute())

    def _forget(self, key: str) -> None:
        assert self._known is not None  # noqa: S101 - `run` has loaded it
        del self._known[key]
        self._unsaved[key] = None

    def _minute(self) -> str:
        """Part of the id of what may come and go: the same a day later is another notification."""
        return self._clock.utc().strftime("%Y-%m-%dT%H:%M")

    def _send(self, occurrence: Occurrence, state: str, episode: str) -> None:
        self._sender.send(self._endpoint, self._notification(occurrence, state, episode))

    def _notification(self, occurrence: Occurrence, state: str, episode: str) -> Notification:
        related = occurrence.related
        data: dict[str, Any] = {
            "reason": occurrence.reason,
            "action": occurrence.action,
            "severity": occurrence.type,
            "controller": self._controller,
            "state": state,
            **({"related": str(related.ref)} if related else {}),
        }
        resolved = "Resolved: " if state == "resolved" else ""
        return notification(
            occurrence.regarding,
            f"{occurrence.regarding.ref.kind.name}.{occurrence.reason}".lower(),
            f"{resolved}{_about(occurrence)}: {occurrence.reason}. {occurrence.note}",
            episode=(occurrence.reason, episode, str(related.ref) if related else ""),
            time=self._clock.utc(),
            data=data,
            page=self._rules.page(occurrence),
        )

    async def _save(self) -> None:
        """Write what has changed until now, once the notifications of it are delivered."""
        changes = dict(self._unsaved)
        await self._sender.delivered(self._endpoint)
        try:
            await self._memory.write(changes)
        except KubeError as error:  # they stay unsaved, and are written with the next change
            self._note_problem(error)
            return
        self._problem = ""
        self._unsaved = {key: one for key, one in self._unsaved.items() if key not in changes or changes[key] != one}
        if not self._unsaved:
            self._all_saved.set()

    def _note_problem(self, error: KubeError) -> None:
        if str(error) != self._problem:
            log.warning("notifications not remembered, so a restart may repeat them", error=str(error))
        self._problem = str(error)


def _about(occurrence: Occurrence) -> str:
    ref, related = occurrence.regarding.ref, occurrence.related
    return f"{ref} ({related.ref})" if related else str(ref)


def _matter_key(occurrence: Occurrence, topic: str) -> str:
    return _digest(f"{occurrence.source}\0{topic}")


def _state_key(occurrence: Occurrence, rule: OpensMatter) -> str:
    state = f"{occurrence.reason}\0{occurrence.episode if rule.by_episode else ''}"
    return f"{_matter_key(occurrence, rule.topic)}.{_digest(state)}"


def _digest(text: str) -> str:
    return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()
