"""Informers: keep a store in sync with the cluster and call event handlers, also while kinds appear and disappear."""

from __future__ import annotations

import asyncio
from contextlib import aclosing, suppress
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Generic, TypeVar

import structlog

from virt_steward.kube.client import EVERYTHING, Selection
from virt_steward.kube.errors import BadRequest, Expired, Forbidden, Invalid, KubeError, NotServed
from virt_steward.kube.watch import (
    SILENCE,
    Gone,
    Projected,
    Put,
    Reset,
    Synced,
    Trouble,
    Unreadable,
    Watch,
    projected,
)
from virt_steward.objects.identity import Key
from virt_steward.runtime.access import Reach
from virt_steward.runtime.store import Store

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from virt_steward.kube.client import Reader
    from virt_steward.kube.discovery import Resource
    from virt_steward.kube.watch import Event
    from virt_steward.objects.identity import Kind

log = structlog.get_logger()

LAG = 0.5
"""Seconds before a retry when discovery and the server disagree about a kind."""
RECHECKS = (0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0)
"""Seconds between checks for a kind that is no longer served; after that, only a change of CRDs counts."""
RECHECKS_BEFORE_ABSENT = 3

T = TypeVar("T", bound=Projected)


@dataclass(frozen=True, eq=False)
class Source(Generic[T]):
    """What to watch: informers and RBAC follow from it. Compared by identity, so that informers can be shared."""

    kind: Kind
    decode: Callable[[bytes], T]
    selection: Selection = EVERYTHING
    indexes: Mapping[str, Callable[[T], Iterable[str]]] | None = None
    where: Reach = Reach.CLUSTER
    """TARGETS: a process that is limited to some namespaces watches each of them separately."""
    may_be_denied: bool = False
    """Whether readers check `Store.denied`, so that the controller can start without this right."""


class InformerState(Enum):
    STARTING = "starting"
    ABSENT = "kind not served"
    SYNCED = "synced"
    BROKEN = "not connected"
    DENIED = "not allowed"
    REFUSED = "request refused"


