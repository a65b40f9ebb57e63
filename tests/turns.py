"""Counting the turns that the event loop gives to others."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


class Turns:
    count = 0


@asynccontextmanager
async def counted_turns() -> AsyncIterator[Turns]:
    """Count the turns that another task gets within the block."""
    turns = Turns()

    async def count() -> None:
        while True:
            turns.count += 1
            await asyncio.sleep(0)

    other = asyncio.create_task(count())
    try:
        yield turns
    finally:
        other.cancel()
