"""Requests that are cancelled: nobody may go on as if nothing had happened."""

import asyncio
import time

import pytest

from tests.clients import a_client
from tests.proxy import FaultProxy
from virt_steward.kube.client import Caller, Client
from virt_steward_demo.local.controlplane import ControlPlane


async def test_request_keeps_cancellation_at_its_timeout(control_plane: ControlPlane, proxy: FaultProxy) -> None:
    async with a_client(control_plane, server=proxy.server) as opened:
        client = Client(opened.connection, opened.discovery, Caller(timeout=0.2))
        await client.raw("/version")  # so that a connection is there
        proxy.freeze()
        request = asyncio.create_task(client.raw("/version"))
        asyncio.get_running_loop().call_later(0.2, request.cancel)
        await asyncio.sleep(0)
        time.sleep(0.3)  # noqa: ASYNC251 - a loop that was held up finds both timers due
        with pytest.raises(asyncio.CancelledError):
            await request
