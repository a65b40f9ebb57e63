"""A namespace for contraptions."""

import asyncio

import pytest

from tests.clients import a_client
from tests.controllers.autopilot.overrides.contraptions import DEFINITION
from tests.widgets import install_crd
from virt_steward_demo.local.controlplane import ControlPlane

NAMESPACE = "default"


@pytest.fixture(scope="session")
def contraptions(control_plane: ControlPlane) -> str:
    """A namespace that may hold contraptions."""

    async def serve() -> None:
        async with a_client(control_plane) as client:
            await install_crd(client, DEFINITION)

    asyncio.run(serve())
    return NAMESPACE
