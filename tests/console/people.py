"""Users with accounts of their own: admins, readers, and users with few rights."""

import base64
import json
import uuid
from dataclasses import dataclass
from typing import Any

from virt_steward.kube.client import Client
from virt_steward.objects.identity import Key, Kind, Ref

RBAC = "rbac.authorization.k8s.io"
LOOK = ("get", "list", "watch")
SHOWN = (
    "advisor.kubevirt.io",
    "events.k8s.io",
    "hco.kubevirt.io",
    "machineconfiguration.openshift.io",
    "operator.openshift.io",
    "operators.bapu.cloud",
    "operators.coreos.com",
    "vitistack.io",
)


def a_rule(*groups: str, verbs: tuple[str, ...] = LOOK, resources: tuple[str, ...] = ("*",)) -> dict[str, Any]:
    return {"apiGroups": list(groups), "resources": list(resources), "verbs": list(verbs)}


@dataclass(slots=True)
class People:
    """Creates users and returns their tokens."""

    client: Client
    namespace: str

    async def admin(self) -> str:
        return await self.somebody(a_rule("*", verbs=("*",)))

    async def watcher(self) -> str:
        """May read everything that the console shows, and change nothing."""
        return await self.somebody(a_rule(*SHOWN), a_rule("", resources=("nodes",)))

    async def stranger(self) -> str:
        """Has an account without any rights."""
        return await self.somebody()

    async def neighbour(self, *namespaces: str) -> str:
        """May read everything in some namespaces, and nothing elsewhere."""
        name = await self._account()
        for namespace in namespaces:
            await self._allow(name, namespace, (a_rule("*"),))
        return await self.token_of(name)

    async def somebody(self, *rules: dict[str, Any]) -> str:
        name = await self._account()
        if rules:
            await self._allow(name, "", rules)
        return await self.token_of(name)

    async def token_of(self, name: str) -> str:
        request = {
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "TokenRequest",
            "metadata": {"name": name, "namespace": self.namespace},
            "spec": {"expirationSeconds": 3600},
        }
        return str((await self.client.create(request, subresource="token"))["status"]["token"])

    async def dismiss(self, token: str) -> None:
        """Delete the account, which revokes its tokens."""
        name = user_of(token).rpartition(":")[2]
        await self.client.delete(Ref(Kind("", "ServiceAccount"), Key(self.namespace, name)))

    async def forbid(self, token: str) -> None:
        """Delete the user's ClusterRoleBinding."""
        name = user_of(token).rpartition(":")[2]
        await self.client.delete(Ref(Kind(RBAC, "ClusterRoleBinding"), Key("", name)))

    async def _account(self) -> str:
        name = f"person-{uuid.uuid4().hex[:8]}"
        metadata = {"name": name, "namespace": self.namespace}
        await self.client.create({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata})
        return name

    async def _allow(self, name: str, namespace: str, rules: tuple[dict[str, Any], ...]) -> None:
        scope = "" if namespace else "Cluster"
        metadata = {"name": name, **({"namespace": namespace} if namespace else {})}
        role = {"apiVersion": f"{RBAC}/v1", "kind": f"{scope}Role", "metadata": metadata, "rules": list(rules)}
        binding = {
            "apiVersion": f"{RBAC}/v1",
            "kind": f"{scope}RoleBinding",
            "metadata": metadata,
            "roleRef": {"apiGroup": RBAC, "kind": f"{scope}Role", "name": name},
            "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": self.namespace}],
        }
        await self.client.create(role)
        await self.client.create(binding)


def user_of(token: str) -> str:
    """The user name in a token."""

    payload = token.split(".")[1]
    return str(json.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))["sub"])
