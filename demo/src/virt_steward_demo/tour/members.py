"""Member clusters that Machines can be placed on: small but real API servers on this machine."""

from __future__ import annotations

import asyncio
from base64 import b64encode
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Self

from virt_steward.apis.kubevirtconfig import KUBEVIRT_CONFIG
from virt_steward.app import connected
from virt_steward.controllers.placement.capacity import NODE_METRICS
from virt_steward.controllers.placement.search import VIRTUAL_MACHINE
from virt_steward.objects.corekinds import NODE
from virt_steward.objects.identity import Key, Ref
from virt_steward.runtime.access import NAMESPACE
from virt_steward.ssa import managers
from virt_steward_demo.local.accounts import kubeconfig_for, token_for
from virt_steward_demo.local.controlplane import ControlPlane
from virt_steward_demo.simulation.install import install, make_namespace

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from virt_steward.kube.client import Client, Object
    from virt_steward_demo.local.binaries import Binaries

MACHINES = "team-a"
"""The namespace of the Machines, and of their VMs on the member clusters."""
READER = "placement-reader"


@dataclass(frozen=True, slots=True)
class Member:
    """A member cluster."""

    name: str
    region: str
    vms: tuple[str, ...]
    """VMs that already run there."""
    usage: Mapping[str, str] = field(default_factory=dict)
    """What its only node uses of 512 GiB and 64 cores, as a metrics server reports it."""


MEMBERS = (
    Member("north", "north", ("vm-billing",), {"memory": "343Gi", "cpu": "29"}),
    Member("south", "south", ("vm-reports", "vm-archive"), {"memory": "179Gi", "cpu": "16"}),
)
OFFERED = {"memory": "512Gi", "cpu": "64"}
ANYTHING = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
METRICS_CRD = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {
        "name": f"{NODE_METRICS.plural}.{NODE_METRICS.group}",
        "annotations": {"api-approved.kubernetes.io": "unapproved, stands for a metrics server"},
    },
    "spec": {
        "group": NODE_METRICS.group,
        "names": {"kind": NODE_METRICS.name, "plural": NODE_METRICS.plural},
        "scope": "Cluster",
        "versions": [{"name": "v1beta1", "served": True, "storage": True, "schema": {"openAPIV3Schema": ANYTHING}}],
    },
}


class DemoFleet:
    """Starts all member clusters together, and stops them."""

    def __init__(self, binaries: Binaries, folder: Path, members: tuple[Member, ...] = MEMBERS) -> None:
        self.members = members
        self._planes = {one.name: ControlPlane(binaries, folder / one.name) for one in members}
        self._running = ExitStack()

    def __enter__(self) -> Self:
        with ExitStack() as starting:
            for plane in self._planes.values():
                starting.callback(plane.stop)
                plane.launch()
            self._running = starting.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._running.close()

    async def join(self, client: Client) -> None:
        """Create their VMs, and register them with the cluster whose Machines are placed."""
        await make_namespace(client, MACHINES)
        await asyncio.gather(*(self._register(client, one) for one in self.members))

    def fail(self, name: str) -> None:
        self._planes[name].kill_apiserver()

    def recover(self, name: str) -> None:
        self._planes[name].start_apiserver()

    async def _register(self, client: Client, member: Member) -> None:
        plane = self._planes[member.name]
        await asyncio.to_thread(plane.wait_until_ready)
        async with connected(str(plane.kubeconfig), None) as there:
            await install(there, VIRTUAL_MACHINE.name, METRICS_CRD)
            for namespace in (NAMESPACE, MACHINES):
                await make_namespace(there, namespace)
            for name in member.vms:
                await there.apply(_vm(name), manager=managers.INSTALL.name)
            await _report_usage(there, member)
            token = await token_for(there, _reader())
        kubeconfig = kubeconfig_for(plane, token)
        await client.apply(_secret(member.name, kubeconfig), manager=managers.INSTALL.name)
        await client.apply(_config(member), manager=managers.INSTALL.name)


def _vm(name: str) -> Object:
    metadata = {"name": name, "namespace": MACHINES}
    api_version = f"{VIRTUAL_MACHINE.group}/v1"
    return {
        "apiVersion": api_version,
        "kind": VIRTUAL_MACHINE.name,
        "metadata": metadata,
        "spec": {"running": True, "template": {}},
    }


async def _report_usage(client: Client, member: Member) -> None:
    """Create a node, and what a metrics server would say of it."""
    name = f"{member.name}-1"
    await client.apply({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}}, manager=managers.INSTALL.name)
    offered = {"status": {"capacity": OFFERED, "allocatable": OFFERED}}
    await client.merge_patch(Ref(NODE, Key("", name)), offered, subresource="status")
    metrics = {"apiVersion": f"{NODE_METRICS.group}/v1beta1", "kind": NODE_METRICS.name, "metadata": {"name": name}}
    await client.apply({**metrics, "usage": dict(member.usage)}, manager=managers.INSTALL.name)


def _reader() -> list[Object]:
    """What placement needs on a member cluster: to read VMs, and for the strategy least-loaded, nodes and metrics."""
    rbac = "rbac.authorization.k8s.io"
    account = {"kind": "ServiceAccount", "name": READER, "namespace": NAMESPACE}
    readable = (VIRTUAL_MACHINE, NODE, NODE_METRICS)
    rules = [{"apiGroups": [one.group], "resources": [one.plural], "verbs": ["get", "list"]} for one in readable]
    return [
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": READER, "namespace": NAMESPACE}},
        {"apiVersion": f"{rbac}/v1", "kind": "ClusterRole", "metadata": {"name": READER}, "rules": rules},
        {
            "apiVersion": f"{rbac}/v1",
            "kind": "ClusterRoleBinding",
            "metadata": {"name": READER},
            "roleRef": {"apiGroup": rbac, "kind": "ClusterRole", "name": READER},
            "subjects": [account],
        },
    ]


def _secret(name: str, kubeconfig: str) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": f"{name}-kubeconfig", "namespace": NAMESPACE},
        "data": {"kubeconfig": b64encode(kubeconfig.encode()).decode()},
    }


def _config(member: Member) -> Object:
    return {
        "apiVersion": f"{KUBEVIRT_CONFIG.group}/v1alpha1",
        "kind": KUBEVIRT_CONFIG.name,
        "metadata": {"name": member.name, "labels": {"topology.kubernetes.io/region": member.region}},
        "spec": {
            "name": f"The cluster in the {member.region}",
            "kubeconfigSecretRef": f"{member.name}-kubeconfig",
            "secretNamespace": NAMESPACE,
        },
    }
