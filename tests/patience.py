"""A plugin of pytest: a test that hangs is ended, and said where. A run that waits for ever tells nobody anything."""

import asyncio
import faulthandler
import functools
import inspect
import os
import threading
from collections.abc import Awaitable, Callable, Iterator
from typing import Any, TextIO

import pytest

LONGEST = 270.0
"""Seconds that a coroutine may take. It is ended with a traceback of where it waited, and the others go on."""
LONGEST_STRESS = 1800.0
AT_LAST = 30.0
"""More that a test has with its fixtures. Then its process is ended, whatever it hangs in; another takes over."""

_terminal = pytest.StashKey[TextIO]()


def pytest_configure(config: pytest.Config) -> None:
    config.stash[_terminal] = os.fdopen(os.dup(2), "w")  # before each test's output is caught


def pytest_itemcollected(item: pytest.Item) -> None:
    if isinstance(item, pytest.Function) and inspect.iscoroutinefunction(item.obj):
        item.obj = _ended_after(_longest(item), item.obj)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    watch = threading.Timer(_longest(item) + AT_LAST, _end, (item.nodeid, item.config.stash[_terminal]))
    watch.daemon = True
    watch.start()
    try:
        return (yield)
    finally:
        watch.cancel()


def _longest(item: pytest.Item) -> float:
    return LONGEST_STRESS if "stress" in item.path.parts else LONGEST


def _ended_after(seconds: float, test: Callable[..., Awaitable[None]]) -> Callable[..., Awaitable[None]]:
    @functools.wraps(test)
    async def limited(*args: Any, **kwargs: Any) -> None:
        async with asyncio.timeout(seconds):
            await test(*args, **kwargs)

    return limited


def _end(test: str, terminal: TextIO) -> None:
    terminal.write(f"\n{test} hangs:\n")
    terminal.flush()
    faulthandler.dump_traceback(terminal)
    os._exit(1)
