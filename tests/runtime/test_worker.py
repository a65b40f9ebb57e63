import asyncio
from collections.abc import Awaitable, Callable, Iterator
from random import Random
from typing import Any

import pytest
import structlog
from structlog.testing import capture_logs
from structlog.typing import EventDict

from tests.runtime.clocks import ManualClock, settle
from virt_steward.kube.errors import Conflict, NotLeading, ServerUnreachable, TooManyRequests
from virt_steward.runtime import log_context
from virt_steward.runtime.metrics import Metrics
from virt_steward.runtime.outcomes import Done, Outcome, RequeueAfter, Terminal
from virt_steward.runtime.worker import Workers
from virt_steward.runtime.workqueue import QueueBackoff, WorkQueue
from virt_steward.ssa.refusals import PartialIntent

RETRIES_WITHIN = 10.0


class Bench:
    """A queue with workers on it, and a reconcile that tests write."""

    def __init__(self, reconcile: Callable[[str], Awaitable[Outcome]], concurrency: int = 1) -> None:
        self.runs: list[str] = []
        self.clock = ManualClock()
        self.metrics = Metrics()
        backoff = QueueBackoff(base=RETRIES_WITHIN, cap=RETRIES_WITHIN)
        self.queue: WorkQueue[str] = WorkQueue("tested", self.clock, Random(3), self.metrics, backoff)
        self.workers = Workers(self.queue, self._recorded, concurrency, self.clock, self.metrics)
        self._reconcile = reconcile

    async def _recorded(self, key: str) -> Outcome:
        self.runs.append(key)
        return await self._reconcile(key)

    async def work_on(self, *keys: str) -> None:
        self.workers.start()
        for key in keys:
            self.queue.add(key)
        await settle()

    def counted(self, result: str) -> float | None:
        labels = {"controller": "tested", "result": result}
        return self.metrics.registry.get_sample_value("controller_runtime_reconcile_total", labels)


@pytest.fixture
def logged() -> Iterator[list[EventDict]]:
    with capture_logs(processors=[log_context.add_facts]) as lines:
        yield lines


def ends_with(outcome: Outcome | BaseException) -> Callable[[str], Awaitable[Outcome]]:
    async def reconcile(_: str) -> Outcome:
        if isinstance(outcome, BaseException):
            raise outcome
        return outcome

    return reconcile


async def forever(_: str) -> Outcome:
    await asyncio.get_running_loop().create_future()
    return Done()


@pytest.mark.parametrize(
    ("outcome", "result"),
    [
        pytest.param(Done(), "success", id="done"),
        pytest.param(Terminal("spec.window names no time zone"), "terminal", id="a-terminal-error"),
    ],
)
async def test_worker_does_not_retry_done_or_terminal(outcome: Outcome | Exception, result: str) -> None:
    bench = Bench(ends_with(outcome))
    await bench.work_on("a")
    await bench.clock.advance(3600)
    assert bench.runs == ["a"]
    assert bench.counted(result) == 1


async def test_worker_requeues_after_delay() -> None:
    bench = Bench(ends_with(RequeueAfter(60, why="the window opens then")))
    await bench.work_on("a")
    await bench.clock.advance(59)
    assert bench.runs == ["a"]
    await bench.clock.advance(2)
    assert bench.runs == ["a", "a"]
    assert bench.counted("requeue_after") == 2


@pytest.mark.parametrize(
    "error",
    [
        pytest.param(Conflict(409, "Conflict", "changed meanwhile"), id="a-refusal"),
        pytest.param(ServerUnreachable("connection refused"), id="a-silent-server"),
        pytest.param(KeyError("spec"), id="a-bug"),
        pytest.param(None, id="a-reconcile-that-forgot-its-outcome"),
        pytest.param(asyncio.CancelledError("by others"), id="a-cancellation-that-nobody-asked-for"),
    ],
)
async def test_worker_retries_after_error(error: Any) -> None:
    bench = Bench(ends_with(error))
    await bench.work_on("a")
    assert bench.runs == ["a"]
    await bench.clock.advance(RETRIES_WITHIN)
    assert len(bench.runs) >= 2
    assert bench.counted("error") == len(bench.runs)


async def test_worker_honours_retry_after() -> None:
    bench = Bench(ends_with(TooManyRequests("slow down", retry_after=100)))
    await bench.work_on("a")
    await bench.clock.advance(99.9)
    assert bench.runs == ["a"]
    await bench.clock.advance(RETRIES_WITHIN + 1)
    assert bench.runs == ["a", "a"]


async def test_worker_requeues_silently_when_not_leading(logged: list[EventDict]) -> None:
    bench = Bench(ends_with(NotLeading("the lease is lost")))
    await bench.work_on("a")
    await bench.clock.advance(3600)
    assert len(bench.runs) > 1
    assert logged == []
    assert [bench.counted(result) for result in ("success", "error", "terminal")] == [0, 0, 0]


