"""Where machines are placed: their namespace, KubevirtConfigs with their Secrets, and the rights of the controller."""

import uuid
from typing import Any

from tests.clients import a_client
from tests.fleet import a_machine_definition, a_secret, a_vm, the_secret
from tests.grants import Account, an_account
from tests.kube.kubeconfigs import b64
from tests.leftovers import delete_all
from tests.machines import a_config, a_definition_of_machines, a_machine, cluster_of, placed, the_config, the_machine
from tests.widgets import install_crd
from virt_steward.apis.kubevirtconfig import KUBEVIRT_CONFIG, KUBEVIRT_CONFIG_CRD
from virt_steward.controllers.placement.definition import ACCESS
from virt_steward.controllers.placement.observation import MACHINE
from virt_steward.kube.client import Client, Object, Selection
from virt_steward.kube.events import EVENT
from virt_steward.objects.identity import Key, Ref, ref_of
from virt_steward.runtime.access import Installation
from virt_steward.runtime.matters import NOTIFICATION_MEMORY
from virt_steward_demo.local.controlplane import ControlPlane

DEFINITIONS = (a_definition_of_machines(), a_machine_definition(), KUBEVIRT_CONFIG_CRD.manifest())


async def an_installation(control_plane: ControlPlane) -> Account:
    """The kinds, a namespace for the controller and the Secrets, and its generated rights."""
    home = f"steward-{uuid.uuid4().hex[:8]}"
    async with a_client(control_plane) as client:
        for definition in DEFINITIONS:
            await install_crd(client, definition)
        await client.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": home}})
        installation = Installation(home, prefix=home, secret_namespaces=(home,), extras=(NOTIFICATION_MEMORY,))
        return await an_account(client, ACCESS, installation)


class Scene:
    """What people do around one namespace with machines."""

    def __init__(self, client: Client, control_plane: ControlPlane, namespace: str, secrets: str) -> None:
        self.client = client
        self.namespace = namespace
        self.secrets = secrets
        """The namespace in which they are, each named as its config."""
        self._control_plane = control_plane

    async def install_crds(self) -> None:
        for definition in DEFINITIONS:
            await install_crd(self.client, definition)

    def ref(self, config: str) -> Ref:
        return the_config(config)

    def kubeconfig(self, server: str = "", token: str = "") -> str:
        """For the control plane, by way of another server, or as another user."""
        text = self._control_plane.kubeconfig.read_text()
        text = text.replace(self._control_plane.token, token or self._control_plane.token)
        return text.replace(self._control_plane.server, server or self._control_plane.server)

    async def join(self, *configs: str, server: str = "", token: str = "", **spec: Any) -> None:
        """Configs with their Secrets, all for the control plane; `labels` are the configs'."""
        for config in configs:
            await self.join_secret(config, self.kubeconfig(server, token))
            await self.configure(config, **spec)

    async def join_secret(self, config: str, kubeconfig: str) -> None:
        await self.client.create(a_secret(self.secrets, config, kubeconfig))

    async def configure(self, config: str, **spec: Any) -> None:
        """A config alone."""
        await self.client.create(a_config(config, Key(self.secrets, config), **spec))

    async def change(self, config: str, **spec: Any) -> None:
        await self.client.merge_patch(the_config(config), {"spec": spec})

    async def leave(self, config: str) -> None:
        await self.client.delete(the_config(config))

    async def rotate(self, config: str, kubeconfig: str) -> None:
        patch = {"data": {"kubeconfig": b64(kubeconfig)}}
        await self.client.merge_patch(the_secret(self.secrets, config), patch)

    async def status(self, config: str) -> Object:
        status: Object = (await self.client.get(the_config(config))).get("status", {})
        return status

    async def machine(self, name: str, *, annotations: dict[str, str] | None = None, **spec: Any) -> None:
        await self.client.create(a_machine(self.namespace, name, annotations=annotations, **spec))

    async def annotate(self, name: str, **annotations: str | None) -> None:
        """Underscores stand for dashes, below vitistack.io."""
        keys = {f"vitistack.io/{key.replace('_', '-')}": value for key, value in annotations.items()}
        patch = {"metadata": {"annotations": keys}}
        await self.client.merge_patch(the_machine(self.namespace, name), patch)

    async def vm(self, name: str) -> None:
        await self.client.create(a_vm(self.namespace, name))

    async def cluster_of(self, name: str) -> str:
        return await cluster_of(self.client, self.namespace, name)

    async def annotations(self, name: str) -> dict[str, str]:
        annotations: dict[str, str] = (await self.client.get(the_machine(self.namespace, name)))["metadata"].get(
            "annotations", {}
        )
        return annotations

    async def exists(self, name: str) -> bool:
        return bool(await self.client.list(MACHINE, Selection.one(Key(self.namespace, name))))

    async def is_on(self, name: str, cluster: str) -> bool:
        return await self.cluster_of(name) == cluster

    async def condition(self, name: str) -> Object:
        return await placed(self.client, self.namespace, name)

    async def waits_for(self, name: str, reason: str) -> bool:
        """Whether its condition says so."""
        condition = await self.condition(name)
        return (condition.get("status"), condition.get("reason")) == ("False", reason)

    async def events(self, name: str) -> list[Object]:
        found = await self.client.list(EVENT, Selection(self.namespace))
        return [one for one in found if one["regarding"]["name"] == name]

    async def clear(self) -> None:
        """No config and no machine of any test outlives it: either would count for the next."""
        await delete_all(self.client, MACHINE)
        for one in await self.client.list(KUBEVIRT_CONFIG):
            await self.client.delete(ref_of(one))
            secret = the_secret(self.secrets, one["metadata"]["name"])
            if await self.client.list(secret.kind, Selection.one(secret.key)):
                await self.client.delete(secret)
