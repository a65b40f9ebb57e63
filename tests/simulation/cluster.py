"""A few nodes and pools with the simulated machine-config operator at work, and what was seen of them."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from tests.eventually import eventually
from tests.leftovers import delete_all
from tests.runtime.informers import running
from virt_steward.kube.client import Client
from virt_steward.objects.corekinds import NODE
from virt_steward.objects.identity import Key, Ref
from virt_steward.runtime.informer import Informer
from virt_steward_demo.simulation.conditions import is_true
from virt_steward_demo.simulation.control_loop import SimulatedObject, source_of
from virt_steward_demo.simulation.install import install
from virt_steward_demo.simulation.kinds.machineconfiguration import (
    API_VERSION,
    KUBELET_CONFIG,
    MACHINE_CONFIG,
    MACHINE_CONFIG_POOL,
)
from virt_steward_demo.simulation.machineconfigs import MachineConfigController
from virt_steward_demo.simulation.nodes import Node, add_base_config, add_node, add_pool
from virt_steward_demo.simulation.pools import PoolMachine
from virt_steward_demo.simulation.rendering import ROLE

PACE = 0.02
KINDS = (KUBELET_CONFIG, MACHINE_CONFIG, MACHINE_CONFIG_POOL, NODE)


@dataclass(slots=True)
class Cluster:
    """Three workers in one pool, at first."""

    client: Client
    nodes: Informer[SimulatedObject]
    away: list[frozenset[str]] = field(default_factory=list)
    """Which nodes were away at once, after each change of a node."""

    async def pool(self, name: str = "worker") -> dict[str, Any]:
        return await self.client.get(Ref(MACHINE_CONFIG_POOL, Key("", name)))

    async def status(self, name: str = "worker") -> dict[str, Any]:
        status: dict[str, Any] = (await self.pool(name)).get("status", {})
        return status

    async def node(self, name: str) -> dict[str, Any]:
        return await self.client.get(Ref(NODE, Key("", name)))

    async def boots(self) -> dict[str, str]:
        return {one["metadata"]["name"]: one["status"]["nodeInfo"]["bootID"] for one in await self.client.list(NODE)}

    async def rendered(self, name: str = "worker") -> dict[str, Any]:
        """The configuration that the pool's nodes all run."""
        running = (await self.status(name))["configuration"]["name"]
        spec: dict[str, Any] = (await self.client.get(Ref(MACHINE_CONFIG, Key("", running))))["spec"]
        return spec

    async def configure(self, name: str, *, role: str = "worker", **spec: Any) -> None:
        metadata = {"name": name, "labels": {ROLE: role}}
        obj = {"apiVersion": API_VERSION, "kind": "MachineConfig", "metadata": metadata, "spec": spec}
        await self.client.apply(obj, manager="a-person")

    async def has_rolled(self, argument: str, pool: str = "worker") -> bool:
        """All nodes run a configuration with this kernel argument, and the pool says so."""
        found = await self.pool(pool)
        status = found.get("status", {})
        if not status.get("configuration") or status["configuration"] != found["spec"]["configuration"]:
            return False
        counts = [status[f"{name}MachineCount"] for name in ("updated", "ready")]
        if any(count != status["machineCount"] for count in counts) or not is_true(status["conditions"], "Updated"):
            return False
        return argument in (await self.rendered(pool))["kernelArguments"]

    async def is_updated(self, pool: str = "worker") -> bool:
        return is_true((await self.status(pool)).get("conditions", ()), "Updated")

    def look(self, *_: object) -> None:
        self.away.append(frozenset(node.name for node in self.nodes.store if not PoolMachine.of(node).is_available))


@asynccontextmanager
async def a_cluster(client: Client, *, pace: float = PACE, max_unavailable: int | str = 1) -> AsyncIterator[Cluster]:
    """A cluster whose operator has rendered the pools and written their status."""
    async with nodes_and_a_pool(client, max_unavailable) as cluster, running(MachineConfigController(client, pace)):
        assert await eventually(cluster.is_updated)
        cluster.nodes.tell(cluster.look)
        yield cluster


@asynccontextmanager
async def nodes_and_a_pool(client: Client, max_unavailable: int | str = 1) -> AsyncIterator[Cluster]:
    """With nobody at work."""
    await install(client, *(kind.name for kind in KINDS if kind is not NODE))
    await delete_all(client, *KINDS)
    await add_base_config(client, "worker")
    await add_pool(client, "worker", maxUnavailable=max_unavailable)
    for number in range(3):
        await add_node(client, Node(f"worker-{number}"))
    cluster = Cluster(client, Informer(client, source_of(NODE)))
    try:
        async with running(cluster.nodes):
            yield cluster
    finally:
        await delete_all(client, *KINDS)
