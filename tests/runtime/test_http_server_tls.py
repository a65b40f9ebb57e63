"""The same server over TLS: slow, silent and many handshakes harm nobody."""

import asyncio
import logging
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress

import aiohttp
import pytest
from aiohttp import web
from structlog.testing import capture_logs

from tests.eventually import eventually
from tests.kube.certificates import a_pair
from tests.runtime.tls_clients import TLS12, TLS13, a_client_context
from virt_steward.kube.tls import KeyPair
from virt_steward.platform.tls_profile import PROFILES
from virt_steward.runtime import http_server
from virt_steward.runtime.addresses import parse_address
from virt_steward.runtime.http_server import HttpServer, connection_options
from virt_steward.runtime.serving_tls import server_context


class SettableTls:
    """TLS that a test changes."""

    def __init__(self) -> None:
        pair = a_pair()
        self._pair = KeyPair("tests", pair.chain, pair.key)
        self.context: ssl.SSLContext | None = None
        self.use("Intermediate")

    def use(self, profile: str) -> None:
        self.context = server_context(PROFILES[profile], self._pair, None)


@asynccontextmanager
async def serving(tls: SettableTls, *, most_connections: int = 10) -> AsyncIterator[HttpServer]:
    async def hello(_: web.Request) -> web.Response:
        return web.Response(text="hello")

    application = web.Application()
    application.router.add_get("/", hello)
    address = parse_address("--metrics-bind-address", "127.0.0.1:0")
    assert address
    server = HttpServer(
        web.AppRunner(application, **connection_options()), address, most_connections=most_connections, tls=tls
    )
    await server.start()
    try:
        yield server
    finally:
        await server.stop()


async def answer_of(server: HttpServer, version: ssl.TLSVersion | None = None, **headers: str) -> int:
    trust = a_client_context(version)
    async with (
        aiohttp.ClientSession() as session,
        session.get(f"https://localhost:{server.bound.port}/", ssl=trust, headers=headers) as response,
    ):
        await response.read()
        return response.status


Connect = Callable[..., Awaitable[tuple[asyncio.StreamReader, asyncio.StreamWriter]]]


@pytest.fixture
async def connect() -> AsyncIterator[Connect]:
    """Makes connections on which the client says nothing, after the handshake if it begins one."""
    writers: list[asyncio.StreamWriter] = []

    async def made(
        server: HttpServer, trust: ssl.SSLContext | None = None
    ) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        name = "localhost" if trust else None
        streams = await asyncio.open_connection("127.0.0.1", server.bound.port, ssl=trust, server_hostname=name)
        writers.append(streams[1])
        return streams

    yield made
    for writer in writers:
        writer.transport.abort()
    for writer in writers:
        with suppress(OSError):
            await writer.wait_closed()


async def test_http_server_answers_over_tls_among_silent_connections(
    connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http_server, "HANDSHAKE_TIMEOUT", 60.0)
    async with serving(SettableTls()) as server, asyncio.timeout(30):
        silent = [await connect(server) for _ in range(http_server.MOST_HANDSHAKES + 50)]
        assert await answer_of(server) == 200
        for reader, _ in silent[:50]:  # the oldest made room
            with suppress(ConnectionResetError):
                assert await reader.read() == b""
        assert await eventually(lambda: len(server._handshakes) <= http_server.MOST_HANDSHAKES)


async def test_http_server_ends_slow_handshake(connect: Connect, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_server, "HANDSHAKE_TIMEOUT", 0.2)
    async with serving(SettableTls()) as server, asyncio.timeout(10):
        reader, _ = await connect(server)
        with suppress(ConnectionResetError):
            assert await reader.read() == b""
        assert await eventually(lambda: not server._handshakes)


async def test_http_server_keeps_handshaken_connections_while_strangers_connect(connect: Connect) -> None:
    async with serving(SettableTls(), most_connections=3) as server, asyncio.timeout(http_server.IDLE_TIMEOUT - 1):
        known = [await connect(server, a_client_context()) for _ in range(3)]
        for _ in range(20):
            await connect(server)
        assert await eventually(lambda: len(server._handshakes) == 20)
        assert not any(reader.at_eof() for reader, _ in known)
        assert len(server._open()) == 3
        assert await answer_of(server) == 200
        assert await known[0][0].read() == b""  # the longest idle one made room


async def test_http_server_takes_changed_tls_for_next_connection() -> None:
    tls = SettableTls()
    async with serving(tls) as server, asyncio.timeout(30):
        assert await answer_of(server, TLS12) == 200
        tls.use("Modern")
        with pytest.raises(aiohttp.ClientConnectorError):
            await answer_of(server, TLS12)
        assert await answer_of(server, TLS13) == 200
        tls.context = None
        with pytest.raises(aiohttp.ClientError):
            await answer_of(server, TLS13)
        tls.use("Intermediate")
        assert await answer_of(server, TLS12) == 200


async def test_http_server_refuses_what_is_not_tls_without_traceback(
    connect: Connect, caplog: pytest.LogCaptureFixture
) -> None:
    with capture_logs() as logged:
        async with serving(SettableTls()) as server, asyncio.timeout(10):
            for sent in (b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n", b"\x16\x03\x01\xff\xff" + b"\0" * 70_000):
                reader, writer = await connect(server)
                with suppress(ConnectionError):
                    writer.write(sent)
                    assert b"HTTP" not in await reader.read()
            assert await answer_of(server) == 200
    assert [one for one in caplog.records if one.levelno >= logging.WARNING] == []
    assert len([one for one in logged if one["event"] == "TLS handshakes failed"]) == 1


async def test_http_server_refuses_huge_headers_over_tls() -> None:
    async with serving(SettableTls()) as server, asyncio.timeout(10):
        assert await answer_of(server, Authorization="Bearer " + "x" * 20_000) == 400
        assert await answer_of(server) == 200
