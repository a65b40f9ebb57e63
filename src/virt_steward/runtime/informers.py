"""One informer per source, shared by all who read it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from virt_steward.kube.watch import Projected
from virt_steward.runtime.informer import Informer, State

if TYPE_CHECKING:
    from collections.abc import Iterator

    from virt_steward.kube.client import Reader
    from virt_steward.runtime.informer import Source

T = TypeVar("T", bound=Projected)


class Informers:
    """Made on demand, run by the manager."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self._informers: dict[Source[Any], Informer[Any]] = {}

    def __iter__(self) -> Iterator[Informer[Any]]:
        return iter(self._informers.values())

    def of(self, source: Source[T]) -> Informer[T]:
        if source not in self._informers:
            self._informers[source] = Informer(self._reader, source)
        return self._informers[source]

    def unsettled(self) -> str | None:
        """Why not all stores can be relied on now; None if they can."""
        waiting = [
            f"{informer.source.kind} {informer.trouble or informer.state.value}"
            for informer in self
            if informer.state not in (State.SYNCED, State.ABSENT)
        ]
        return "; ".join(waiting) or None


class Borrowed:
    """The informers that one controller reads. It must not act before they have settled: unknown is not absent."""

    def __init__(self, informers: Informers) -> None:
        self._informers = informers
        self._borrowed: dict[Source[Any], Informer[Any]] = {}

    def of(self, source: Source[T]) -> Informer[T]:
        informer = self._informers.of(source)
        self._borrowed[source] = informer
        return informer

    async def settled(self) -> None:
        """Wait until each is complete, or its kind is known to be absent."""
        for informer in self._borrowed.values():
            await informer.settled()
