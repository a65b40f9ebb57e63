"""The proxy by which other tests break connections."""

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

import pytest

from tests.proxy import FaultProxy
from virt_steward_demo.local.controlplane import ControlPlane


@dataclass(frozen=True, slots=True)
class Connection:
    """A connection kept alive between requests."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    async def status(self) -> bytes:
        self.writer.write(b"GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n")
        head = await self.reader.readuntil(b"\r\n\r\n")
        length = next(line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:"))
        await self.reader.readexactly(int(length.partition(b":")[2]))
        return head.split()[1]


@asynccontextmanager
async def connected(proxy: FaultProxy, control_plane: ControlPlane) -> AsyncIterator[Connection]:
    trust = ssl.create_default_context(cadata=control_plane.authority.certificate.decode())
    reader, writer = await asyncio.open_connection("127.0.0.1", proxy.port, ssl=trust)
    try:
        yield Connection(reader, writer)
    finally:
        writer.transport.abort()


async def test_proxy_passes_tls_through(proxy: FaultProxy, control_plane: ControlPlane) -> None:
    async with connected(proxy, control_plane) as connection:
        assert await connection.status() == b"401"
        assert (proxy.accepted, proxy.open_connections) == (1, 1)


async def test_proxy_refuse_keeps_open_connections(proxy: FaultProxy, control_plane: ControlPlane) -> None:
    async with connected(proxy, control_plane) as connection:
        await proxy.refuse()
        with pytest.raises(ConnectionRefusedError):
            await asyncio.open_connection("127.0.0.1", proxy.port)
        assert await connection.status() == b"401"
        await proxy.accept()
        async with connected(proxy, control_plane) as another:
            assert await another.status() == b"401"


async def test_proxy_freeze_keeps_connection_open(proxy: FaultProxy, control_plane: ControlPlane) -> None:
    async with connected(proxy, control_plane) as connection:
        proxy.freeze()
        answer = asyncio.ensure_future(connection.status())
        done, _ = await asyncio.wait([answer], timeout=0.2)
        assert not done
        proxy.thaw()
        assert await answer == b"401"


async def test_proxy_cut_ends_open_connections_only(proxy: FaultProxy, control_plane: ControlPlane) -> None:
    async with connected(proxy, control_plane) as connection:
        await proxy.cut()
        with pytest.raises((asyncio.IncompleteReadError, ConnectionError)):
            await connection.status()
        assert proxy.open_connections == 0
    async with connected(proxy, control_plane) as another:
        assert await another.status() == b"401"


async def test_proxy_delay_applies_to_request_and_response(proxy: FaultProxy, control_plane: ControlPlane) -> None:
    async with connected(proxy, control_plane) as connection:
        proxy.delay(0.1)
        began = asyncio.get_running_loop().time()
        await connection.status()
        assert asyncio.get_running_loop().time() - began >= 0.2
