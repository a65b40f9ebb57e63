"""Shared informers: one per source, or one per source and namespace."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from virt_steward.kube.watch import Projected
from virt_steward.runtime.access import Reach
from virt_steward.runtime.informer import Informer, InformerState
from virt_steward.runtime.store import Store

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from virt_steward.kube.client import Reader
    from virt_steward.objects.identity import Key
    from virt_steward.runtime.informer import Source

T = TypeVar("T", bound=Projected)


class SharedInformer(Generic[T]):
    """One source, with one store, by one or several informers."""

    def __init__(self, informers: Sequence[Informer[T]]) -> None:
        self.informers = informers
        self.store = informers[0].store

    def tell(self, handler: Callable[[Key, T | None, T | None], None]) -> None:
        for informer in self.informers:
            informer.tell(handler)

    def replay(self, handler: Callable[[Key, T | None, T | None], None]) -> None:
        for informer in self.informers:
            informer.replay(handler)

    async def settled(self) -> None:
        for informer in self.informers:
            await informer.settled()


class Informers:
    """Created on demand, run by the manager. Sources with Reach.TARGETS are limited to `namespaces`, if any."""

    def __init__(self, reader: Reader, namespaces: tuple[str, ...]) -> None:
        self.namespaces = namespaces
        self._reader = reader
        self._watched: dict[Source[Any], SharedInformer[Any]] = {}

    def __iter__(self) -> Iterator[Informer[Any]]:
        return (informer for watched in self._watched.values() for informer in watched.informers)

    def of(self, source: Source[T]) -> SharedInformer[T]:
        if source not in self._watched:
            self._watched[source] = SharedInformer(self._made(source))
        return self._watched[source]

    def _made(self, source: Source[T]) -> list[Informer[T]]:
        if not self.namespaces or source.where is not Reach.TARGETS:
            return [Informer(self._reader, source)]
        shared: Store[T] = Store(source.indexes or {})
        return [
            Informer(self._reader, replace(source, selection=replace(source.selection, namespace=name)), shared=shared)
            for name in self.namespaces
        ]

    def unsettled(self) -> str | None:
        """Why not all stores are complete now; None if they are."""
        pending = [
            f"{informer.source.kind} {informer.trouble or informer.state.value}"
            for informer in self
            if informer.state
            not in (
                InformerState.SYNCED,
                InformerState.ABSENT,
                InformerState.DENIED,
            )  # readers of Store.denied report it
        ]
        return "; ".join(pending) or None


class InformerView:
    """The informers of one controller. It must not act before they have settled: unknown is not absent."""

    def __init__(self, informers: Informers) -> None:
        self.namespaces = informers.namespaces
        self._informers = informers
        self._used: dict[Source[Any], SharedInformer[Any]] = {}

    def of(self, source: Source[T]) -> SharedInformer[T]:
        watched = self._informers.of(source)
        self._used[source] = watched
        return watched

    async def settled(self) -> None:
        """Wait until each is complete, or its kind is known to be not served or denied."""
        for watched in self._used.values():
            await watched.settled()
