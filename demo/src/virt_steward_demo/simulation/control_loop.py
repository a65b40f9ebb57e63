"""What the simulated controllers share: the objects that they read, their loop, and running them in the background."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Protocol

import msgspec
import structlog

from virt_steward.kube.errors import KubeError
from virt_steward.kube.watch import projection
from virt_steward.objects.meta import Meta
from virt_steward.runtime.informer import Source

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Iterable

    from virt_steward.objects.identity import Key, Kind
    from virt_steward.runtime.informer import Informer
    from virt_steward.runtime.store import Store

log = structlog.get_logger()

RETRY = 0.5


class SimulatedMeta(Meta, frozen=True, rename="camel"):
    labels: dict[str, str] = msgspec.field(default_factory=dict)
    annotations: dict[str, str] = msgspec.field(default_factory=dict)
    generation: int = 0


class SimulatedObject(msgspec.Struct, frozen=True):
    """Any object, with its whole spec and status: there are few of them."""

    metadata: SimulatedMeta
    spec: dict[str, Any] = msgspec.field(default_factory=dict)
    status: dict[str, Any] = msgspec.field(default_factory=dict)

    @property
    def name(self) -> str:
        return self.metadata.name

    @property
    def key(self) -> Key:
        return self.metadata.key


def source_of(kind: Kind) -> Source[SimulatedObject]:
    return Source(kind, projection(SimulatedObject))


def in_order(store: Store[SimulatedObject]) -> list[SimulatedObject]:
    """All objects, sorted by namespace and name."""
    return sorted(store, key=lambda one: one.key)


class Job(Protocol):
    async def run(self) -> None: ...


@asynccontextmanager
async def in_background(*jobs: Job) -> AsyncIterator[None]:
    """Run the jobs until the end of the block. If a job failed before that, its error is raised at the end."""
    tasks = [asyncio.create_task(job.run()) for job in jobs]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        results = await asyncio.gather(*tasks, return_exceptions=True)
    for result in results:
        if isinstance(result, BaseException) and not isinstance(result, asyncio.CancelledError):
            raise result


async def reconcile_on_change(
    informers: Iterable[Informer[Any]],
    changed: asyncio.Event,
    reconcile: Callable[[asyncio.TaskGroup], Awaitable[None]],
    what: str,
) -> None:
    """Reconcile whenever an informer reports a change or somebody sets `changed`; ends by cancellation only."""
    watched = tuple(informers)
    async with asyncio.TaskGroup() as group:
        for informer in watched:
            informer.tell(lambda *_: changed.set())
            group.create_task(informer.run())
        for informer in watched:
            await informer.settled()
        while True:
            await changed.wait()
            changed.clear()
            try:
                await reconcile(group)
            except KubeError as error:  # the server may be restarting, or another writer was faster
                log.warning("simulation not reconciled", what=what, error=str(error), retry_in=RETRY)
                await asyncio.sleep(RETRY)
                changed.set()
