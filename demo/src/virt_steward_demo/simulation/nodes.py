"""Nodes and pools of the simulated cluster, as an installer creates them."""

from __future__ import annotations

import uuid
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from virt_steward.kube.errors import AlreadyExists
from virt_steward.objects.identity import ref_of
from virt_steward.ssa import managers
from virt_steward_demo.simulation.kinds.machineconfiguration import API_VERSION
from virt_steward_demo.simulation.nodedaemon import readiness
from virt_steward_demo.simulation.pools import MASTER, WORKER
from virt_steward_demo.simulation.rendering import IGNITION, ROLE

if TYPE_CHECKING:
    from collections.abc import Mapping

    from virt_steward.kube.client import Client, Object

CAPACITY = {"cpu": "16", "memory": "64Gi", "pods": "250", "ephemeral-storage": "120Gi"}


@dataclass(frozen=True, slots=True)
class Node:
    """A node to create. Roles are the names of node-role labels."""

    name: str
    roles: tuple[str, ...] = (WORKER,)
    labels: Mapping[str, str] = field(default_factory=dict)
    """Hardware, as node feature discovery labels it."""
    capacity: Mapping[str, str] = field(default_factory=dict)
    """Extra resources, such as devices."""
    swap: int = 0
    """Bytes."""

    def manifest(self) -> Object:
        labels = {f"node-role.kubernetes.io/{role}": "" for role in self.roles}
        labels |= {"kubernetes.io/hostname": self.name, "kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64"}
        return {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": self.name, "labels": {**labels, **self.labels}},
            "spec": {"providerID": f"simulated:///{self.name}"},
        }

    def status(self) -> Object:
        capacity = {**CAPACITY, **self.capacity}
        info = dict.fromkeys(("kubeProxyVersion", "machineID", "systemUUID"), "") | {
            "architecture": "amd64",
            "bootID": str(uuid.uuid4()),
            "containerRuntimeVersion": "cri-o://1.35.0",
            "kernelVersion": "5.14.0",
            "kubeletVersion": "v1.36.3",
            "operatingSystem": "linux",
            "osImage": "simulated",
            **({"swap": {"capacity": self.swap}} if self.swap else {}),
        }
        return {"capacity": capacity, "allocatable": capacity, "nodeInfo": info, **readiness(ready=True)}


async def add_node(client: Client, node: Node) -> None:
    """Add a node that is Ready and has no taints."""
    manifest = node.manifest()
    with suppress(AlreadyExists):
        await client.create(manifest)
    ref = ref_of(manifest)
    await client.merge_patch(ref, {"status": node.status()}, subresource="status", manager="kubelet")
    await client.merge_patch(ref, {"spec": {"taints": None}}, manager="kubelet")


async def add_pool(client: Client, name: str, **spec: object) -> None:
    """Create the pool of the nodes with that role. A custom pool also selects the MachineConfigs of workers."""
    roles = [name] if name in (MASTER, WORKER) else [WORKER, name]
    selector: Object = {"matchLabels": {ROLE: name}}
    if len(roles) > 1:
        selector = {"matchExpressions": [{"key": ROLE, "operator": "In", "values": roles}]}
    labels = {f"pools.operator.machineconfiguration.openshift.io/{name}": ""}
    pool = {
        "apiVersion": API_VERSION,
        "kind": "MachineConfigPool",
        "metadata": {"name": name, "labels": labels},
        "spec": {
            "machineConfigSelector": selector,
            "nodeSelector": {"matchLabels": {f"node-role.kubernetes.io/{name}": ""}},
            **spec,
        },
    }
    await client.apply(pool, manager=managers.INSTALL.name, force=True)


async def add_base_config(client: Client, role: str) -> None:
    """Create the MachineConfig that every installation has."""
    content = {"path": "/etc/motd.d/role", "mode": 0o644, "contents": {"source": f"data:,{role}"}}
    config = {"ignition": {"version": IGNITION}, "storage": {"files": [content]}}
    manifest = {
        "apiVersion": API_VERSION,
        "kind": "MachineConfig",
        "metadata": {"name": f"00-{role}", "labels": {ROLE: role}},
        "spec": {"config": config},
    }
    await client.apply(manifest, manager=managers.INSTALL.name, force=True)
