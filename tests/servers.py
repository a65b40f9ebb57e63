"""Servers on loopback ports that leave no socket open when they stop."""

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from aiohttp import web

TURNS_TO_BEGIN = 3
"""Turns of the event loop after which the protocol of an accepted connection is called."""


async def close(listener: asyncio.Server) -> None:
    """Accept nothing more. Connections that were just accepted begin first: asyncio would leave their sockets open."""
    loop = asyncio.get_running_loop()
    for listening in listener.sockets:
        loop.remove_reader(listening.fileno())
    for _ in range(TURNS_TO_BEGIN):
        await asyncio.sleep(0)
    listener.close()


@asynccontextmanager
async def serving(runner: web.BaseRunner, *contexts: ssl.SSLContext | None) -> AsyncIterator[list[int]]:
    """Serve until the end of the block, on one port for each context; None is plain HTTP."""
    loop = asyncio.get_running_loop()
    await runner.setup()
    assert runner.server
    listeners = [await loop.create_server(runner.server, "127.0.0.1", 0, ssl=context) for context in contexts]
    try:
        yield [listener.sockets[0].getsockname()[1] for listener in listeners]
    finally:
        for listener in listeners:
            await close(listener)
        await runner.cleanup()
