"""The server that strangers may connect to: silent and many connections harm nobody."""

import asyncio
import resource
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import aiohttp
import pytest
from aiohttp import web

from virt_steward.runtime.addresses import BadAddress, parse_address
from virt_steward.runtime.http_server import HttpServer, raise_open_files_limit

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


@asynccontextmanager
async def serving(
    *, most_connections: int = 10, idle_timeout: float = 30.0, in_progress: asyncio.Semaphore | None = None
) -> AsyncIterator[HttpServer]:
    release = asyncio.Event()

    async def hello(_: web.Request) -> web.Response:
        return web.Response(text="hello")

    async def slow(_: web.Request) -> web.Response:
        if in_progress:
            in_progress.release()
        await release.wait()
        return web.Response(text="slow")

    application = web.Application()
    application.router.add_get("/", hello)
    application.router.add_get("/slow", slow)
    address = parse_address("--metrics-bind-address", "127.0.0.1:0")
    assert address
    server = HttpServer(application, address, most_connections=most_connections, idle_timeout=idle_timeout)
    await server.start()
    try:
        yield server
    finally:
        release.set()
        await server.stop()


async def connect(server: HttpServer, send: bytes = b"") -> Streams:
    reader, writer = await asyncio.open_connection("127.0.0.1", server.bound.port)
    writer.write(send)
    await writer.drain()
    return reader, writer


async def answer_of(server: HttpServer) -> str:
    async with aiohttp.ClientSession() as session, session.get(f"http://127.0.0.1:{server.bound.port}/") as response:
        return await response.text()


@pytest.mark.parametrize("head", [b"", b"GET / HTTP/1.1\r\nHost: loc"], ids=["silent", "half-a-header"])
async def test_http_server_closes_connection_without_request(head: bytes) -> None:
    async with serving(idle_timeout=0.2) as server, asyncio.timeout(10):
        reader, writer = await connect(server, head)
        assert await reader.read() == b""
        writer.close()


async def test_http_server_answers_among_silent_connections() -> None:
    async with serving(most_connections=10) as server, asyncio.timeout(30):
        silent = [await connect(server) for _ in range(50)]
        assert await answer_of(server) == "hello"
        closed = [one for one in silent[:30] if await one[0].read() == b""]
        assert len(closed) == 30
        for _, writer in silent:
            writer.close()


async def test_http_server_keeps_requests_in_progress_when_full() -> None:
    in_progress = asyncio.Semaphore(0)
    async with serving(most_connections=3, in_progress=in_progress) as server, asyncio.timeout(30):
        busy = [await connect(server, b"GET /slow HTTP/1.1\r\nHost: localhost\r\n\r\n") for _ in range(3)]
        for _ in busy:
            await in_progress.acquire()
        reader, writer = await connect(server)
        with suppress(ConnectionResetError):
            assert await reader.read() == b""
        assert not any(one[0].at_eof() for one in busy)
        for _, open_writer in busy:
            open_writer.close()
        writer.close()


async def test_http_server_names_address_in_use() -> None:
    async with serving() as server:
        second = HttpServer(web.Application(), server.bound)
        with pytest.raises(BadAddress, match="choose another address"):
            await second.start()


def test_open_files_limit_is_raised() -> None:
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (256, before[1]))
    try:
        assert raise_open_files_limit() > 256
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
