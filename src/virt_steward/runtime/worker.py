"""Workers: take keys from the queue, reconcile them, and retry, requeue or forget them by the outcome."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Awaitable, Callable, Hashable
from typing import TYPE_CHECKING, Generic, TypeVar

import structlog

from virt_steward.kube.errors import NotLeading, Unavailable
from virt_steward.objects.errors import UserError
from virt_steward.runtime import log_context
from virt_steward.runtime.outcomes import Done, Outcome, RequeueAfter, Terminal
from virt_steward.runtime.supervision import essential, failure_of
from virt_steward.runtime.workqueue import ShutDown, WorkQueue

if TYPE_CHECKING:
    from datetime import datetime

    from virt_steward.runtime.clock import Clock
    from virt_steward.runtime.metrics import Metrics, Result

K = TypeVar("K", bound=Hashable)
Reconcile = Callable[[K], Awaitable[Outcome]]

log = structlog.get_logger()

SUCCESSES: tuple[Result, ...] = ("success", "requeue_after")


class Interrupted(Exception):
    """Something that a reconcile awaited was cancelled, but not the reconcile itself."""


class Workers(Generic[K]):
    """The worker tasks of one queue; its name is used in logs and metrics."""

    def __init__(
        self, queue: WorkQueue[K], reconcile: Reconcile[K], concurrency: int, clock: Clock, metrics: Metrics
    ) -> None:
        self.name = queue.name
        self.concurrency = concurrency
        self.last_success: datetime | None = None
        """When a reconcile last succeeded; None if none has."""
        self._queue = queue
        self._reconcile = reconcile
        self._clock = clock
        self._tasks: set[asyncio.Task[None]] = set()
        self._busy: dict[asyncio.Task[None], K] = {}
        self._metrics = metrics.controller(self)

    @property
    def active(self) -> int:
        """How many workers are in a reconcile."""
        return len(self._busy)

    def start(self) -> None:
        """Start the workers. After `stop`, they can be started again on the same queue."""
        self._tasks = {essential(self._work(), f"{self.name}-worker-{number}") for number in range(self.concurrency)}

    def failure(self) -> str | None:
        """Which workers have crashed; None if none has."""
        return failure_of(self._tasks)

    async def stop(self, grace: float) -> tuple[K, ...]:
        """Take no more keys, give running reconciles `grace` seconds, cancel the others, and return their keys.

        A cancelled key goes back into the queue, so it is not lost if the workers start again.
        """
        tasks, self._tasks = self._tasks, set()
        for idle in tasks - self._busy.keys():
            idle.cancel()
        abandoned: list[K] = []

        async def cancel_after_grace() -> None:
            await self._clock.sleep(grace)
            abandoned.extend(self._busy.values())
            for task in tasks:
                task.cancel()

        timer = asyncio.create_task(cancel_after_grace(), name=f"{self.name}-workers-grace")
        try:
            if tasks:
                await asyncio.wait(tasks)
        finally:  # also if the caller is cancelled
            for task in (timer, *tasks):
                task.cancel()
        return tuple(abandoned)

    async def _work(self) -> None:
        me = asyncio.current_task()
        while me in self._tasks:  # until `stop` removes it
            try:
                key = await self._queue.get()
            except ShutDown:
                return
            self._busy[me] = key
            try:
                await self._run(key)
            finally:
                del self._busy[me]
                self._queue.done(key)
            await asyncio.sleep(0)  # a converged key suspends nowhere: a pass over many must not hold the event loop

    async def _run(self, key: K) -> None:
        log_context.bind(controller=self.name, key=str(key), reconcile_id=secrets.token_hex(4))
        started = self._clock.now()
        ended = await self._attempt(key)
        result = self._follow_up(key, ended)
        if result in SUCCESSES:
            self.last_success = self._clock.utc()
        if result:
            self._metrics.reconciled(result, self._clock.now() - started)

    async def _attempt(self, key: K) -> Outcome | Exception:
        try:
            return await self._reconcile(key)
        except asyncio.CancelledError as error:
            me = asyncio.current_task()
            if me and me.cancelling():
                self._queue.add(key)
                raise
            return Interrupted(f"an awaited task was cancelled: {error}")
        except Exception as error:  # noqa: BLE001 - one bad key must not stop the others
            return error

    def _follow_up(self, key: K, ended: Outcome | Exception) -> Result | None:
        """Requeue or forget the key, and log the outcome; return the result for metrics, if any."""
        match ended:
            case Done():
                self._queue.forget(key)
                log.debug("reconciled")
                return "success"
            case RequeueAfter(seconds, why):
                self._queue.forget(key)
                self._queue.add_after(key, seconds)
                log.debug("requeued", seconds=seconds, reason=why)
                return "requeue_after"
            case NotLeading():  # the next leader reconciles everything
                self._queue.retry(key)
                return None
            case Terminal():
                self._queue.forget(key)
                log.error("reconcile failed, no retry before the next event", error=str(ended))
                return "terminal"
            case UserError():  # it explains itself, and is no bug: no traceback
                floor = ended.retry_after or 0.0 if isinstance(ended, Unavailable) else 0.0
                delay = self._queue.retry(key, at_least=floor)
                log.warning("reconcile failed", error=str(ended), kind=type(ended).__name__, retry_in=round(delay, 3))
                return "error"
            case _:
                delay = self._queue.retry(key)
                log.error("reconcile crashed", error=repr(ended), retry_in=round(delay, 3), exc_info=ended)
                return "error"
