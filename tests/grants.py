"""Runs a controller with exactly the rights that it declares, and checks them with the audit log."""

import uuid
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from tests.audit import Request
from virt_steward.kube.client import Client
from virt_steward.objects.identity import Kind
from virt_steward.runtime.access import RBAC, Access, Installation
from virt_steward_demo.local.accounts import token_of
from virt_steward_demo.local.controlplane import ControlPlane

NOT_ALWAYS_USED = {
    "list": "for servers that cannot stream a list",
    "patch events": "only when an event repeats after a minute",
    "get validatingadmissionpolicies": "only when approvals of several people suffice",
    "get validatingadmissionpolicybindings": "only when approvals of several people suffice",
}
"""Grants that a test may leave unused, by verb or by verb and resource, each with its reason."""


@dataclass(frozen=True, slots=True)
class Account:
    """A ServiceAccount with the roles of one controller."""

    access: Access
    user: str
    """Its name in the audit log."""
    token: str

    def write_kubeconfig(self, path: Path, control_plane: ControlPlane, server: str = "") -> Path:
        """A kubeconfig for it; `server` is another address of the control plane, such as a proxy."""
        text = control_plane.kubeconfig.read_text().replace(control_plane.token, self.token)
        path.write_text(text.replace(control_plane.server, server or control_plane.server))
        return path

    def denied(self, requests: Iterable[Request]) -> list[str]:
        """Requests that were forbidden."""
        return [f"{one.verb} {one.uri}" for one in requests if one.user == self.user and one.code == 403]

    def unused(self, requests: Iterable[Request]) -> list[str]:
        """Grants that no request has used."""
        used = {what for one in requests if one.user == self.user for what in _uses(one)}
        granted = {f"{verb} {grant.resource}" for grant in self.access.all_grants for verb in grant.verbs}
        return sorted(what for what in granted - used if not {what, what.split()[0]} & NOT_ALWAYS_USED.keys())


async def an_account(client: Client, access: Access, installation: Installation) -> Account:
    """Install the generated ServiceAccount and roles, and get a token."""
    token = await token_of(client, access, installation)
    user = f"system:serviceaccount:{installation.namespace}:{installation.account(access)}"
    return Account(access, user, token)


def _uses(request: Request) -> tuple[str, ...]:
    resource = f"{request.resource}/{request.subresource}" if request.subresource else request.resource
    what = f"{request.verb} {resource}"
    return (what, f"create {resource}") if request.code == 201 else (what,)  # an apply may create


async def grant_verbs(client: Client, user: str, kind: Kind, *verbs: str) -> None:
    """Let a user do what controllers are never granted, such as to approve."""
    name = f"tests-{uuid.uuid4().hex[:8]}"
    head = {"apiVersion": f"{RBAC}/v1", "metadata": {"name": name}}
    rule = {"apiGroups": [kind.group], "resources": [kind.plural], "verbs": list(verbs)}
    await client.create({**head, "kind": "ClusterRole", "rules": [rule]})
    role = {"apiGroup": RBAC, "kind": "ClusterRole", "name": name}
    subject = {"apiGroup": RBAC, "kind": "User", "name": user}
    await client.create({**head, "kind": "ClusterRoleBinding", "roleRef": role, "subjects": [subject]})
