"""Watches whose events a test takes one by one."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing, asynccontextmanager
from typing import Any

from tests.widgets import WIDGET, Widget
from virt_steward.kube.client import Reader, Selection
from virt_steward.kube.watch import SILENCE, Event, Gone, Put, Reset, Trouble, Unreadable, Watch, projection

PATIENCE = 30
AS_WIDGET = projection(Widget)


def in_words(event: Event[Any]) -> str:
    match event:
        case Put(obj):
            return f"put {obj.metadata.name}"
        case Gone(metadata):
            return f"gone {metadata.name}"
        case Unreadable(metadata, _):
            return f"unreadable {metadata.name}"
        case Trouble(error, _):
            return type(error).__name__
        case _:
            return type(event).__name__


class Followed:
    """A watch of one namespace's widgets whose events are taken one by one."""

    def __init__(self, events: AsyncIterator[Event[Any]]) -> None:
        self._events = events
        self.last: Event[Any] = Reset()

    async def until(self, end: str) -> list[str]:
        """The events up to that one, in words."""
        told: list[str] = []
        async with asyncio.timeout(PATIENCE):
            async for event in self._events:
                told.append(in_words(event))
                self.last = event
                if told[-1] == end:
                    break
        return told


@asynccontextmanager
async def followed(
    reader: Reader,
    namespace: str,
    decode: Callable[[bytes], Any] = AS_WIDGET,
    *,
    silence: float = SILENCE,
    **selection: Any,
) -> AsyncIterator[Followed]:
    watch = Watch(reader, WIDGET, decode, selection=Selection(namespace, **selection), silence=silence)
    async with aclosing(watch.events(await reader.discovery.resource(WIDGET))) as events:
        yield Followed(events)
