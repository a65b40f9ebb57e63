"""A client of the real API server, which serves gadgets."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from tests.clients import a_client
from tests.ssa.gadgets import serve_gadgets
from virt_steward.kube.client import Client
from virt_steward_demo.local.controlplane import ControlPlane


@pytest.fixture(scope="session")
def gadgets(control_plane: ControlPlane) -> ControlPlane:
    """The control plane, serving gadgets."""

    async def serve() -> None:
        async with a_client(control_plane) as client:
            await serve_gadgets(client)

    asyncio.run(serve())
    return control_plane


@pytest.fixture
async def client(gadgets: ControlPlane) -> AsyncIterator[Client]:
    async with a_client(gadgets) as client:
        yield client
