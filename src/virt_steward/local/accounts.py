"""Controllers on a local control plane run as they would elsewhere: with their own ServiceAccount and its rights."""

from __future__ import annotations

from typing import TYPE_CHECKING

from virt_steward.local.private import write_file
from virt_steward.runtime.access import manifests
from virt_steward.ssa import managers

if TYPE_CHECKING:
    from pathlib import Path

    from virt_steward.kube.client import Client
    from virt_steward.local.controlplane import ControlPlane
    from virt_steward.runtime.access import Access, Installation

LIFETIME = 24 * 3600


async def token_of(client: Client, access: Access, installation: Installation) -> str:
    """Install the generated ServiceAccount and roles, and give a token for them."""
    for manifest in manifests(access, installation):
        await client.apply(manifest, manager=managers.INSTALL.name, force=True)
    request = {
        "apiVersion": "authentication.k8s.io/v1",
        "kind": "TokenRequest",
        "metadata": {"name": installation.account(access), "namespace": installation.namespace},
        "spec": {"expirationSeconds": LIFETIME},
    }
    answer = await client.create(request, subresource="token")
    return str(answer["status"]["token"])


def write_kubeconfig(path: Path, control_plane: ControlPlane, token: str) -> None:
    """The control plane's kubeconfig, for somebody else than its admin."""
    write_file(path, control_plane.kubeconfig.read_text().replace(control_plane.token, token).encode())
