"""The server that strangers may connect to: silent and many connections harm nobody."""

import asyncio
import errno
import logging
import os
import resource
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import aiohttp
import pytest
from aiohttp import web
from structlog.testing import capture_logs

from tests.eventually import eventually
from virt_steward.runtime import http_server
from virt_steward.runtime.addresses import BadAddress, parse_address
from virt_steward.runtime.http_routes import Routes
from virt_steward.runtime.http_server import HttpServer, connection_options, raise_open_files_limit

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


@asynccontextmanager
async def serving(
    *,
    most_connections: int = 10,
    idle_timeout: float = 30.0,
    in_progress: asyncio.Semaphore | None = None,
    listening: socket.socket | None = None,
) -> AsyncIterator[HttpServer]:
    release = asyncio.Event()

    async def hello(_: web.Request) -> web.Response:
        return web.Response(text="hello")

    async def form(request: web.Request) -> web.Response:
        return web.Response(body=await request.read())

    async def slow(_: web.Request) -> web.Response:
        if in_progress:
            in_progress.release()
        await release.wait()
        return web.Response(text="slow")

    application = web.Application()
    application.router.add_get("/", hello)
    application.router.add_get("/slow", slow)
    application.router.add_post("/form", form)
    address = parse_address("--metrics-bind-address", "127.0.0.1:0")
    assert address
    runner = web.AppRunner(
        application, shutdown_timeout=http_server.STOP_TIMEOUT, **connection_options(idle_timeout=idle_timeout)
    )
    server = HttpServer(runner, address, listening=listening, most_connections=most_connections)
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


class ScarceSocket(socket.socket):
    """A listening socket of a process with too many open files, until `is_over`."""

    is_over = False
    refusals = 0

    def accept(self) -> tuple[socket.socket, object]:
        if not self.is_over:
            self.refusals += 1
            raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))
        return super().accept()


async def test_http_server_logs_refused_connections_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_server, "ACCEPT_PAUSE", 0.01)
    scarce = ScarceSocket()
    scarce.bind(("127.0.0.1", 0))
    with capture_logs() as logs:
        async with serving(listening=scarce) as server, asyncio.timeout(30):
            _, waiting = await connect(server)
            assert await eventually(lambda: scarce.refusals > 20)
            scarce.is_over = True
            assert await answer_of(server) == "hello"
            waiting.close()
    assert [line["event"] for line in logs] == ["connections not accepted, retrying"]
    assert logs[0]["error"] == "Too many open files"


async def test_http_server_failure_says_that_it_no_longer_accepts() -> None:
    class BrokenSocket(socket.socket):
        def accept(self) -> tuple[socket.socket, object]:
            raise ZeroDivisionError

    broken = BrokenSocket()
    broken.bind(("127.0.0.1", 0))
    async with serving(listening=broken) as server:
        assert server.failure() is None
        assert await eventually(lambda: server.failure() is not None)
        assert "ended: ZeroDivisionError()" in str(server.failure())


@pytest.mark.parametrize(
    "sent",
    [
        pytest.param(b"\x16\x03\x01\x02\x00\x01\x00\r\n\r\n", id="tls"),
        pytest.param(b"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", id="two-hosts"),
        pytest.param(b"GET / HTTP/9.9\r\n\r\n", id="version"),
        pytest.param(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: -1\r\n\r\n", id="length"),
        pytest.param(b"GET / HTTP/1.1\r\nHost: a\r\nX: " + b"x" * 20_000 + b"\r\n\r\n", id="long-header"),
    ],
)
async def test_http_server_answers_malformed_request_without_traceback(
    sent: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO):
        async with serving() as server, asyncio.timeout(10):
            reader, writer = await connect(server, sent)
            assert (await reader.read()).startswith(b"HTTP/1.0 400 Bad Request\r\n")
            writer.close()
    assert caplog.records == []


async def test_http_server_logs_nothing_about_aborted_request(caplog: pytest.LogCaptureFixture) -> None:
    async with serving() as server, asyncio.timeout(10):
        with caplog.at_level(logging.DEBUG):
            _, writer = await connect(server, b"POST /form HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\nhalf")
            writer.transport.abort()
            assert await eventually(lambda: bool(caplog.records))
    assert [record.levelname for record in caplog.records] == ["DEBUG"]


async def test_http_server_names_address_in_use() -> None:
    async with serving() as server:
        second = HttpServer(Routes({}), server.bound)
        with pytest.raises(BadAddress, match="choose another address"):
            await second.start()


def test_open_files_limit_is_raised() -> None:
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (256, before[1]))
    try:
        assert raise_open_files_limit() > 256
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
