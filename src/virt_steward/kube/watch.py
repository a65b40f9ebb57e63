"""Watches: all objects of a selection, and then each change, for ever, through interruptions.

The server sends the existing objects first and marks their end (a streaming list); a server without streaming lists is
listed page by page. A stream that breaks resumes at the last resourceVersion; if that has expired, a new list starts.
"""

from __future__ import annotations

import asyncio
import random
import re
from contextlib import aclosing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

import msgspec

from virt_steward.kube.answers import Lines, decoded
from virt_steward.kube.backoff import RetryBackoff
from virt_steward.kube.client import EVERYTHING, METADATA_ONLY
from virt_steward.kube.connection import ConnectionPool, Request
from virt_steward.kube.errors import (
    BadRequest,
    Expired,
    Forbidden,
    Invalid,
    InvalidAnswer,
    KubeError,
    NotFound,
    NotServed,
    TimedOut,
    Unauthorized,
    error_from,
)
from virt_steward.objects.meta import Meta

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator, Mapping

    from virt_steward.kube.client import Reader, Selection
    from virt_steward.kube.discovery import Resource
    from virt_steward.objects.identity import Key, Kind

SILENCE = 150.0
"""Seconds without a byte after which a stream is given up. The server sends bookmarks about once a minute."""
LIFETIME = (290, 590)
"""Seconds after which the server ends a stream, chosen at random so that watches do not all reconnect at once."""
SHORT_LIVED = 1.0
INITIAL_EVENTS_END = "k8s.io/initial-events-end"
MAX_DEPTH = 100
"""Levels of nesting that are decoded: more than any API has, and fewer than the decoder supports."""

_STRING_OR_BRACKET = re.compile(rb'"(?:[^"\\]|\\.)*"|[\[\]{}]')


class Projected(Protocol):
    """A decoded object: any type that keeps the metadata."""

    @property
    def metadata(self) -> Meta: ...


T = TypeVar("T", bound=Projected)


@dataclass(frozen=True, slots=True)
class Reset:
    """A new list starts: objects that are not Put again before Synced no longer exist."""


@dataclass(frozen=True, slots=True)
class Put(Generic[T]):
    object: T


@dataclass(frozen=True, slots=True)
class Unreadable:
    """An object that cannot be decoded into its projection."""

    metadata: Meta
    why: str


@dataclass(frozen=True, slots=True)
class Gone:
    metadata: Meta


@dataclass(frozen=True, slots=True)
class Synced:
    """The objects are complete: a list has ended, or a broken stream has resumed."""


@dataclass(frozen=True, slots=True)
class Trouble:
    """The stream was interrupted, and is retried after the delay."""

    error: KubeError
    delay: float


Event = Reset | Put[T] | Unreadable | Gone | Synced | Trouble


