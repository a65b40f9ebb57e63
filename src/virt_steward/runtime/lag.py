"""Finds what blocks the event loop: how long, in which task, and at which line. An idle process pays nothing for it.

Everything in this process shares one event loop: a callback that computes for a second delays every health probe,
lease renewal and page for that second. The monitor arms a timer signal when the loop begins to work. If the signal
finds the loop at the same turn as THRESHOLD before, something blocks it; the signal interrupts just that code, so that
the current task and line are known. A timer that finds the loop waiting is not armed again before the next turn, and a
busy loop arms it twenty times a second at the most. Example of the log line:

    event loop blocked  seconds=0.31  cpu=0.3  task=autopilot-worker-2  at=jsonpatch.py:131 in apply

`cpu` is what the loop itself computed in that time. If it is much less, the machine is busy, or a call waited.
A system call or a single call into C is reported when it returns. Only the loop of the main thread can be monitored.
"""

from __future__ import annotations

import asyncio
import signal
import threading
import time
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, Protocol

import structlog

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from selectors import BaseSelector, SelectorKey
    from types import FrameType

log = structlog.get_logger()

THRESHOLD = 0.05
"""Seconds of work without a pause that are too long."""
SHORTEST = 0.001
LOG_INTERVAL = 10.0
"""Seconds between two log lines: what blocks the loop once tends to do so again."""


class LagMetric(Protocol):
    def __call__(self, seconds: float) -> None:
        """Record one blocked turn of the loop."""


class TurnBegins(Protocol):
    def __call__(self, *, by_signal: bool) -> None:
        """A turn of the loop begins; `by_signal` if nothing but a signal woke it."""


@dataclass(frozen=True, slots=True)
class BlockedTurn:
    """A turn of the loop that took too long."""

    seconds: float
    cpu: float
    """Seconds that the thread of the loop computed in that time."""
    task: str
    """The name of the task that was running when the time was up."""
    place: str
    """The line that was running then."""


class LagMonitor:
    """Watches the running loop. `blocked` gets every blocked turn."""

    def __init__(self, blocked: Callable[[BlockedTurn], None], threshold: float = THRESHOLD) -> None:
        self._blocked = blocked
        self._threshold = threshold
        self._since: float | None = None
        """When the loop began to work; None while it waits."""
        self._cpu_since = 0.0
        self._is_armed = False
        self._has_fired_idle = False
        """The timer fired while the loop waited, and may have woken it by that."""
        self._caught: tuple[str, str] | None = None

    @contextmanager
    def running(self) -> Iterator[None]:
        """Monitor the running loop until the block ends. Does nothing where the signal is not ours to take."""
        if (
            threading.current_thread() is not threading.main_thread()
            or signal.getsignal(signal.SIGALRM) != signal.SIG_DFL
        ):
            yield
            return
        loop: Any = asyncio.get_running_loop()
        inner = loop._selector  # noqa: SLF001 - asyncio has no public hook around its wait
        before = signal.signal(signal.SIGALRM, self._late)
        # asyncio writes a byte to this socket for every signal, if it handles any, and wakes up from that.
        loop._selector = _Selector(inner, self._pause, self._resume, loop._ssock.fileno())  # noqa: SLF001
        self._resume()
        try:
            yield
        finally:
            self._pause()
            signal.setitimer(signal.ITIMER_REAL, 0)
            loop._selector = inner  # noqa: SLF001
            signal.signal(signal.SIGALRM, before)

    def _resume(self, *, by_signal: bool = False) -> None:
        """A turn begins. One that our own timer caused arms no timer: an idle loop would go on like that for ever."""
        self._since, self._cpu_since = time.monotonic(), time.thread_time()
        is_ours, self._has_fired_idle = by_signal and self._has_fired_idle, False
        if not self._is_armed and not is_ours:
            self._arm(self._threshold)

    def _pause(self) -> None:
        since, self._since = self._since, None
        if since is None:
            return
        seconds = time.monotonic() - since
        if self._caught is None and (self._is_armed or seconds < self._threshold):
            return
        task, place = self._caught or ("none", "unknown")
        self._caught = None
        self._blocked(BlockedTurn(seconds, time.thread_time() - self._cpu_since, task, place))

    def _arm(self, seconds: float) -> None:
        self._is_armed = True
        signal.setitimer(signal.ITIMER_REAL, seconds)

    def _late(self, _number: int, frame: FrameType | None) -> None:
        """Runs in the middle of whatever the loop does, so it only takes note."""
        self._is_armed = False
        if self._since is None:
            self._has_fired_idle = True
            return  # the loop waits; the next turn arms the timer again
        left = self._since + self._threshold - time.monotonic()
        if left > 0:
            self._arm(max(left, SHORTEST))  # this turn began after the timer was armed
            return
        task = asyncio.current_task() if asyncio._get_running_loop() else None  # noqa: SLF001 - None outside of a loop
        while frame and frame.f_code.co_filename == __file__:  # the timer may come while it is set
            frame = frame.f_back
        place = f"{PurePath(frame.f_code.co_filename).name}:{frame.f_lineno} in {frame.f_code.co_name}" if frame else ""
        self._caught = (task.get_name() if task else "none", place)


class LagReporter:
    """Turns blocked turns into a metric and, now and then, a log line."""

    def __init__(self, metric: LagMetric) -> None:
        self._metric = metric
        self._silent_until = 0.0

    def __call__(self, turn: BlockedTurn) -> None:
        self._metric(turn.seconds)
        now = time.monotonic()
        if now >= self._silent_until:
            self._silent_until = now + LOG_INTERVAL
            seconds, cpu = round(turn.seconds, 3), round(turn.cpu, 3)
            log.warning("event loop blocked", seconds=seconds, cpu=cpu, task=turn.task, at=turn.place)


class _Selector:
    """A selector that reports when it begins to wait and when it has waited."""

    def __init__(self, inner: BaseSelector, pause: Callable[[], None], resume: TurnBegins, signals: int) -> None:
        """`signals` is the file descriptor by which signals wake it."""
        self._inner = inner
        self._pause = pause
        self._resume = resume
        self._signals = signals

    def select(self, timeout: float | None = None) -> Any:
        self._pause()
        ready: list[tuple[SelectorKey, int]] = []
        try:
            ready = self._inner.select(timeout)
            return ready
        finally:
            self._resume(by_signal=len(ready) == 1 and ready[0][0].fd == self._signals)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)
