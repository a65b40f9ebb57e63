"""Fixtures for all tests."""

import uuid
from collections.abc import AsyncIterator, Iterator

import pytest
from hypothesis import HealthCheck, settings

from tests.audit import AuditLog
from tests.clients import a_client
from tests.cluster import a_control_plane
from tests.gateway import Gateway, a_gateway
from tests.proxy import FaultProxy
from tests.widgets import a_crd, install_crd
from virt_steward.kube.client import Client
from virt_steward_demo.local.controlplane import ControlPlane

pytest_plugins = ("tests.shuffle", "tests.time_limits", "tests.lag_limits")

# By default, hypothesis fails an example that takes more than 0.2 s of wall-clock time, which a busy machine may take.
settings.register_profile("tests", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("tests")


@pytest.fixture(scope="session")
def control_plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """A real API server, etcd and controller manager, one per worker process. A test must restore what it breaks."""
    with a_control_plane(tmp_path_factory.mktemp("controlplane")) as started:
        yield started


@pytest.fixture
def audit_log(control_plane: ControlPlane) -> AuditLog:
    """The audit log of the API server."""
    return AuditLog(control_plane.audit_log)


@pytest.fixture
async def proxy(control_plane: ControlPlane) -> AsyncIterator[FaultProxy]:
    """A TCP proxy to the API server that can be cut, frozen or slowed down."""
    async with FaultProxy(control_plane.port) as started:
        yield started


@pytest.fixture
async def admin(control_plane: ControlPlane) -> AsyncIterator[Client]:
    """A client with all rights."""
    async with a_client(control_plane) as client:
        yield client


@pytest.fixture
async def namespace(admin: Client) -> str:
    """A new namespace for each test. It is not deleted: that would keep the server busy."""
    name = f"test-{uuid.uuid4().hex[:8]}"
    await admin.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    return name


@pytest.fixture
async def widgets(admin: Client, namespace: str) -> str:
    """A namespace on a cluster that serves widgets."""
    await install_crd(admin, a_crd("Widget"))
    return namespace


@pytest.fixture
async def gateway(control_plane: ControlPlane) -> AsyncIterator[Gateway]:
    """An HTTP gateway to the API server that can replace single responses."""
    async with a_gateway(control_plane) as started:
        yield started