class Watch(Generic[T]):
    """Watches one selection of one kind, decoded by `decode`. Iterate `events()`; it ends only with NotServed."""

    def __init__(
        self,
        reader: Reader,
        kind: Kind,
        decode: Callable[[bytes], T],
        *,
        selection: Selection = EVERYTHING,
        silence: float = SILENCE,
    ) -> None:
        self._reader = reader
        self._kind = kind
        self._decode = decode
        self._selection = selection
        self._silence = silence
        self._rng = random.Random()  # noqa: S311 - spreads reconnects
        self.position = ""
        """The resourceVersion up to which all events were given; empty before the first list is complete."""
        self._streaming_list = True
        self._has_bookmarks = False

    async def events(self, resource: Resource) -> AsyncGenerator[Event[T], None]:
        """All events. Raises NotServed when the kind is not, or no longer, served."""
        backoff = RetryBackoff(self._rng)
        loop = asyncio.get_running_loop()
        self.position = ""
        while True:
            started = loop.time()
            try:
                async for event in self._attempt(resource):
                    yield event
                if loop.time() - started > SHORT_LIVED:
                    backoff.succeeded()
                else:  # a server that ends each stream at once must not get a storm of requests
                    await asyncio.sleep(backoff.after_close())
            except NotFound as error:
                raise NotServed(error.code, "NotServed", str(error)) from None
            except KubeError as error:
                if loop.time() - started > SHORT_LIVED:
                    backoff.succeeded()
                delay = 0.0 if self._falls_back(error) else backoff.after(error)
                if isinstance(error, Expired):
                    self.position = ""
                yield Trouble(error, delay)
                await asyncio.sleep(delay)

    def _falls_back(self, error: KubeError) -> bool:
        """Whether to use paged lists from now on: a server without streaming lists refuses their options."""
        if not self._streaming_list or self.position or not isinstance(error, BadRequest | Invalid):
            return False
        self._streaming_list = False
        return True

    async def _attempt(self, resource: Resource) -> AsyncIterator[Event[T]]:
        """One stream, after a list if there is no position to resume from."""
        if not self.position:
            yield Reset()
            if not self._streaming_list:
                async for event in self._listed():
                    yield event
        async for event in self._streamed(resource):
            yield event

    async def _listed(self) -> AsyncIterator[Event[T]]:
        position = ""
        async for page in self._reader.pages(self._kind, self._selection):
            position = page.metadata.resource_version
            for item in page.items:
                yield projected(self._decode, bytes(item))
        self.position = position

    async def _streamed(self, resource: Resource) -> AsyncIterator[Event[T]]:
        is_open = False
        try:
            async with self._reader.connection.stream(self._request(resource), silence=self._silence) as chunks:
                is_open = True
                if self.position:
                    yield Synced()
                lines = Lines(self._reader.connection.limits.line, f"watch {self._kind}")
                async for chunk in chunks:
                    for line in lines.feed(chunk):
                        for event in self._frame(line):
                            yield event
        except TimedOut:
            if not (is_open and self._may_be_quiet):
                raise

    @property
    def _may_be_quiet(self) -> bool:
        """Whether a silent stream is no sign of a dead connection.

        The API server sends bookmarks only for kinds in its watch cache. It keeps Events out of that cache, and so may
        an administrator any other kind (`--watch-cache-sizes`), or an aggregated API server all of its kinds. A watch
        of Events on a quiet cluster is therefore silent for hours, and every one of these hours is normal.

        So a watch that has never had a bookmark is closed and opened again at the same position, without Trouble.
        If the server really is gone, opening the new stream fails, and that is Trouble. As soon as one bookmark has
        come, silence itself is. The bookmark that ends the initial events does not count: every kind has that one.
        """
        return bool(self.position) and not self._has_bookmarks

    def _request(self, resource: Resource) -> Request:
        query = {
            **self._selection.query(),
            "watch": "true",
            "allowWatchBookmarks": "true",
            "timeoutSeconds": str(self._rng.randint(*LIFETIME)),
        }
        if self.position:
            query["resourceVersion"] = self.position
        else:
            query |= {"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan"}
        return Request(
            "watch",
            "GET",
            resource.path(self._selection.namespace),
            what=f"watch {self._kind}" + (f" in {self._selection.namespace}" if self._selection.namespace else ""),
            query=query,
            headers={"Accept": METADATA_ONLY} if self._selection.metadata_only else {},
            pool=ConnectionPool.WATCHES,
        )

    def _frame(self, line: bytes) -> Iterator[Event[T]]:
        frame = self._decoded(line)
        match frame.type:
            case "ERROR":
                code = decoded(frame.object, _Code, f"watch {self._kind}").code
                raise error_from(code, bytes(frame.object), what=f"watch {self._kind}")
            case "ADDED" | "MODIFIED":
                event = (
                    _too_deep(frame.object) if isinstance(frame, _Shortened) else projected(self._decode, frame.object)
                )
                yield event
                if self.position:  # until the initial events have ended, their versions are in no order
                    self.position = (event.object if isinstance(event, Put) else event).metadata.resource_version
            case "DELETED":
                metadata = _metadata(frame.object)
                yield Gone(metadata)
                if self.position:
                    self.position = metadata.resource_version
            case "BOOKMARK":
                metadata = _metadata(frame.object)
                if metadata.annotations.get(INITIAL_EVENTS_END) == "true":
                    yield Synced()
                    self.position = metadata.resource_version
                else:
                    self._has_bookmarks = True
                    if self.position:
                        self.position = metadata.resource_version

    def _decoded(self, line: bytes) -> _Frame:
        try:
            return _FRAME.decode(line)
        except RecursionError:
            shortened: _Shortened = decoded(shallow(line), _Shortened, f"watch {self._kind}")
            return shortened
        except ValueError as error:
            raise InvalidAnswer(f"watch {self._kind}", "invalid data in the stream", detail=str(error)) from None