async def test_worker_resets_backoff_on_success() -> None:
    failing = True

    async def reconcile(_: str) -> Outcome:
        if failing:
            raise ServerUnreachable("connection refused")
        return Done()

    bench = Bench(reconcile)
    await bench.work_on("a")
    assert bench.queue._failures == {"a": 1}
    failing = False
    await bench.clock.advance(RETRIES_WITHIN)
    assert bench.queue._failures == {}


@pytest.mark.parametrize(
    ("outcome", "succeeds"),
    [(Done(), True), (RequeueAfter(60, why="later"), True), (Terminal("bad spec"), False), (ValueError("bug"), False)],
)
async def test_workers_remember_last_success(outcome: Outcome | Exception, succeeds: bool) -> None:
    bench = Bench(ends_with(outcome))
    await bench.work_on("a")
    assert bench.runs == ["a"]
    assert bench.workers.last_success == (bench.clock.utc() if succeeds else None)


async def test_worker_survives_bad_key() -> None:
    async def reconcile(key: str) -> Outcome:
        if key == "bad":
            raise ZeroDivisionError
        return Done()

    bench = Bench(reconcile)
    await bench.work_on("bad", "good", "also good")
    assert bench.runs == ["bad", "good", "also good"]
    assert bench.counted("success") == 2


async def test_worker_binds_log_context(logged: list[EventDict]) -> None:
    async def reconcile(_: str) -> Outcome:
        structlog.get_logger().info("looked")
        return Done()

    bench = Bench(reconcile)
    await bench.work_on("a", "b")
    looked = [line for line in logged if line["event"] == "looked"]
    assert [(line["controller"], line["key"]) for line in looked] == [("tested", "a"), ("tested", "b")]
    assert len({line["reconcile_id"] for line in looked}) == 2


@pytest.mark.parametrize(
    ("error", "level", "with_traceback"),
    [
        pytest.param(ServerUnreachable("connection refused"), "warning", False, id="a-failed-request-in-one-line"),
        pytest.param(PartialIntent("the intent lacks spec"), "warning", False, id="a-refused-intent-in-one-line"),
        pytest.param(KeyError("spec"), "error", True, id="a-bug-with-its-traceback"),
        pytest.param(Terminal("no such time zone"), "error", False, id="a-terminal-error-in-one-line"),
    ],
)
async def test_worker_logs_outcome(
    logged: list[EventDict], error: Exception, level: str, *, with_traceback: bool
) -> None:
    await Bench(ends_with(error)).work_on("a")
    [line] = logged
    assert line["log_level"] == level
    assert str(error) in line["error"]
    assert (line.get("exc_info") is error) is with_traceback


async def test_workers_run_keys_in_parallel_but_each_once() -> None:
    bench = Bench(forever, concurrency=3)
    await bench.work_on("a", "b")
    bench.queue.add("a")
    await settle()
    assert sorted(bench.runs) == ["a", "b"]
    labels = {"controller": "tested"}
    assert bench.metrics.registry.get_sample_value("controller_runtime_active_workers", labels) == 2
    assert bench.metrics.registry.get_sample_value("controller_runtime_max_concurrent_reconciles", labels) == 3


async def test_workers_stop_within_grace() -> None:
    release = asyncio.Event()

    async def reconcile(_: str) -> Outcome:
        await release.wait()
        return Done()

    bench = Bench(reconcile)
    await bench.work_on("a", "b")
    stopping = asyncio.create_task(bench.workers.stop(grace=10))
    await bench.clock.advance(9)
    assert not stopping.done()
    release.set()
    assert await stopping == ()
    assert bench.runs == ["a"]
    assert bench.counted("success") == 1


async def test_workers_stop_cancels_after_grace() -> None:
    bench = Bench(forever, concurrency=2)
    await bench.work_on("a", "b", "c")
    stopping = asyncio.create_task(bench.workers.stop(grace=10))
    await bench.clock.advance(10)
    assert sorted(await stopping) == ["a", "b"]
    assert (bench.queue.running, len(bench.queue)) == ({}, 3)
    bench.workers.start()
    await settle()
    assert bench.runs[2] == "c"
    assert bench.workers.active == 2


async def test_workers_stop_at_once_when_idle() -> None:
    bench = Bench(forever, concurrency=4)
    await bench.work_on()
    stopping = asyncio.create_task(bench.workers.stop(grace=10))
    await settle()
    assert stopping.result() == ()
    bench.queue.add("a")
    await settle()
    assert bench.runs == []


async def test_workers_end_on_queue_shutdown() -> None:
    bench = Bench(forever)
    await bench.work_on()
    bench.queue.shut_down()
    await settle()
    assert all(task.done() for task in bench.workers._tasks)


class FatalError(BaseException):
    """Not an error of one key."""


async def test_workers_failure_names_crashed_worker() -> None:
    bench = Bench(ends_with(FatalError("out of memory")), concurrency=2)
    await bench.work_on()
    assert bench.workers.failure() is None
    await bench.work_on("a")
    assert "tested-worker-" in str(bench.workers.failure())
    assert "FatalError('out of memory')" in str(bench.workers.failure())
    await bench.workers.stop(0.0)
    assert bench.workers.failure() is None
