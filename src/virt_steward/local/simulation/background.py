"""Jobs that run beside something else, and end with it."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import AsyncIterator


class Job(Protocol):
    async def run(self) -> None: ...


@asynccontextmanager
async def in_background(*jobs: Job) -> AsyncIterator[None]:
    """Run them until the end of the block; a job that failed before says so then."""
    tasks = [asyncio.create_task(job.run()) for job in jobs]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        ended = await asyncio.gather(*tasks, return_exceptions=True)
    for end in ended:
        if isinstance(end, BaseException) and not isinstance(end, asyncio.CancelledError):
            raise end
