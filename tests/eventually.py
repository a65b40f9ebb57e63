"""Waiting for a condition, with a deadline."""

import asyncio
import time
from collections.abc import Awaitable, Callable

TIMEOUT = 30.0
"""Seconds. Long, because the machine may be busy; a condition that holds earlier ends the wait."""

IMPATIENT = 1.0
"""Seconds for which it looks often. Who waits for longer waits for other programs, which need the CPU."""


def eventually_blocking(condition: Callable[[], bool], *, within: float = TIMEOUT) -> bool:
    """Poll until the condition holds or the time is up; assert the result. Blocks the event loop."""
    began = time.monotonic()
    while not condition():
        if time.monotonic() > began + within:
            return False
        time.sleep(_pause(began))
    return True


async def eventually(condition: Callable[[], bool | Awaitable[bool]], *, within: float = TIMEOUT) -> bool:
    """Poll like `eventually`, without blocking the event loop."""
    began = time.monotonic()
    while True:
        answer = condition()
        if answer if isinstance(answer, bool) else await answer:
            return True
        if time.monotonic() > began + within:
            return False
        await asyncio.sleep(_pause(began))


def _pause(began: float) -> float:
    return 0.02 if time.monotonic() < began + IMPATIENT else 0.05
