"""What a controller would have in its stores, listed once: for questions that are asked now and then."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from virt_steward.kube.errors import Forbidden, NotServed
from virt_steward.kube.watch import Projected, Put, Unreadable, projected
from virt_steward.runtime.store import Store

if TYPE_CHECKING:
    from virt_steward.kube.client import Reader, Selection
    from virt_steward.runtime.informer import Source

T = TypeVar("T", bound=Projected)


async def listed(reader: Reader, source: Source[T], selection: Selection) -> Store[T]:
    """Raises NotServed if the server has no such kind."""
    store: Store[T] = Store(source.indexes or {})
    async for page in reader.pages(source.kind, selection):
        for item in page.items:
            match projected(source.decode, bytes(item)):
                case Put(obj):
                    store.put(obj)
                case Unreadable(metadata, problem):
                    store.put_unreadable(metadata.key, problem)
    return store


async def listed_if_served(reader: Reader, source: Source[T]) -> Store[T]:
    """All of them; none where the kind is not installed, and a store that says so where it may be denied, and is."""
    store: Store[T] = Store(source.indexes or {})
    try:
        return await listed(reader, source, source.selection)
    except NotServed:
        return store
    except Forbidden:
        if not source.may_be_denied:
            raise
        store.denied.add(source.selection.namespace)
        return store
