import asyncio
from random import Random

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from tests.runtime.clocks import ManualClock, settle
from virt_steward.runtime.clock import SystemClock
from virt_steward.runtime.metrics import Metrics
from virt_steward.runtime.workqueue import LASTING, QueueBackoff, ShutDown, WorkQueue


class HighestDraw(Random):
    """Always draws the end of the range, so that ceilings show."""

    def uniform(self, a: float, b: float) -> float:  # noqa: ARG002 - the interface of Random
        return b


def a_queue(clock: ManualClock, rng: Random | None = None, backoff: QueueBackoff | None = None) -> WorkQueue[str]:
    return WorkQueue("tested", clock, rng or HighestDraw(), Metrics(), backoff or QueueBackoff(base=1.0, cap=300.0))


async def taken(queue: WorkQueue[str]) -> list[str]:
    """Every key that can be had now, each worked on and done."""
    keys = []
    while len(queue):
        keys.append(await queue.get())
        queue.done(keys[-1])
    return keys


async def test_queue_is_fifo_without_duplicates() -> None:
    queue = a_queue(ManualClock())
    for key in ("b", "a", "b", "c", "a"):
        queue.add(key)
    assert await taken(queue) == ["b", "a", "c"]


async def test_queue_puts_hot_key_last() -> None:
    queue = a_queue(ManualClock())
    queue.add("hot")
    await queue.get()
    queue.add("hot")
    queue.add("patient")
    queue.done("hot")
    assert await taken(queue) == ["patient", "hot"]


async def test_queue_holds_key_while_it_runs() -> None:
    queue = a_queue(ManualClock())
    queue.add("a")
    assert await queue.get() == "a"
    queue.add("a")
    queue.add("a")
    assert len(queue) == 0
    queue.done("a")
    assert await taken(queue) == ["a"]


async def test_get_wakes_on_add() -> None:
    queue = a_queue(ManualClock())
    waiting = [asyncio.create_task(queue.get()) for _ in range(2)]
    await settle()
    queue.add("a")
    queue.add("b")
    assert sorted(await asyncio.gather(*waiting)) == ["a", "b"]


async def test_cancelled_get_loses_no_key() -> None:
    queue = a_queue(ManualClock())
    waiting = asyncio.create_task(queue.get())
    await settle()
    queue.add("a")
    waiting.cancel()
    await asyncio.wait({waiting})
    assert waiting.cancelled()
    assert await taken(queue) == ["a"]


@pytest.mark.parametrize(
    "delays",
    [pytest.param((5, 60), id="the-first"), pytest.param((60, 5), id="the-second")],
)
async def test_add_after_keeps_earlier_delay(delays: tuple[float, ...]) -> None:
    clock = ManualClock()
    queue = a_queue(clock)
    for delay in delays:
        queue.add_after("a", delay)
    assert queue.delayed == 1
    await clock.advance(4.9)
    assert len(queue) == 0
    await clock.advance(0.2)
    assert await taken(queue) == ["a"]
    await clock.advance(100)
    assert len(queue) == 0


async def test_add_after_orders_by_time() -> None:
    clock = ManualClock()
    queue = a_queue(clock)
    for key, delay in (("c", 3), ("a", 1), ("b", 2)):
        queue.add_after(key, delay)
    await clock.advance(3)
    assert await taken(queue) == ["a", "b", "c"]


async def test_run_replaces_pending_delay() -> None:
    clock = ManualClock()
    queue = a_queue(clock)
    queue.add_after("a", 5)
    queue.add("a")
    assert await taken(queue) == ["a"]
    await clock.advance(10)
    assert (len(queue), queue.delayed) == (0, 0)


async def test_delay_added_during_run_is_kept() -> None:
    clock = ManualClock()
    queue = a_queue(clock)
    queue.add("a")
    await queue.get()
    queue.add_after("a", 5)
    queue.done("a")
    await clock.advance(5)
    assert await taken(queue) == ["a"]


async def test_delay_due_during_run_runs_again() -> None:
    clock = ManualClock()
    queue = a_queue(clock)
    queue.add("a")
    await queue.get()
    queue.add_after("a", 5)
    await clock.advance(6)
    assert len(queue) == 0
    queue.done("a")
    assert await taken(queue) == ["a"]


async def test_queue_uses_one_timer() -> None:
    clock = ManualClock()
    queue = a_queue(clock)
    for number in range(1000):
        queue.add_after(f"key-{number}", 1 + (number * 7919 + 500) % 1000)
        await settle()
    assert clock.sleepers == 1


async def test_replaced_delays_leave_no_entries() -> None:
    clock = ManualClock()
    queue = a_queue(clock)
    for _ in range(10_000):
        queue.add_after("a", 3600)
        queue.add("a")
        assert await taken(queue) == ["a"]
    assert len(queue._heap) < 100


async def test_retry_doubles_ceiling_up_to_cap() -> None:
    queue = a_queue(ManualClock(), backoff=QueueBackoff(base=0.05, cap=300.0))
    delays = [queue.retry("a") for _ in range(2000)]
    assert delays[:4] == [0.05, 0.1, 0.2, 0.4]
    assert delays[-1] == 300.0


