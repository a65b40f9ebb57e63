"""The work queue: each key at most once, first in first out, never two workers on one key."""

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

LASTING = 5
"""Failures in a row after which a key counts as failing. Fewer are usual, such as conflicts."""
_SLACK = 64  # stale entries in the heap of delayed keys before it is rebuilt


class ShutDown(Exception):
    """The queue is shut down."""


@dataclass(frozen=True, slots=True)
class QueueBackoff:
    """Exponential backoff with full jitter: from zero to a ceiling that doubles with each failure."""

    base: float = 0.05
    cap: float = 300.0

    def ceiling(self, failures: int) -> float:
        return min(self.cap, self.base * 2.0 ** min(failures, 64))  # bounded: a float overflows at 2**1024


DEFAULT_BACKOFF = QueueBackoff()


class WorkQueue(Generic[K]):
    """Keys to reconcile, for use on one event loop.

    A delay is the latest time for a key: the earliest of several counts, and a run that starts before it replaces it,
    since a reconcile is level-based and returns the next delay itself.
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
        self._added_while_running: set[K] = set()  # added while running
        self._due: dict[K, float] = {}
        self._heap: list[tuple[float, int, K]] = []  # entries of _due, and stale ones
        self._order = count()  # a tie-breaker: keys need not be comparable
        self._failures: dict[K, int] = {}
        self._timer: asyncio.Task[None] | None = None
        self._timer_due = 0.0
        self._changed = asyncio.Event()
        self._closed = False
        self._metrics = metrics.queue(self)

    def __len__(self) -> int:
        """Keys that are ready."""
        return len(self._ready)

    @property
    def delayed(self) -> int:
        """Keys that are delayed."""
        return len(self._due)

    @property
    def failing(self) -> int:
        """Keys that fail again and again."""
        return sum(failures >= LASTING for failures in self._failures.values())

    @property
    def oldest_wait(self) -> float:
        """Seconds that the first ready key has waited; zero if there is none."""
        return self._clock.now() - next(iter(self._ready.values())) if self._ready else 0.0

    @property
    def running(self) -> dict[K, float]:
        """The keys in progress, and for how many seconds."""
        now = self._clock.now()
        return {key: now - since for key, since in self._running.items()}

    def add(self, key: K) -> None:
        """Run the key soon; if it runs now, once more after that."""
        if self._closed or key in self._ready or key in self._added_while_running:
            return
        self._metrics.added()
        if key in self._running:
            self._added_while_running.add(key)
        else:
            self._make_ready(key)

    def add_after(self, key: K, seconds: float) -> None:
        """Run the key after this delay at the latest."""
        if seconds <= 0:
            self.add(key)
            return
        due = self._clock.now() + seconds
        if self._closed or due >= self._due.get(key, float("inf")):
            return
        self._due[key] = due
        heapq.heappush(self._heap, (due, next(self._order), key))
        self._drop_stale_entries()
        self._set_timer()

    def retry(self, key: K, at_least: float = 0.0) -> float:
        """Run the key again after a failure, with backoff; return the delay in seconds."""
        failures = self._failures.get(key, 0)
        self._failures[key] = failures + 1
        # The jitter is added to the minimum: clients that got the same Retry-After must not return at the same time.
        delay = at_least + self._rng.uniform(0.0, self._backoff.ceiling(failures))
        self._metrics.retried()
        self.add_after(key, delay)
        return delay

    def forget(self, key: K) -> None:
        """Reset the backoff of the key."""
        self._failures.pop(key, None)

    async def get(self) -> K:
        """The next key, which is in progress until `done`. Raises ShutDown after `shut_down`."""
        while not self._ready:
            if self._closed:
                raise ShutDown
            self._changed.clear()
            await self._changed.wait()
        key, since = self._ready.popitem(last=False)
        now = self._clock.now()
        self._running[key] = now
        self._due.pop(key, None)  # this run replaces it
        self._metrics.taken(now - since)
        return key

    def done(self, key: K) -> None:
        """The work on the key has ended, with success or not."""
        self._metrics.worked(self._clock.now() - self._running.pop(key))
        if key in self._added_while_running:
            self._added_while_running.remove(key)
            self._make_ready(key)

    def shut_down(self) -> None:
        """Drop all keys and accept no more: the next leader reconciles everything."""
        self._closed = True
        for left in (self._ready, self._added_while_running, self._due, self._heap):
            left.clear()
        if self._timer:
            self._timer.cancel()
            self._timer = None
        self._changed.set()

    def _make_ready(self, key: K) -> None:
        self._ready[key] = self._clock.now()
        self._changed.set()

    def _set_timer(self) -> None:
        """Keep one timer, for the nearest delayed key."""
        while self._heap and self._is_stale(self._heap[0]):
            heapq.heappop(self._heap)
        if not self._heap:
            return
        due = self._heap[0][0]
        if self._timer:
            if self._timer_due <= due:
                return
            self._timer.cancel()
        self._timer_due = due
        self._timer = asyncio.create_task(self._on_timer(due), name=f"workqueue-timer-{self.name}")

    async def _on_timer(self, due: float) -> None:
        await self._clock.sleep(due - self._clock.now())
        self._timer = None
        now = self._clock.now()
        while self._heap and self._heap[0][0] <= now:
            entry = heapq.heappop(self._heap)
            if not self._is_stale(entry):
                key = entry[2]
                del self._due[key]
                self.add(key)
        self._set_timer()

    def _is_stale(self, entry: tuple[float, int, K]) -> bool:
        due, _, key = entry
        return self._due.get(key) != due

    def _drop_stale_entries(self) -> None:
        if len(self._heap) > 2 * len(self._due) + _SLACK:
            self._heap = [(due, next(self._order), key) for key, due in self._due.items()]
            heapq.heapify(self._heap)
