"""Informers of widgets, run for the length of a test, and what they told."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any, Protocol

from tests.widgets import WIDGET, Widget
from virt_steward.kube.client import Reader, Selection
from virt_steward.kube.discovery import Discovery
from virt_steward.kube.watch import SILENCE, projection
from virt_steward.objects.identity import Key, Kind
from virt_steward.runtime.informer import RECHECKS, Informer, Source
from virt_steward.runtime.kinds import DEFINITIONS, Kinds

Change = tuple[str, int | None, int | None]


class Runs(Protocol):
    async def run(self) -> None: ...


class Told:
    """The changes of one informer as (name, size before, size after)."""

    def __init__(self) -> None:
        self.changes: list[Change] = []

    def __call__(self, key: Key, before: Widget | None, after: Widget | None) -> None:
        self.changes.append((key.name, before.spec.size if before else None, after.spec.size if after else None))


def widgets_of(namespace: str, kind: Kind = WIDGET, **more: Any) -> Source[Widget]:
    return Source(kind, projection(Widget), Selection(namespace), **more)


@asynccontextmanager
async def informed(
    reader: Reader, source: Source[Any], *, silence: float = SILENCE, rechecks: Sequence[float] = RECHECKS
) -> AsyncIterator[tuple[Informer[Any], Told]]:
    informer, told = Informer(reader, source, silence=silence, rechecks=rechecks), Told()
    informer.tell(told)
    async with running(informer):
        yield informer, told


@asynccontextmanager
async def kinds_followed(reader: Reader, discovery: Discovery) -> AsyncIterator[None]:
    """As a process does: definitions are watched, and discovery follows them."""
    kinds, definitions = Kinds(discovery), Informer(reader, DEFINITIONS)
    definitions.tell(kinds.handle)
    async with running(definitions), running(kinds):
        await asyncio.wait_for(definitions.settled(), 30)
        yield


@asynccontextmanager
async def running(runs: Runs) -> AsyncIterator[None]:
    task = asyncio.ensure_future(runs.run())
    try:
        yield
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


def sizes(informer: Informer[Widget]) -> dict[str, int]:
    return {each.metadata.name: each.spec.size for each in informer.store}
