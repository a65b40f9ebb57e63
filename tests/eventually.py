"""Waiting for a condition, with a deadline."""

import asyncio
import time
from collections.abc import Awaitable, Callable

PATIENCE = 30.0
"""Seconds: who shares the machine may make everything slow, and what comes true costs no more for it."""


def eventually(condition: Callable[[], bool], *, within: float = PATIENCE) -> bool:
    """Ask again and again until it holds or time is up; the answer is for an assert."""
    deadline = time.monotonic() + within
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


async def soon(condition: Callable[[], bool | Awaitable[bool]], *, within: float = PATIENCE) -> bool:
    """Do the same while the event loop goes on."""
    deadline = time.monotonic() + within
    while True:
        answer = condition()
        if answer if isinstance(answer, bool) else await answer:
            return True
        if time.monotonic() > deadline:
            return False
        await asyncio.sleep(0.02)
