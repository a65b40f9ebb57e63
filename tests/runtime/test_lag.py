"""The monitor of the event loop: it names what blocks, and nothing else."""

import asyncio
import signal
import time

import pytest
from structlog.testing import capture_logs

from virt_steward.runtime.lag import BlockedTurn, LagMonitor, LagReporter


def compute(seconds: float) -> None:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        pass


async def test_lag_monitor_names_task_and_line() -> None:
    blocked: list[BlockedTurn] = []
    with LagMonitor(blocked.append, threshold=0.02).running():
        await asyncio.create_task(asyncio.to_thread(time.sleep, 0), name="innocent")

        async def culprit() -> None:
            compute(0.2)

        await asyncio.create_task(culprit(), name="culprit")
        await asyncio.sleep(0)
    [found] = [one for one in blocked if one.task == "culprit"]
    assert found.seconds >= 0.2
    assert 0 < found.cpu <= found.seconds + 0.05
    assert found.place.startswith("test_lag.py:")
    assert found.place.endswith("in compute")


async def test_lag_monitor_tells_waiting_from_computing() -> None:
    blocked: list[BlockedTurn] = []
    with LagMonitor(blocked.append, threshold=0.05).running():
        time.sleep(0.3)  # noqa: ASYNC251 - as a system call would block the loop
        await asyncio.sleep(0)
    assert [one.cpu < 0.2 for one in blocked if one.seconds >= 0.3] == [True]


async def test_lag_monitor_ignores_short_work_and_waiting() -> None:
    blocked: list[BlockedTurn] = []
    with LagMonitor(blocked.append, threshold=0.5).running():
        for _ in range(20):
            compute(0.001)
            await asyncio.sleep(0.001)
        await asyncio.sleep(0.6)
    assert blocked == []


async def test_lag_monitor_lets_idle_loop_sleep(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every signal wakes a loop that handles any, so the timer of the monitor must not follow from itself."""
    loop, timers = asyncio.get_running_loop(), list[float]()
    set_timer = signal.setitimer
    monkeypatch.setattr(signal, "setitimer", lambda which, seconds: (timers.append(seconds), set_timer(which, seconds)))
    loop.add_signal_handler(signal.SIGUSR1, lambda: None)
    try:
        with LagMonitor(lambda *_: None, threshold=0.01).running():
            await asyncio.sleep(0.5)  # what is measured is that nothing happens
    finally:
        loop.remove_signal_handler(signal.SIGUSR1)
    assert len(timers) <= 5


async def test_lag_monitor_reports_blocked_turn_that_its_own_timer_began() -> None:
    """Tried again, since a busy machine may stop the process just before `compute`: then that place is reported."""

    async def reported() -> list[float]:
        loop, blocked = asyncio.get_running_loop(), list[BlockedTurn]()
        with LagMonitor(blocked.append, threshold=0.02).running():
            loop.call_later(0.02, compute, 0.1)  # due when the timer fires
            await asyncio.sleep(0.3)
        return [one.seconds for one in blocked if one.place.endswith("in compute")]

    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGUSR1, lambda: None)
    try:
        found: list[float] = []
        for _ in range(5):
            found = found or await reported()
    finally:
        loop.remove_signal_handler(signal.SIGUSR1)
    assert [seconds >= 0.1 for seconds in found] == [True]


async def test_lag_monitor_restores_loop_and_signal() -> None:
    handler = signal.getsignal(signal.SIGALRM)
    selector = asyncio.get_running_loop()._selector  # type: ignore[attr-defined]
    with LagMonitor(lambda *_: None).running():
        assert asyncio.get_running_loop()._selector is not selector  # type: ignore[attr-defined]
    assert asyncio.get_running_loop()._selector is selector  # type: ignore[attr-defined]
    assert signal.getsignal(signal.SIGALRM) is handler
    assert signal.getitimer(signal.ITIMER_REAL)[0] == 0


def test_lag_reporter_counts_all_and_logs_one(monkeypatch: pytest.MonkeyPatch) -> None:
    times = iter((100.0, 101.0, 120.0))
    monkeypatch.setattr(time, "monotonic", lambda: next(times))
    recorded: list[float] = []
    report = LagReporter(recorded.append)
    with capture_logs() as logs:
        for seconds in (0.1, 0.2, 0.3):
            report(BlockedTurn(seconds, seconds, "worker", "patch.py:1 in apply"))
    assert recorded == [0.1, 0.2, 0.3]
    assert [line["seconds"] for line in logs] == [0.1, 0.3]
