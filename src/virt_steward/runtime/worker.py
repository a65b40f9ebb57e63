"""The loop that takes keys, reconciles them, and turns how that ended into what happens next."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Awaitable, Callable, Hashable
from typing import TYPE_CHECKING, Generic, TypeVar

import structlog

from virt_steward.kube.errors import KubeError, NotLeading, Unavailable
from virt_steward.runtime import task
from virt_steward.runtime.outcomes import Done, Outcome, RequeueAfter, Terminal
from virt_steward.runtime.workqueue import ShutDown, WorkQueue

if TYPE_CHECKING:
    from virt_steward.runtime.clock import Clock
    from virt_steward.runtime.metrics import Metrics, Result

K = TypeVar("K", bound=Hashable)
Reconcile = Callable[[K], Awaitable[Outcome]]

log = structlog.get_logger()


class Interrupted(Exception):
    """A reconcile was cancelled from within: something that it waited for had been cancelled by others."""


class Workers(Generic[K]):
    """Tasks on one queue, named after it in logs and metrics."""

    def __init__(
        self, queue: WorkQueue[K], reconcile: Reconcile[K], concurrency: int, clock: Clock, metrics: Metrics
    ) -> None:
        self.name = queue.name
        self.concurrency = concurrency
        self._queue = queue
        self._reconcile = reconcile
        self._clock = clock
        self._tasks: set[asyncio.Task[None]] = set()
        self._busy: dict[asyncio.Task[None], K] = {}
        self._metrics = metrics.controller(self)

    @property
    def active(self) -> int:
        """How many of them are in a reconcile."""
        return len(self._busy)

    def start(self) -> None:
        """Begin to work. Once stopped, they may be started again on the same queue."""
        self._tasks = {
            asyncio.create_task(self._work(), name=f"{self.name}-worker-{number}") for number in range(self.concurrency)
        }

    async def stop(self, grace: float) -> tuple[K, ...]:
        """Take no more keys, give running reconciles `grace` seconds, cancel the rest, and say which those were.

        A cancelled key goes back into the queue: it is not lost if they are started again.
        """
        tasks, self._tasks = self._tasks, set()
        for idle in tasks - self._busy.keys():
            idle.cancel()
        abandoned: list[K] = []

        async def lose_patience() -> None:
            await self._clock.sleep(grace)
            abandoned.extend(self._busy.values())
            for task in tasks:
                task.cancel()

        patience = asyncio.create_task(lose_patience(), name=f"{self.name}-workers-grace")
        try:
            if tasks:
                await asyncio.wait(tasks)
        finally:  # also when whoever waits here is cancelled
            for task in (patience, *tasks):
                task.cancel()
        return tuple(abandoned)

    async def _work(self) -> None:
        me = asyncio.current_task()
        while me in self._tasks:  # until `stop` takes it off the list
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

    async def _run(self, key: K) -> None:
        task.works_on(controller=self.name, key=str(key), reconcile_id=secrets.token_hex(4))
        started = self._clock.now()
        ended = await self._attempt(key)
        result = self._follow_up(key, ended)
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
            return Interrupted(f"cancelled from within: {error}")
        except Exception as error:  # noqa: BLE001 - one bad key never stops the others; what to do follows from the type
            return error

    def _follow_up(self, key: K, ended: Outcome | Exception) -> Result | None:
        """Say in queue and log what comes of it; gives the result to count, if any."""
        match ended:
            case Done():
                self._queue.forget(key)
                log.debug("reconciled")
                return "success"
            case RequeueAfter(seconds, why):
                self._queue.forget(key)
                self._queue.add_after(key, seconds)
                log.debug("reconcile waits", seconds=seconds, why=why)
                return "requeue_after"
            case NotLeading():  # the next leader looks at everything; should it be us after all, so do we
                self._queue.retry(key)
                return None
            case Terminal():
                self._queue.forget(key)
                log.error("reconcile gave up until the next event", error=str(ended))
                return "terminal"
            case KubeError():
                floor = ended.retry_after or 0.0 if isinstance(ended, Unavailable) else 0.0
                delay = self._queue.retry(key, at_least=floor)
                log.warning("reconcile failed", error=str(ended), kind=type(ended).__name__, retry_in=round(delay, 3))
                return "error"
            case _:
                delay = self._queue.retry(key)
                log.error("reconcile crashed", error=repr(ended), retry_in=round(delay, 3), exc_info=ended)
                return "error"
