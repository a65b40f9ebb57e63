"""Gateway and proxy of the tests close what they have accepted. A socket that stays open is a warning, which fails."""

import asyncio
import gc
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager

import pytest
from yarl import URL

from tests.gateway import a_gateway
from tests.proxy import FaultProxy
from virt_steward_demo.local.controlplane import ControlPlane


@asynccontextmanager
async def plain_gateway(control_plane: ControlPlane) -> AsyncIterator[str]:
    async with a_gateway(control_plane) as gateway:
        yield gateway.server


@asynccontextmanager
async def secure_gateway(control_plane: ControlPlane) -> AsyncIterator[str]:
    async with a_gateway(control_plane) as gateway:
        yield gateway.secure_server


@asynccontextmanager
async def tcp_proxy(control_plane: ControlPlane) -> AsyncIterator[str]:
    async with FaultProxy(control_plane.port) as proxy:
        yield proxy.server


@pytest.mark.parametrize("turns", range(6))
@pytest.mark.parametrize("server", [plain_gateway, secure_gateway, tcp_proxy])
def test_connections_that_come_at_the_end_are_closed(
    control_plane: ControlPlane, server: Callable[[ControlPlane], AbstractAsyncContextManager[str]], turns: int
) -> None:
    async def connect_and_stop() -> None:
        async with server(control_plane) as address:
            with socket.create_connection(("127.0.0.1", URL(address).port or 0)):
                pass
            for _ in range(turns):
                await asyncio.sleep(0)

    asyncio.run(connect_and_stop())
    gc.collect()
