"""The keys that wait for a reconcile: each at most once, in order of arrival, never two workers on one."""

from __future__ import annotations

import asyncio
import heapq
from collections import OrderedDict
from collections.abc import Hashable
from dataclasses import dataclass
from itertools import count
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from random import Random

    from virt_steward.runtime.clock import Clock
    from virt_steward.runtime.metrics import Metrics

K = TypeVar("K", bound=Hashable)

_SLACK = 64  # replaced entries that the heap of delayed keys may carry before it is rebuilt


class ShutDown(Exception):
    """The queue hands out no more keys."""


@dataclass(frozen=True, slots=True)
class QueueBackoff:
    """How long a failing key waits: anything from zero to a ceiling that doubles with each failure."""

    base: float = 0.05
    cap: float = 300.0

    def ceiling(self, failures: int) -> float:
        return min(self.cap, self.base * 2.0 ** min(failures, 64))  # bounded: a float overflows at 2**1024


DEFAULT_BACKOFF = QueueBackoff()


class WorkQueue(Generic[K]):
    """Keys to reconcile, for use on one event loop.

    A delayed key is a latest time, not an appointment: the earliest one counts, and a run that starts before
    it answers it, since a reconcile looks at everything and says anew how long to wait.
    """

    def __init__(
        self, name: str, clock: Clock, rng: Random, metrics: Metrics, backoff: QueueBackoff = DEFAULT_BACKOFF
    ) -> None:
        self.name = name
        self._clock = clock
        self._rng = rng
        self._backoff = backoff
        self._ready: OrderedDict[K, float] = OrderedDict()  # since when
        self._running: dict[K, float] = {}  # since when
        self._again: set[K] = set()  # added while running
        self._due: dict[K, float] = {}
        self._heap: list[tuple[float, int, K]] = []  # of _due, and of entries that _due no longer has
        self._order = count()  # keys themselves need not compare
        self._failures: dict[K, int] = {}
        self._timer: asyncio.Task[None] | None = None
        self._wake_at = 0.0
        self._changed = asyncio.Event()
        self._closed = False
        self._metrics = metrics.queue(self)

    def __len__(self) -> int:
        """Keys that could be worked on now."""
        return len(self._ready)

    @property
    def delayed(self) -> int:
        """Keys whose time has not come."""
        return len(self._due)

    @property
    def oldest_wait(self) -> float:
        """Seconds that the first key in line has waited; zero if none waits."""
        return self._clock.now() - next(iter(self._ready.values())) if self._ready else 0.0

    @property
    def running(self) -> dict[K, float]:
        """The keys being worked on, and for how many seconds."""
        now = self._clock.now()
        return {key: now - since for key, since in self._running.items()}

    def add(self, key: K) -> None:
        """Run the key soon; if it runs now, once more after that."""
        if self._closed or key in self._ready or key in self._again:
            return
        self._metrics.added()
        if key in self._running:
            self._again.add(key)
        else:
            self._line_up(key)

    def add_after(self, key: K, seconds: float) -> None:
        """Run the key by then at the latest."""
        if seconds <= 0:
            self.add(key)
            return
        due = self._clock.now() + seconds
        if self._closed or due >= self._due.get(key, float("inf")):
            return
        self._due[key] = due
        heapq.heappush(self._heap, (due, next(self._order), key))
        self._drop_replaced_entries()
        self._set_timer()

    def retry(self, key: K, at_least: float = 0.0) -> float:
        """Run the key again after a failure, later with each; gives the delay in seconds."""
        failures = self._failures.get(key, 0)
        self._failures[key] = failures + 1
        # On top of the floor, not instead of it: whom a server sent away together should not come back together.
        delay = at_least + self._rng.uniform(0.0, self._backoff.ceiling(failures))
        self._metrics.retried()
        self.add_after(key, delay)
        return delay

    def forget(self, key: K) -> None:
        """The key's next failure is its first."""
        self._failures.pop(key, None)

    async def get(self) -> K:
        """The next key, now the caller's until `done`. Raises ShutDown at the end, even if keys are left."""
        while not self._ready:
            if self._closed:
                raise ShutDown
            self._changed.clear()
            await self._changed.wait()
        key, since = self._ready.popitem(last=False)
        now = self._clock.now()
        self._running[key] = now
        self._due.pop(key, None)  # this run answers it
        self._metrics.taken(now - since)
        return key

    def done(self, key: K) -> None:
        """The caller's work on the key has ended, however it ended."""
        self._metrics.worked(self._clock.now() - self._running.pop(key))
        if key in self._again:
            self._again.remove(key)
            self._line_up(key)

    def shut_down(self) -> None:
        """Hand out and accept nothing more. What is left is dropped: the next process looks at everything."""
        self._closed = True
        for left in (self._ready, self._again, self._due, self._heap):
            left.clear()
        if self._timer:
            self._timer.cancel()
            self._timer = None
        self._changed.set()

    def _line_up(self, key: K) -> None:
        self._ready[key] = self._clock.now()
        self._changed.set()

    def _set_timer(self) -> None:
        """Keep one timer, for the nearest delayed key."""
        while self._heap and self._is_replaced(self._heap[0]):
            heapq.heappop(self._heap)
        if not self._heap:
            return
        due = self._heap[0][0]
        if self._timer:
            if self._wake_at <= due:
                return
            self._timer.cancel()
        self._wake_at = due
        self._timer = asyncio.create_task(self._ring(due), name=f"workqueue-timer-{self.name}")

    async def _ring(self, due: float) -> None:
        await self._clock.sleep(due - self._clock.now())
        self._timer = None
        now = self._clock.now()
        while self._heap and self._heap[0][0] <= now:
            entry = heapq.heappop(self._heap)
            if not self._is_replaced(entry):
                key = entry[2]
                del self._due[key]
                self.add(key)
        self._set_timer()

    def _is_replaced(self, entry: tuple[float, int, K]) -> bool:
        due, _, key = entry
        return self._due.get(key) != due

    def _drop_replaced_entries(self) -> None:
        if len(self._heap) > 2 * len(self._due) + _SLACK:
            self._heap = [(due, next(self._order), key) for key, due in self._due.items()]
            heapq.heapify(self._heap)
