"""ServiceAccounts on a local control plane: each controller runs with its own generated roles, as on any cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING

from virt_steward.runtime.access import manifests
from virt_steward.ssa import managers
from virt_steward_demo.local.files import write_file

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from virt_steward.kube.client import Client, Object
    from virt_steward.runtime.access import Access, Installation
    from virt_steward_demo.local.controlplane import ControlPlane

LIFETIME = 24 * 3600


async def token_of(client: Client, access: Access, installation: Installation) -> str:
    """Install the generated ServiceAccount and roles of a controller, and return a token."""
    return await token_for(client, manifests(access, installation))


async def token_for(client: Client, account: Sequence[Object]) -> str:
    """Install a ServiceAccount (the first manifest) with its roles, and return a token."""
    for manifest in account:
        await client.apply(manifest, manager=managers.INSTALL.name, force=True)
    metadata = account[0]["metadata"]
    request = {
        "apiVersion": "authentication.k8s.io/v1",
        "kind": "TokenRequest",
        "metadata": {"name": metadata["name"], "namespace": metadata["namespace"]},
        "spec": {"expirationSeconds": LIFETIME},
    }
    answer = await client.create(request, subresource="token")
    return str(answer["status"]["token"])


def kubeconfig_for(control_plane: ControlPlane, token: str) -> str:
    """The kubeconfig of the control plane with another token than the admin's."""
    return control_plane.kubeconfig.read_text().replace(control_plane.token, token)


def write_kubeconfig(path: Path, control_plane: ControlPlane, token: str) -> None:
    write_file(path, kubeconfig_for(control_plane, token).encode())
