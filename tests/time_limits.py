"""A pytest plugin that ends a test that hangs, and prints where it hangs."""

import asyncio
import faulthandler
import functools
import inspect
import os
import threading
from collections.abc import Awaitable, Callable, Iterator
from typing import Any, TextIO

import pytest

MAX_SECONDS = 270.0
"""Seconds that a coroutine may take. Then it is cancelled with a traceback, and the other tests continue."""
MAX_SECONDS_STRESS = 1800.0
GRACE = 30.0
"""Extra seconds for a test with its fixtures. Then its process exits, and another worker continues."""

_terminal = pytest.StashKey[TextIO]()


def pytest_configure(config: pytest.Config) -> None:
    config.stash[_terminal] = os.fdopen(os.dup(2), "w")  # before the output of tests is captured


def pytest_itemcollected(item: pytest.Item) -> None:
    if isinstance(item, pytest.Function) and inspect.iscoroutinefunction(item.obj):
        item.obj = _limited_to(_limit_of(item), item.obj)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    watch = threading.Timer(_limit_of(item) + GRACE, _end, (item.nodeid, item.config.stash[_terminal]))
    watch.daemon = True
    watch.start()
    try:
        return (yield)
    finally:
        watch.cancel()


def _limit_of(item: pytest.Item) -> float:
    return MAX_SECONDS_STRESS if "stress" in item.path.parts else MAX_SECONDS


def _limited_to(seconds: float, test: Callable[..., Awaitable[None]]) -> Callable[..., Awaitable[None]]:
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
