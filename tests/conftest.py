"""Fixtures for all tests."""

import uuid
from collections.abc import AsyncIterator, Iterator

import pytest

from tests.audit import AuditLog
from tests.clients import a_client
from tests.cluster import a_control_plane
from tests.gateway import Gateway, a_gateway
from tests.proxy import FaultProxy
from tests.widgets import a_definition, define
from virt_steward.kube.client import Client
from virt_steward_demo.local.controlplane import ControlPlane

pytest_plugins = ("tests.patience",)


@pytest.fixture(scope="session")
def control_plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """A real API server, etcd and controller manager, one per worker process. Give back what you break."""
    with a_control_plane(tmp_path_factory.mktemp("controlplane")) as started:
        yield started


@pytest.fixture
def audit_log(control_plane: ControlPlane) -> AuditLog:
    """What the API server has answered, and to whom."""
    return AuditLog(control_plane.audit_log)


@pytest.fixture
async def proxy(control_plane: ControlPlane) -> AsyncIterator[FaultProxy]:
    """A way to the API server that can be cut, frozen or slowed down."""
    async with FaultProxy(control_plane.port) as started:
        yield started


@pytest.fixture
async def admin(control_plane: ControlPlane) -> AsyncIterator[Client]:
    """May do everything."""
    async with a_client(control_plane) as client:
        yield client


@pytest.fixture
async def namespace(admin: Client) -> str:
    """A new one for each test. It goes with the control plane: deleting each would keep the server busy."""
    name = f"test-{uuid.uuid4().hex[:8]}"
    await admin.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    return name


@pytest.fixture
async def widgets(admin: Client, namespace: str) -> str:
    """A namespace that may hold widgets."""
    await define(admin, a_definition("Widget"))
    return namespace


@pytest.fixture
async def gateway(control_plane: ControlPlane) -> AsyncIterator[Gateway]:
    """A way to the API server on which single answers can be replaced."""
    async with a_gateway(control_plane) as started:
        yield started
