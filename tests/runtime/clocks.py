"""A clock that stands still until a test moves it."""

from __future__ import annotations

import asyncio
import heapq
from datetime import UTC, datetime, timedelta
from itertools import count

_STARTED = datetime(2030, 1, 1, tzinfo=UTC)


class ManualClock:
    def __init__(self) -> None:
        self._now = 1000.0
        self._sleepers: list[tuple[float, int, asyncio.Future[None]]] = []
        self._order = count()

    def now(self) -> float:
        return self._now

    def utc(self) -> datetime:
        return _STARTED + timedelta(seconds=self._now)

    async def sleep(self, seconds: float) -> None:
        woken = asyncio.get_running_loop().create_future()
        heapq.heappush(self._sleepers, (self._now + seconds, next(self._order), woken))
        await woken

    @property
    def sleepers(self) -> int:
        """Those still waiting."""
        return sum(not woken.done() for _, _, woken in self._sleepers)

    async def advance(self, seconds: float) -> None:
        """Wake whose time comes, one after the other, and let each do what it can before the next."""
        until = self._now + seconds
        await settle()
        while self._sleepers and self._sleepers[0][0] <= until:
            self._now, _, woken = heapq.heappop(self._sleepers)
            if not woken.done():
                woken.set_result(None)
                await settle()
        self._now = until


async def settle() -> None:
    """Let every task run until all of them wait."""
    loop = asyncio.get_running_loop()
    await asyncio.sleep(0)
    while loop._ready:  # type: ignore[attr-defined]  # noqa: ASYNC110 - no event says that nothing is left to run
        await asyncio.sleep(0)
