"""A pytest plugin that fails a test in which our code held the event loop: in this process, or in one that it started.

In production the limit is 50 ms of wall-clock time. Here other processes share the machine, so that wall-clock time
proves nothing. What counts is the CPU time of the thread in one turn of the loop, and the limit is four times that of
production. Not counted are turns of the test's own task, and the garbage collection of pytest's large heap.

Processes report by their log: `*.log` in the tmp_path of the test, in which they write `event loop blocked`.
"""

import asyncio
import functools
import gc
import inspect
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest
import structlog

from virt_steward.runtime.lag import BlockedTurn, LagMonitor

MAX_CPU = 0.2
"""Seconds of CPU time in one turn of the loop."""
BLOCKED = b'"event loop blocked"'
UNMONITORED = ("test_lag.py", "test_browser.py")
"""The first needs the monitor for itself; in the second, the client of the browser decodes large messages."""


class LagLine(msgspec.Struct):
    """A line of a process' log."""

    event: str = ""
    cpu: float = 0.0
    seconds: float = 0.0
    task: str = ""
    at: str = ""


def pytest_configure() -> None:
    """Log plain tracebacks: the default ones, with source lines and local variables, take half a second each."""
    renderer = structlog.dev.ConsoleRenderer(colors=False, exception_formatter=structlog.dev.plain_traceback)
    structlog.configure(processors=[*structlog.get_config()["processors"][:-1], renderer])


def pytest_itemcollected(item: pytest.Item) -> None:
    if (
        isinstance(item, pytest.Function)
        and inspect.iscoroutinefunction(item.obj)
        and item.path.name not in UNMONITORED
    ):
        item.obj = monitored_test(item.obj)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    """After the test, and before its folder goes, look at the logs of the processes that it started."""
    result = yield
    folder = getattr(item, "funcargs", {}).get("tmp_path")
    if folder and (found := blocked_processes(folder)):
        pytest.fail("a process blocked its event loop:\n" + "\n".join(found))
    return result


def blocked_processes(folder: Path) -> list[str]:
    """What the logs below a folder say about turns of the loop that computed for too long."""
    lines = (line for log in folder.rglob("*.log") for line in log.read_bytes().splitlines() if BLOCKED in line)
    found = (msgspec.json.decode(line, type=LagLine) for line in lines)
    return [_say(one.cpu, one.seconds, one.task, one.at) for one in found if one.cpu > MAX_CPU]


def monitored_test(test: Callable[..., Awaitable[None]]) -> Callable[..., Awaitable[None]]:
    @functools.wraps(test)
    async def run(*args: Any, **kwargs: Any) -> None:
        own = asyncio.current_task()
        assert own
        with _gc_clock() as collected:
            found: list[str] = []

            def blocked(turn: BlockedTurn) -> None:
                cpu = turn.cpu - collected()
                if turn.task != own.get_name() and cpu > MAX_CPU:
                    found.append(_say(cpu, turn.seconds, turn.task, turn.place))

            with LagMonitor(blocked).running():
                await test(*args, **kwargs)
        if found:
            pytest.fail("the event loop was blocked:\n" + "\n".join(found))

    return run


@contextmanager
def _gc_clock() -> Iterator[Callable[[], float]]:
    """A function that gives the CPU seconds of garbage collection since it was called last."""
    total = 0.0
    began = 0.0

    def note(phase: str, _: dict[str, int]) -> None:
        nonlocal total, began
        if phase == "start":
            began = time.thread_time()
        else:
            total += time.thread_time() - began

    def take() -> float:
        nonlocal total
        taken, total = total, 0.0
        return taken

    gc.callbacks.append(note)
    try:
        yield take
    finally:
        gc.callbacks.remove(note)


def _say(cpu: float, seconds: float, task: str, place: str) -> str:
    return f"{cpu:.3f} s of CPU in {seconds:.3f} s, task {task}, at {place}"
