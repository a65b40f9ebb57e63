"""Clients of the control plane of the tests: as its admin, or with another token."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from virt_steward.kube.client import Client
from virt_steward.kube.connection import Connection, unobserved
from virt_steward.kube.discovery import Discovery
from virt_steward.kube.kubeconfig import load_from_bytes
from virt_steward_demo.local.controlplane import ControlPlane


@asynccontextmanager
async def a_client(control_plane: ControlPlane, token: str = "", *, server: str = "") -> AsyncIterator[Client]:
    """Connect to `server`, such as a proxy, instead of the control plane itself."""
    text = control_plane.kubeconfig.read_text().replace(control_plane.token, token or control_plane.token)
    text = text.replace(control_plane.server, server or control_plane.server)
    cluster = load_from_bytes(text.encode(), source="tests", trusted=True, env={})
    connection = Connection(cluster, user_agent="tests", observe=unobserved)
    try:
        yield Client(connection, Discovery(connection))
    finally:
        await connection.close()
