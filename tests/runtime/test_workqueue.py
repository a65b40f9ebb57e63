import asyncio
from random import Random

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from tests.runtime.clocks import ManualClock, settle
from virt_steward.runtime.clock import SystemClock
from virt_steward.runtime.metrics import Metrics
from virt_steward.runtime.workqueue import QueueBackoff, ShutDown, WorkQueue


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


async def test_keys_come_in_the_order_of_their_arrival_and_each_once() -> None:
    queue = a_queue(ManualClock())
    for key in ("b", "a", "b", "c", "a"):
        queue.add(key)
    assert await taken(queue) == ["b", "a", "c"]


async def test_a_hot_key_goes_to_the_back() -> None:
    queue = a_queue(ManualClock())
    queue.add("hot")
    await queue.get()
    queue.add("hot")
    queue.add("patient")
    queue.done("hot")
    assert await taken(queue) == ["patient", "hot"]


async def test_a_key_added_while_it_runs_is_handed_out_only_after_it_is_done() -> None:
    queue = a_queue(ManualClock())
    queue.add("a")
    assert await queue.get() == "a"
    queue.add("a")
    queue.add("a")
    assert len(queue) == 0
    queue.done("a")
    assert await taken(queue) == ["a"]


async def test_whoever_waits_gets_a_key_as_soon_as_there_is_one() -> None:
    queue = a_queue(ManualClock())
    waiting = [asyncio.create_task(queue.get()) for _ in range(2)]
    await settle()
    queue.add("a")
    queue.add("b")
    assert sorted(await asyncio.gather(*waiting)) == ["a", "b"]


async def test_a_waiter_that_is_cancelled_takes_no_key_with_it() -> None:
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
async def test_of_two_delays_the_earlier_wins_and_is_the_only_one(delays: tuple[float, ...]) -> None:
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


async def test_delayed_keys_come_in_the_order_of_their_times() -> None:
    clock = ManualClock()
    queue = a_queue(clock)
    for key, delay in (("c", 3), ("a", 1), ("b", 2)):
        queue.add_after(key, delay)
    await clock.advance(3)
    assert await taken(queue) == ["a", "b", "c"]


async def test_a_run_answers_the_delay_that_was_pending_when_it_began() -> None:
    clock = ManualClock()
    queue = a_queue(clock)
    queue.add_after("a", 5)
    queue.add("a")
    assert await taken(queue) == ["a"]
    await clock.advance(10)
    assert (len(queue), queue.delayed) == (0, 0)


async def test_a_delay_asked_for_during_a_run_outlives_it() -> None:
    clock = ManualClock()
    queue = a_queue(clock)
    queue.add("a")
    await queue.get()
    queue.add_after("a", 5)
    queue.done("a")
    await clock.advance(5)
    assert await taken(queue) == ["a"]


async def test_a_delay_that_ends_during_a_run_makes_the_key_run_again() -> None:
    clock = ManualClock()
    queue = a_queue(clock)
    queue.add("a")
    await queue.get()
    queue.add_after("a", 5)
    await clock.advance(6)
    assert len(queue) == 0
    queue.done("a")
    assert await taken(queue) == ["a"]


async def test_one_timer_serves_all_delayed_keys() -> None:
    clock = ManualClock()
    queue = a_queue(clock)
    for number in range(1000):
        queue.add_after(f"key-{number}", 1 + (number * 7919 + 500) % 1000)
        await settle()
    assert clock.sleepers == 1


async def test_delays_that_are_replaced_over_and_over_leave_nothing_behind() -> None:
    clock = ManualClock()
    queue = a_queue(clock)
    for _ in range(10_000):
        queue.add_after("a", 3600)
        queue.add("a")
        assert await taken(queue) == ["a"]
    assert len(queue._heap) < 100


async def test_each_failure_doubles_the_ceiling_of_the_delay_up_to_the_cap() -> None:
    queue = a_queue(ManualClock(), backoff=QueueBackoff(base=0.05, cap=300.0))
    delays = [queue.retry("a") for _ in range(2000)]
    assert delays[:4] == [0.05, 0.1, 0.2, 0.4]
    assert delays[-1] == 300.0


async def test_the_delay_is_drawn_from_the_whole_range_below_its_ceiling() -> None:
    queue = a_queue(ManualClock(), rng=Random(7), backoff=QueueBackoff(base=100.0, cap=100.0))
    delays = [queue.retry(f"key-{number}") for number in range(200)]
    assert min(delays) < 5
    assert max(delays) > 95
    assert all(0 <= delay <= 100 for delay in delays)


async def test_a_forgotten_key_starts_again_at_the_base() -> None:
    queue = a_queue(ManualClock())
    queue.retry("a")
    assert queue.retry("a") == 2.0
    queue.forget("a")
    assert queue.retry("a") == 1.0


async def test_a_floor_is_never_undercut_and_does_not_bunch_keys_together() -> None:
    clock = ManualClock()
    queue = a_queue(clock, rng=Random(7))
    delays = {queue.retry(f"key-{number}", at_least=30.0) for number in range(50)}
    assert min(delays) >= 30.0
    assert len(delays) == 50
    await clock.advance(29.9)
    assert len(queue) == 0


async def test_the_oldest_wait_is_that_of_the_first_key_in_line() -> None:
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


async def test_a_shut_down_queue_ends_every_wait_and_takes_nothing_more() -> None:
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


async def test_a_shut_down_queue_hands_out_nothing_that_was_left() -> None:
    queue = a_queue(ManualClock())
    queue.add("a")
    queue.add("b")
    await queue.get()
    queue.shut_down()
    queue.done("a")
    with pytest.raises(ShutDown):
        await queue.get()


async def test_a_delayed_key_comes_by_the_time_of_the_system_too() -> None:
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
