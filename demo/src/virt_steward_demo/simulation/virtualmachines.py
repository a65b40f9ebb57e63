"""VMs on the nodes: a drain migrates them to other nodes, or stops those that cannot migrate."""

from __future__ import annotations

import uuid
from collections import Counter
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from virt_steward.kube.errors import AlreadyExists, NotFound
from virt_steward.objects.corekinds import NODE
from virt_steward.objects.identity import Key, Ref, key_of
from virt_steward.ssa import managers
from virt_steward_demo.simulation.conditions import is_true
from virt_steward_demo.simulation.kinds.virtualmachines import (
    API_VERSION,
    MIGRATION,
    VIRTUAL_MACHINE,
    VIRTUAL_MACHINE_INSTANCE,
)
from virt_steward_demo.simulation.pools import WORKER

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from virt_steward.kube.client import Client, Object

MANAGER = "virt-controller"
ON_NODE = "kubevirt.io/nodeName"
FIXED = "simulation.virt-steward.example/stays-on"
"""On a VM that cannot migrate: the node with its device."""


@dataclass(frozen=True, slots=True)
class Workloads:
    """The VMs of a cluster."""

    client: Client

    async def add(self, key: Key, node: str, *, migratable: bool = True) -> None:
        """Create a VM that runs on a node; one that is not migratable uses a device of that node."""
        annotations = {} if migratable else {FIXED: node}
        machine = {
            "apiVersion": API_VERSION,
            "kind": VIRTUAL_MACHINE.name,
            "metadata": {"name": key.name, "namespace": key.namespace, "annotations": annotations},
            "spec": {"runStrategy": "Always", "template": {"spec": _instance_spec(migratable=migratable)}},
        }
        await self.client.apply(machine, manager=managers.INSTALL.name, force=True)
        await self._start(key, node, migratable=migratable)

    @asynccontextmanager
    async def drained(self, node: str) -> AsyncIterator[None]:
        """Keep the node free of VMs until the end of the block. VMs that were stopped start again after a success."""
        for instance in await self._on(node):
            key = key_of(instance)
            target = await self._target(node)
            if target and is_true(instance["status"]["conditions"], "LiveMigratable"):
                await self._migrate(key, node, target)
            else:
                await self._stop(key)
        yield
        running = {key_of(one) for one in await self.client.list(VIRTUAL_MACHINE_INSTANCE)}
        for machine in await self.client.list(VIRTUAL_MACHINE):
            key, fixed_node = key_of(machine), machine["metadata"].get("annotations", {}).get(FIXED)
            if key not in running and fixed_node in (None, node):
                await self._start(key, node, migratable=fixed_node is None)

    async def _start(self, key: Key, node: str, *, migratable: bool) -> None:
        instance = {
            "apiVersion": API_VERSION,
            "kind": VIRTUAL_MACHINE_INSTANCE.name,
            "metadata": {"name": key.name, "namespace": key.namespace, "labels": {ON_NODE: node}},
            "spec": _instance_spec(migratable=migratable),
        }
        with suppress(AlreadyExists):
            await self.client.create(instance)
        status = {"phase": "Running", "nodeName": node, "conditions": _conditions(migratable=migratable)}
        await self._set_status(Ref(VIRTUAL_MACHINE_INSTANCE, key), status)
        running = {"printableStatus": "Running", "ready": True, "created": True}
        await self._set_status(Ref(VIRTUAL_MACHINE, key), running)

    async def _stop(self, key: Key) -> None:
        with suppress(NotFound):
            await self.client.delete(Ref(VIRTUAL_MACHINE_INSTANCE, key))
        stopped = {"printableStatus": "Stopped", "ready": False, "created": False}
        await self._set_status(Ref(VIRTUAL_MACHINE, key), stopped)

    async def _migrate(self, key: Key, source: str, target: str) -> None:
        name = f"evacuation-{key.name}-{uuid.uuid4().hex[:5]}"
        migration = {
            "apiVersion": API_VERSION,
            "kind": MIGRATION.name,
            "metadata": {"name": name, "namespace": key.namespace},
            "spec": {"vmiName": key.name},
        }
        await self.client.create(migration)
        state = {"sourceNode": source, "targetNode": target, "completed": True}
        moved = {"nodeName": target, "migrationState": state}
        instance = Ref(VIRTUAL_MACHINE_INSTANCE, key)
        await self._set_status(instance, moved)
        await self.client.merge_patch(instance, {"metadata": {"labels": {ON_NODE: target}}}, manager=MANAGER)
        done = {"phase": "Succeeded", "migrationState": state}
        await self._set_status(Ref(MIGRATION, Key(key.namespace, name)), done)

    async def _on(self, node: str) -> list[Object]:
        instances = await self.client.list(VIRTUAL_MACHINE_INSTANCE)
        return [one for one in instances if one.get("status", {}).get("nodeName") == node]

    async def _target(self, node: str) -> str | None:
        """The schedulable worker with the fewest VMs."""
        role = f"node-role.kubernetes.io/{WORKER}"
        schedulable = [
            one["metadata"]["name"]
            for one in await self.client.list(NODE)
            if role in one["metadata"]["labels"] and not one["spec"].get("unschedulable")
        ]
        instances = await self.client.list(VIRTUAL_MACHINE_INSTANCE)
        load = Counter(one.get("status", {}).get("nodeName") for one in instances)
        return min((name for name in schedulable if name != node), key=lambda name: (load[name], name), default=None)

    async def _set_status(self, ref: Ref, status: Object) -> None:
        await self.client.merge_patch(ref, {"status": status}, subresource="status", manager=MANAGER)


def _instance_spec(*, migratable: bool) -> Object:
    domain: Object = {"devices": {}, "memory": {"guest": "4Gi"}, "cpu": {"cores": 2}}
    if not migratable:
        domain["devices"]["hostDevices"] = [{"name": "accelerator", "deviceName": "example.com/accelerator"}]
    return {"domain": domain, "evictionStrategy": "LiveMigrate" if migratable else "None"}


def _conditions(*, migratable: bool) -> list[Object]:
    live: Object = {"type": "LiveMigratable", "status": "True"}
    if not migratable:
        message = "the VM uses a device of its node"
        live |= {"status": "False", "reason": "HostDeviceNotLiveMigratable", "message": message}
    return [{"type": "Ready", "status": "True"}, live]