async def test_retry_uses_full_jitter() -> None:
    queue = a_queue(ManualClock(), rng=Random(7), backoff=QueueBackoff(base=100.0, cap=100.0))
    delays = [queue.retry(f"key-{number}") for number in range(200)]
    assert min(delays) < 5
    assert max(delays) > 95
    assert all(0 <= delay <= 100 for delay in delays)


async def test_forget_resets_backoff() -> None:
    queue = a_queue(ManualClock())
    queue.retry("a")
    assert queue.retry("a") == 2.0
    queue.forget("a")
    assert queue.retry("a") == 1.0


async def test_failing_counts_keys_that_fail_again_and_again() -> None:
    queue = a_queue(ManualClock())
    for _ in range(LASTING):
        assert queue.failing == 0
        queue.retry("a")
    queue.retry("b")
    assert queue.failing == 1
    queue.forget("a")
    assert queue.failing == 0


async def test_retry_adds_jitter_to_minimum() -> None:
    clock = ManualClock()
    queue = a_queue(clock, rng=Random(7))
    delays = {queue.retry(f"key-{number}", at_least=30.0) for number in range(50)}
    assert min(delays) >= 30.0
    assert len(delays) == 50
    await clock.advance(29.9)
    assert len(queue) == 0


async def test_oldest_wait_is_of_first_key() -> None:
    clock = ManualClock()
    queue = a_queue(clock)
    assert queue.oldest_wait == 0.0
    queue.add("a")
    await clock.advance(3)
    queue.add("b")
    await clock.advance(2)
    assert queue.oldest_wait == 5.0
    await queue.get()
    assert queue.oldest_wait == 2.0
    assert queue.running == {"a": 0.0}


async def test_shut_down_ends_waits() -> None:
    clock = ManualClock()
    queue = a_queue(clock)
    waiting = [asyncio.create_task(queue.get()) for _ in range(3)]
    await settle()
    queue.add_after("later", 5)
    queue.shut_down()
    queue.add("a")
    queue.add_after("b", 1)
    await clock.advance(10)
    assert [type(error) for error in await asyncio.gather(*waiting, return_exceptions=True)] == [ShutDown] * 3
    assert (len(queue), queue.delayed, clock.sleepers) == (0, 0, 0)


async def test_shut_down_drops_keys() -> None:
    queue = a_queue(ManualClock())
    queue.add("a")
    queue.add("b")
    await queue.get()
    queue.shut_down()
    queue.done("a")
    with pytest.raises(ShutDown):
        await queue.get()


async def test_add_after_works_with_system_clock() -> None:
    clock = SystemClock()
    queue: WorkQueue[str] = WorkQueue("tested", clock, Random(1), Metrics())
    asked = clock.now()
    queue.add_after("a", 0.01)
    async with asyncio.timeout(5):
        assert await queue.get() == "a"
    assert clock.now() - asked >= 0.01


KEYS = st.sampled_from("abcd")


class QueueMachine(RuleBasedStateMachine):
    """Any order of calls, next to a model that knows which keys are owed a run, and by when."""

    def __init__(self) -> None:
        super().__init__()
        self.runner = asyncio.Runner()
        self.clock = ManualClock()
        self.queue = a_queue(self.clock, rng=Random(0))
        self.running: set[str] = set()
        self.owed: set[str] = set()
        self.latest: dict[str, float] = {}

    def teardown(self) -> None:
        self.queue.shut_down()
        self.runner.close()

    @rule(key=KEYS)
    def add(self, key: str) -> None:
        self.queue.add(key)
        self.owed.add(key)

    @rule(key=KEYS, seconds=st.integers(1, 20))
    def add_after(self, key: str, seconds: int) -> None:
        async def on_loop() -> None:
            self.queue.add_after(key, seconds)

        self.runner.run(on_loop())
        self._owe_by(key, seconds)

    @rule(key=KEYS)
    def retry(self, key: str) -> None:
        async def on_loop() -> float:
            return self.queue.retry(key)

        self._owe_by(key, self.runner.run(on_loop()))

    @rule()
    def get(self) -> None:
        free = self.owed - self.running
        assert len(self.queue) == len(free)
        if free:
            key = self.runner.run(self.queue.get())
            assert key in free
            self.owed.remove(key)
            self.latest.pop(key, None)
            self.running.add(key)

    @rule(key=KEYS)
    def done(self, key: str) -> None:
        if key in self.running:
            self.queue.done(key)
            self.running.remove(key)

    @rule(seconds=st.integers(1, 30))
    def advance(self, seconds: int) -> None:
        self.runner.run(self.clock.advance(seconds))
        come = {key for key, due in self.latest.items() if due <= self.clock.now()}
        self.owed |= come
        for key in come:
            del self.latest[key]

    @invariant()
    def no_key_is_lost_doubled_or_in_two_hands(self) -> None:
        assert len(self.queue) == len(self.owed - self.running)
        assert self.queue.delayed == len(self.latest)
        assert self.queue.running.keys() == self.running

    def _owe_by(self, key: str, seconds: float) -> None:
        due = self.clock.now() + seconds
        self.latest[key] = min(due, self.latest.get(key, due))


TestAnyOrderOfCallsKeepsEveryKey = QueueMachine.TestCase
TestAnyOrderOfCallsKeepsEveryKey.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