async def snapshots(
    reader: Reader, kind: Kind, shape: type[T], selection: Selection = EVERYTHING
) -> AsyncGenerator[Mapping[Key, T], None]:
    """All objects of a selection, by key: complete at first, and again after each change.

    This is for a command that follows a few objects; a controller has an informer. Interruptions are waited out, and
    nothing is yielded before a new listing is complete. Raises Unauthorized, Forbidden or NotServed.
    """
    resource = await reader.discovery.resource(kind)
    known: dict[Key, T] = {}
    is_complete = False
    async with aclosing(Watch(reader, kind, projection(shape), selection=selection).events(resource)) as events:
        async for event in events:
            match event:
                case Reset():
                    known, is_complete = {}, False  # a new dict: the caller may still hold the one before
                case Put(obj):
                    known[obj.metadata.key] = obj
                case Gone(metadata):
                    known.pop(metadata.key, None)
                case Synced():
                    is_complete = True
                case Trouble(Unauthorized() | Forbidden() as error, _):
                    raise error
            if is_complete:
                yield known


def projected(decode: Callable[[bytes], T], raw: bytes | msgspec.Raw) -> Put[T] | Unreadable:
    """Decode one object; of one that cannot be decoded, the metadata is kept."""
    try:
        return Put(decode(raw))
    except RecursionError:
        return _too_deep(shallow(bytes(raw)))
    except ValueError as error:  # of msgspec, or a string that is no UTF-8
        return Unreadable(_metadata(raw), str(error))


def shallow(raw: bytes) -> bytes:
    """The same JSON, with null in place of what is nested deeper: enough to decode the metadata.

    API servers store objects that are nested too deeply for the decoder, so every author of objects can send them.
    """
    kept: list[bytes] = []
    level, start = 0, 0
    for token in _STRING_OR_BRACKET.finditer(raw):
        match token[0]:
            case b"{" | b"[":
                level += 1
                if level == MAX_DEPTH + 1:
                    kept += raw[start : token.start()], b"null"
            case b"}" | b"]":
                if level == MAX_DEPTH + 1:
                    start = token.end()
                level -= 1
    return b"".join((*kept, raw[start:]))


def _too_deep(shortened: bytes | msgspec.Raw) -> Unreadable:
    return Unreadable(_metadata(shortened), "nested too deeply")


def _metadata(raw: bytes | msgspec.Raw) -> _Annotated:
    """The metadata, without which an object cannot be named. Raises InvalidAnswer."""
    bare: _Bare = decoded(raw, _Bare, "read the metadata of an object")
    return bare.metadata


class _Annotated(Meta, frozen=True, rename="camel", gc=False):
    annotations: dict[str, str] = msgspec.field(default_factory=dict)


class _Bare(msgspec.Struct):
    metadata: _Annotated


class _Code(msgspec.Struct):
    code: int = 500


class _Frame(msgspec.Struct):
    type: str
    object: msgspec.Raw


class _Shortened(_Frame):
    """A frame without its deeply nested parts."""


_FRAME: msgspec.json.Decoder[_Frame] = msgspec.json.Decoder(_Frame)


def projection(shape: type[T]) -> Callable[[bytes], T]:
    """The decoder of objects into a projection."""
    return msgspec.json.Decoder(shape).decode
