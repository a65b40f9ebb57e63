"""How much of an answer is read and decoded, so that a server cannot fill our memory or hold the event loop.

Our own API server gets limits that no real answer reaches. Servers that others run get tighter ones (`fleet.py` of the
placement). What exceeds a limit is an InvalidAnswer, found before the rest is read, joined or decoded.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import msgspec

from virt_steward.kube.errors import LONGEST_PAUSE, InvalidAnswer

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

KIB = 1024
MIB = 1024 * KIB
PORTION = 1000
"""Items that are decoded at once, which takes a few milliseconds."""


@dataclass(frozen=True, slots=True)
class AnswerLimits:
    """The most that a server may send. Bytes count after decompression."""

    body: int = 256 * MIB
    """Bytes of one answer."""
    error: int = 4 * MIB
    """Bytes of an answer that is an error."""
    items: int | None = None
    """Items of a list, in all pages together; None: they are not counted."""
    pages: int = 20_000
    """Pages of a list."""
    line: int = 32 * MIB
    """Bytes of one event of a watch."""
    pause: float = LONGEST_PAUSE
    """Seconds that a request waits if the server asks for that; for a longer pause, it fails."""
    chunk: int = 256 * KIB
    """Bytes that are decompressed at once. Each connection holds up to three times as many that nobody has read."""


def in_words(size: int) -> str:
    """A number of bytes for people."""
    return f"{size // MIB} MiB" if size >= MIB else f"{size // KIB} KiB" if size >= KIB else f"{size} bytes"


def decoded(raw: bytes | msgspec.Raw, into: Any, what: str) -> Any:
    """Decode an answer. An invalid one comes from something in between: a login page, a load balancer."""
    try:
        return msgspec.json.decode(raw, type=into)
    except (ValueError, RecursionError) as error:
        raise InvalidAnswer(what, detail=str(error)) from None


async def decoded_items(items: Sequence[msgspec.Raw], into: Any, what: str) -> list[Any]:
    """Decode the items of a page, and let others run after each portion: a server may put thousands on one page."""
    found: list[Any] = []
    for start in range(0, len(items), PORTION):
        if start:
            await asyncio.sleep(0)
        found += [decoded(item, into, what) for item in items[start : start + PORTION]]
    return found


def count_items(body: bytes, most: int, what: str, *, before: int = 0) -> int:
    """The number of items in this page and those before.

    Raises InvalidAnswer at the first one too many, before any of them is decoded.
    """
    return _counted(body, _CountedItems, most, what, before)


def count_resources(body: bytes, most: int, what: str) -> int:
    """The same for the groups, versions and resources that discovery lists."""
    return _counted(body, _CountedGroups, most, what, 0)


def _counted(body: bytes, into: Any, most: int, what: str, before: int) -> int:
    """Decode objects without any field of theirs: each costs a few bytes, and is counted when it is made."""
    _Counted.seen, _Counted.most = before, most
    try:
        decoded(body, into, what)
    except _TooManyError:
        raise InvalidAnswer(what, f"the answer has more than {most} items") from None
    return _Counted.seen


class _TooManyError(Exception):
    """More objects than allowed."""


class _Counted(msgspec.Struct):
    """Any object. The counters are of the one decoding that runs, which nothing interrupts."""

    seen: ClassVar[int] = 0
    most: ClassVar[int] = 0

    def __post_init__(self) -> None:
        _Counted.seen += 1
        if _Counted.seen > _Counted.most:
            raise _TooManyError


class _CountedItems(msgspec.Struct):
    items: list[_Counted] | None = None


class _CountedVersion(_Counted):
    resources: list[_Counted] = []


class _CountedGroup(_Counted):
    versions: list[_CountedVersion] = []


class _CountedGroups(msgspec.Struct):
    items: list[_CountedGroup] = []


class Lines:
    """Splits chunks at newlines. An object may span many chunks; each byte is searched once."""

    def __init__(self, longest: int, what: str) -> None:
        self._longest = longest
        self._what = what
        self._parts: list[bytes] = []
        self._length = 0

    def feed(self, chunk: bytes) -> Iterator[bytes]:
        *complete, rest = chunk.split(b"\n")
        for line in complete:
            self._keep(line)
            whole = b"".join(self._parts)
            self._parts.clear()
            self._length = 0
            if whole:
                yield whole
        if rest:
            self._keep(rest)

    def _keep(self, part: bytes) -> None:
        self._length += len(part)
        if self._length > self._longest:
            raise InvalidAnswer(self._what, f"an event is longer than {in_words(self._longest)}")
        self._parts.append(part)
