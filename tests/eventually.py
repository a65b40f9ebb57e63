"""Waiting for a condition, with a deadline."""

import asyncio
import time
from collections.abc import Awaitable, Callable

TIMEOUT = 30.0
"""Seconds. Long, because the machine may be busy; a condition that holds earlier ends the wait."""


def eventually_blocking(condition: Callable[[], bool], *, within: float = TIMEOUT) -> bool:
    """Poll until the condition holds or the time is up; assert the result. Blocks the event loop."""
    deadline = time.monotonic() + within
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


async def eventually(condition: Callable[[], bool | Awaitable[bool]], *, within: float = TIMEOUT) -> bool:
    """Poll like `eventually`, without blocking the event loop."""
    deadline = time.monotonic() + within
    while True:
        answer = condition()
        if answer if isinstance(answer, bool) else await answer:
            return True
        if time.monotonic() > deadline:
            return False
        await asyncio.sleep(0.02)
