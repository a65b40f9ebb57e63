"""Jobs that run beside something else, and end with it; and what the longest of them do all day."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Protocol

import structlog

from virt_steward.kube.errors import KubeError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Iterable

    from virt_steward.runtime.informer import Informer

log = structlog.get_logger()

RETRY = 0.5


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


async def follow(
    informers: Iterable[Informer[Any]],
    news: asyncio.Event,
    look: Callable[[asyncio.TaskGroup], Awaitable[None]],
    what: str,
) -> None:
    """Look whenever there is news, of these informers or of whoever sets it; ends by cancellation only."""
    watched = tuple(informers)
    async with asyncio.TaskGroup() as group:
        for informer in watched:
            informer.tell(lambda *_: news.set())
            group.create_task(informer.run())
        for informer in watched:
            await informer.settled()
        while True:
            await news.wait()
            news.clear()
            try:
                await look(group)
            except KubeError as error:  # the server may be restarting, or somebody was faster
                log.warning("not looked after", what=what, error=str(error), retry_in=RETRY)
                await asyncio.sleep(RETRY)
                news.set()
