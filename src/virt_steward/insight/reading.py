"""How questions read a cluster: lists that fill a controller's stores once, and dry runs that never write."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from virt_steward.kube.client import Caller, Client
from virt_steward.kube.errors import Forbidden, NotLeading, NotServed
from virt_steward.kube.watch import Projected, Put, Unreadable, projected
from virt_steward.runtime.store import Store

if TYPE_CHECKING:
    from virt_steward.kube.client import Reader, Selection
    from virt_steward.runtime.informer import Source

T = TypeVar("T", bound=Projected)


async def listed(reader: Reader, source: Source[T], selection: Selection) -> Store[T]:
    """List a kind into a store. Raises NotServed if the server does not serve the kind."""
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
    """List a kind into a store, which is empty if the kind is not served.

    If the list is forbidden and the source allows that, the store is empty and marked as denied.
    """
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


class NoWrites:
    """The permit of a client that asks questions: it allows no write, and a dry run needs no permit."""

    def remaining(self) -> float:
        raise NotLeading("this command only reads, so the write was refused")


def dry_run_client(client: Client) -> Client:
    """Make a client on the same connection that can only read and dry-run."""
    return Client(client.connection, client.discovery, Caller(permit=NoWrites()))
