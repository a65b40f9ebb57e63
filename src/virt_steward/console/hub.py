"""Tells open pages that something they show may have changed."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Iterator

Topic = Literal["profiles", "approvals", "placement", "autopilot", "activity", "rollout"]


class Listener:
    """One open page."""

    def __init__(self) -> None:
        self._topics: set[Topic] = set()
        self._news = asyncio.Event()

    def tell(self, topic: Topic) -> None:
        self._topics.add(topic)
        self._news.set()

    async def heard(self, patience: float) -> frozenset[Topic]:
        """What has changed since the last time; nothing if all stayed quiet for so long."""
        try:
            async with asyncio.timeout(patience):
                await self._news.wait()
        except TimeoutError:
            return frozenset()
        self._news.clear()
        topics, self._topics = frozenset(self._topics), set()
        return topics

    async def heard_of(self, topics: frozenset[Topic], patience: float) -> None:
        """Until one of these topics has changed, but no longer than that."""
        loop = asyncio.get_running_loop()
        end = loop.time() + patience
        while (left := end - loop.time()) > 0:
            if await self.heard(left) & topics:
                return


class Hub:
    def __init__(self) -> None:
        self._listeners: set[Listener] = set()

    def __iter__(self) -> Iterator[Listener]:
        return iter(self._listeners)

    def changed(self, topic: Topic) -> None:
        for listener in self._listeners:
            listener.tell(topic)

    def join(self) -> Listener:
        listener = Listener()
        self._listeners.add(listener)
        return listener

    def leave(self, listener: Listener) -> None:
        self._listeners.discard(listener)