class Informer(Generic[T]):
    """Watches one source for ever. Handlers get (key, before, after); None means absent or unreadable.

    When access is denied or granted again, handlers get a key without a name: it stands for all objects of the
    namespace, or of the cluster if it has no namespace either. Informers of several namespaces may share a store; then
    one that is denied does not block the others.
    """

    def __init__(
        self,
        reader: Reader,
        source: Source[T],
        *,
        shared: Store[T] | None = None,
        silence: float = SILENCE,
        rechecks: Sequence[float] = RECHECKS,
    ) -> None:
        self.source = source
        self.store: Store[T] = Store(source.indexes or {}) if shared is None else shared
        self._is_one_of_several = shared is not None
        self._rechecks = rechecks
        self.state = InformerState.STARTING
        self.trouble = ""
        self._reader = reader
        self._watch = Watch(reader, source.kind, source.decode, selection=source.selection, silence=silence)
        self.store.version_of[source.selection.namespace] = lambda: int(self._watch.position or 0)
        self._handlers: list[Callable[[Key, T | None, T | None], None]] = []
        self._not_listed: set[Key] | None = None
        self._settled = asyncio.Event()

    @property
    def is_denied(self) -> bool:
        """Whether reading the source is forbidden now: the store may be outdated or incomplete."""
        return self.source.selection.namespace in self.store.denied

    def tell(self, handler: Callable[[Key, T | None, T | None], None]) -> None:
        """Call the handler now for each known object, and on every change from now on."""
        self._handlers.append(handler)
        self.replay(handler)

    def replay(self, handler: Callable[[Key, T | None, T | None], None]) -> None:
        """Call the handler for each known object, also for unreadable ones."""
        for key in sorted(self._known()):
            self._call(handler, key, None, self.store.get(key))

    async def settled(self) -> None:
        """Wait until the store is complete, or the kind is known to be not served or denied."""
        await self._settled.wait()

    async def list_once(self) -> None:
        """Fill the store once, without a watch. Raises KubeError."""
        try:
            async for page in self._reader.pages(self.source.kind, self.source.selection):
                for item in page.items:
                    self._take(projected(self.source.decode, bytes(item)))
        except NotServed:
            self._absent()
        else:
            self._take(Synced())

    async def run(self) -> None:
        """Watch the kind whenever it is served; ends only by cancellation."""
        discovery = self._reader.discovery
        while True:
            try:
                resource = await discovery.resource(self.source.kind)
            except NotServed:
                await self._wait_while_absent()
            except KubeError as error:
                self._troubled(error, LAG)
                await asyncio.sleep(LAG)
            else:
                await self._follow_until_moved(resource)

    async def _wait_while_absent(self) -> None:
        """Wait until the kind may be served again. Known objects are kept for the first few checks.

        One of several API servers may lag, and an emptied store looks as if all objects had been deleted.
        """
        discovery = self._reader.discovery
        lost = self.state in (InformerState.SYNCED, InformerState.BROKEN)
        for number, delay in enumerate(self._rechecks if lost else (), 1):
            if number > RECHECKS_BEFORE_ABSENT:
                self._absent()
            with suppress(TimeoutError):
                async with asyncio.timeout(delay):
                    await discovery.changed()
                return
            discovery.forget()
            if await self._is_served():
                return
        self._absent()
        await discovery.changed()

    async def _is_served(self) -> bool:
        try:
            await self._reader.discovery.resource(self.source.kind)
        except KubeError as error:
            return not isinstance(error, NotServed)  # other errors are retried by the caller
        return True

    async def _follow_until_moved(self, resource: Resource) -> None:
        """Watch the kind as it is served now, until its version or path changes, or it is no longer served."""
        following = asyncio.create_task(self._follow(resource))
        moved = asyncio.create_task(self._moved(resource))
        try:
            await asyncio.wait((following, moved), return_when=asyncio.FIRST_COMPLETED)
        finally:
            moved.cancel()
            following.cancel()
            ended = (await asyncio.gather(following, moved, return_exceptions=True))[0]
        if isinstance(ended, NotServed):  # discovery may lag
            self._reader.discovery.forget()
            await asyncio.sleep(LAG)
        elif isinstance(ended, Exception):
            raise ended

    async def _moved(self, resource: Resource) -> None:
        discovery = self._reader.discovery
        while True:
            await discovery.changed()
            # A server that starts serves nothing at first, so only the watch decides that a kind is gone.
            with suppress(KubeError):
                if await discovery.resource(self.source.kind) != resource:
                    return

    async def _follow(self, resource: Resource) -> None:
        async with aclosing(self._watch.events(resource)) as events:
            async for event in events:
                self._take(event)

    def _take(self, event: Event[T]) -> None:
        match event:
            case Put(obj):
                key = obj.metadata.key
                self._mark_listed(key)
                before = self.store.put(obj)
                if before != obj:  # a new list repeats unchanged objects
                    self._notify(key, before, obj)
            case Gone(metadata):
                self._remove(metadata.key)
            case Unreadable(metadata, why):
                self._mark_listed(metadata.key)
                log.warning("object unreadable", kind=str(self.source.kind), object=str(metadata.key), why=why)
                self._notify(metadata.key, self.store.put_unreadable(metadata.key, why), None)
            case Reset():
                self._not_listed = self._known()
            case Synced():
                for key in self._not_listed or ():
                    self._remove(key)
                self._not_listed = None
                self._reached(InformerState.SYNCED)
            case Trouble(error, delay):
                self._troubled(error, delay)

    def _mark_listed(self, key: Key) -> None:
        if self._not_listed is not None:
            self._not_listed.discard(key)

    def _remove(self, key: Key) -> None:
        known = self.store.unreadable(key) is not None
        before = self.store.remove(key)
        if known or before is not None:
            self._notify(key, before, None)

    def _notify(self, key: Key, before: T | None, after: T | None) -> None:
        for handler in self._handlers:
            self._call(handler, key, before, after)

    def _call(
        self, handler: Callable[[Key, T | None, T | None], None], key: Key, before: T | None, after: T | None
    ) -> None:
        try:
            handler(key, before, after)
        except Exception:  # one bad object must not end the watch of the others
            log.exception("event handler failed", kind=str(self.source.kind), object=str(key))

    def _absent(self) -> None:
        for key in self._known():
            self._remove(key)
        self._reached(InformerState.ABSENT)

    def _known(self) -> set[Key]:
        namespace = self.source.selection.namespace
        return {key for key in self.store.known() if namespace in ("", key.namespace)}

    def _reached(self, state: InformerState) -> None:
        if self.state is not state:
            log.info("watch settled", kind=str(self.source.kind), state=state.value, objects=len(self.store))
        self.state = state
        self.trouble = ""
        self._settled.set()
        self._mark_denied(denied=False)

    def _troubled(self, error: KubeError, delay: float = 0.0) -> None:
        if self.trouble != str(error):
            # A resourceVersion expires in normal operation, such as that of Events, which have no bookmarks.
            report = log.info if isinstance(error, Expired) else log.warning
            report("watch interrupted", kind=str(self.source.kind), error=str(error), retry_in=round(delay, 1))
        self.trouble = str(error)
        if isinstance(error, Forbidden):
            self._mark_denied(denied=True)
        if (self._is_one_of_several or self.source.may_be_denied) and isinstance(error, Forbidden):
            self.state = InformerState.DENIED
            self._settled.set()
        elif self._is_one_of_several and isinstance(error, BadRequest | Invalid) and delay:
            # Refused for good, such as for an invalid name. Without a delay, only a streaming list was refused.
            self.state = InformerState.REFUSED
            self._settled.set()
        elif self.state is InformerState.SYNCED:
            self.state = InformerState.BROKEN

    def _mark_denied(self, *, denied: bool) -> None:
        namespace = self.source.selection.namespace
        if (namespace in self.store.denied) is denied:
            return
        if denied:
            self.store.denied.add(namespace)
        else:
            self.store.denied.discard(namespace)
        self._notify(Key(namespace, ""), None, None)
