"""The simulated platform: nodes, pools, HyperConverged, VMs, and the controllers that manage them."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

from virt_steward.kube.errors import Invalid, NotFound, NotServed
from virt_steward.objects.corekinds import NODE
from virt_steward.objects.identity import Key, Ref, key_of, ref_of
from virt_steward.objects.wallclock import rfc3339
from virt_steward.runtime.clock import SystemClock
from virt_steward.ssa import managers
from virt_steward_demo.simulation.control_loop import in_background
from virt_steward_demo.simulation.converter import ConversionWebhook
from virt_steward_demo.simulation.install import install, make_namespace, uninstall
from virt_steward_demo.simulation.kinds import NAMES, OLM_KINDS, STUBS, machines, olm
from virt_steward_demo.simulation.kinds.descheduler import KUBE_DESCHEDULER, LATEST, kube_descheduler
from virt_steward_demo.simulation.kinds.hyperconverged import GROUP, HYPER_CONVERGED, NAME, hyper_converged
from virt_steward_demo.simulation.kinds.virtualmachines import API_VERSION as KUBEVIRT_VERSION
from virt_steward_demo.simulation.machineconfigs import MachineConfigController
from virt_steward_demo.simulation.nodes import Node, add_base_config, add_node, add_pool
from virt_steward_demo.simulation.olm import LifecycleManager
from virt_steward_demo.simulation.packages import OlmCatalog, OlmPackage
from virt_steward_demo.simulation.pools import MASTER, WORKER
from virt_steward_demo.simulation.virtualmachines import Workloads

if TYPE_CHECKING:
    from collections.abc import Awaitable, Iterable

    from virt_steward.kube.client import Client, Object
    from virt_steward.objects.identity import Kind

BY_PARAMETER = (HYPER_CONVERGED.name, KUBE_DESCHEDULER.name)
NAMESPACES = (
    "openshift-cnv",
    "openshift-kube-descheduler-operator",
    "openshift-logging",
    "openshift-monitoring",
    "openshift-mtv",
    "openshift-workload-availability",
    "metallb-system",
)
VM_NAMESPACE = "tenants"
AT_ONCE = 8
"""Requests for which connections are free."""
PACKAGES = (
    OlmPackage("backup-operator", ("2.0.0", "2.1.0")),
    OlmPackage("storage-operator", ("4.0.0", "4.1.0")),
    OlmPackage("mesh-operator", ("3.0.0",), needs=("storage-operator",)),
)


@dataclass(frozen=True, slots=True)
class PlatformShape:
    """The size and the versions of a simulated platform."""

    masters: int = 1
    workers: int = 3
    pace: float = 0.05
    """Seconds that the update of a node takes."""
    render_delay: float = 0.0
    """Seconds without a change of MachineConfigs before a pool takes them up; 5 in a real cluster."""
    max_unavailable: int | str = 1
    """maxUnavailable of the worker pool."""
    machines_per_worker: int = 2
    """VMs per worker; on every second worker, one of them cannot migrate."""
    hyperconverged: tuple[str, ...] = ("v1",)
    """The served versions of HyperConverged."""
    descheduler: str = LATEST
    """The version of the descheduler operator."""
    without: tuple[str, ...] = ()
    """Kinds that are not installed."""
    packages: tuple[OlmPackage, ...] = PACKAGES
    """The packages of the operator catalog."""
    simulates_olm: bool = True
    """False where the real Operator Lifecycle Manager runs, with its own CRDs."""
    nodes: tuple[Node, ...] = ()
    """Nodes besides masters and workers."""


class SimulatedPlatform:
    """Runs until the end of the `async with` block, and then deletes all of its objects."""

    def __init__(self, client: Client, shape: PlatformShape) -> None:
        self.client = client
        self.shape = shape
        self.workloads = Workloads(client)
        self._webhook = ConversionWebhook()
        self._running = AsyncExitStack()

    async def __aenter__(self) -> Self:
        async with self._running:  # so that a failed start cleans up too
            await self._running.enter_async_context(self._webhook)
            self._running.push_async_callback(clear, self.client)
            await self._install()
            await self._create_objects()
            pools = MachineConfigController(
                self.client, self.shape.pace, self.workloads.drained, self.shape.render_delay
            )
            operators = LifecycleManager(self.client, OlmCatalog(self.shape.packages), self.shape.pace)
            loops = (pools, operators) if self.shape.simulates_olm else (pools,)
            await self._running.enter_async_context(in_background(*loops))
            self._running = self._running.pop_all()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._running.aclose()

    async def serve_hyperconverged(self, *versions: str) -> None:
        """Serve other versions of HyperConverged from now on; stored objects are converted."""
        self._running.push_async_callback(uninstall, self.client, HYPER_CONVERGED.name)  # it needs the webhook
        await install(self.client, hyper_converged(*versions, conversion=self._webhook.conversion).definition())

    async def _install(self) -> None:
        await uninstall(self.client, *self.shape.without)
        left_out = (*BY_PARAMETER, *self.shape.without, *(() if self.shape.simulates_olm else OLM_KINDS))
        kinds: list[str | Object] = [name for name in NAMES if name not in left_out]
        if KUBE_DESCHEDULER.name not in self.shape.without:
            kinds.append(kube_descheduler(self.shape.descheduler).definition())
        await install(self.client, *kinds)
        await self._install_hyperconverged()

    async def _install_hyperconverged(self) -> None:
        if HYPER_CONVERGED.name in self.shape.without:
            return
        if len(self.shape.hyperconverged) > 1:
            await self.serve_hyperconverged(*self.shape.hyperconverged)
            return
        stub = hyper_converged(*self.shape.hyperconverged)
        try:
            await install(self.client, stub.definition())
        except Invalid:  # it was served in another version before
            await uninstall(self.client, HYPER_CONVERGED.name)
            await install(self.client, stub.definition())

    async def _create_objects(self) -> None:
        await asyncio.gather(*(make_namespace(self.client, one) for one in (*NAMESPACES, VM_NAMESPACE)))
        await self._add_nodes()
        await self._add_vms()
        await self._add_cluster_objects()

    async def _add_nodes(self) -> None:
        for role in (MASTER, WORKER):
            await add_base_config(self.client, role)
        await add_pool(self.client, MASTER)
        await add_pool(self.client, WORKER, maxUnavailable=self.shape.max_unavailable)
        masters = [Node(f"master-{number}", (MASTER, "control-plane")) for number in range(self.shape.masters)]
        workers = [Node(f"worker-{number}") for number in range(self.shape.workers)]
        await in_turns(add_node(self.client, node) for node in (*masters, *workers, *self.shape.nodes))

    async def _add_vms(self) -> None:
        for worker in range(self.shape.workers):
            for number in range(self.shape.machines_per_worker):
                key = Key(VM_NAMESPACE, f"vm-{worker}-{number}")
                is_fixed = number == 0 and worker % 2 == 1
                await self.workloads.add(key, f"worker-{worker}", migratable=not is_fixed)

    async def _add_cluster_objects(self) -> None:
        version = next(name for name in ("v1", "v1beta1") if name in self.shape.hyperconverged)
        metadata = {"name": NAME, "namespace": "openshift-cnv"}
        hco = {"apiVersion": f"{GROUP}/{version}", "kind": HYPER_CONVERGED.name, "metadata": metadata}
        await self._make(hco, _healthy())
        gates = {"developerConfiguration": {"featureGates": ["CPUManager", "Snapshot"]}}
        kubevirt = {"apiVersion": KUBEVIRT_VERSION, "kind": "KubeVirt", "spec": {"configuration": gates}}
        await self._make({**kubevirt, "metadata": {**metadata, "name": f"kubevirt-{NAME}"}}, {})
        infrastructure = {
            "apiVersion": "config.openshift.io/v1",
            "kind": "Infrastructure",
            "metadata": {"name": "cluster"},
            "spec": {"platformSpec": {"type": "BareMetal"}},
        }
        platform = {"platform": "BareMetal", "platformStatus": {"type": "BareMetal"}}
        await self._make(infrastructure, {"infrastructureName": "simulated", **platform})
        scheduler = {"mastersSchedulable": False}
        await self._make({**infrastructure, "kind": "Scheduler", "spec": scheduler}, {})

    async def _make(self, obj: Object, status: Object) -> None:
        if obj["kind"] in self.shape.without:
            return
        await self.client.apply(obj, manager=managers.INSTALL.name, force=True)
        if status:
            await self.client.merge_patch(ref_of(obj), {"status": status}, subresource="status")


async def in_turns(jobs: Iterable[Awaitable[None]]) -> None:
    """A few at once: of thousands, the last would wait for a connection until it times out."""
    gate = asyncio.Semaphore(AT_ONCE)

    async def run(job: Awaitable[None]) -> None:
        async with gate:
            await job

    await asyncio.gather(*map(run, jobs))


async def clear(client: Client) -> None:
    """Delete all objects of a platform. Namespaces, Machines and the objects of OLM are kept."""
    kept = (*olm.STUBS, *machines.STUBS)
    kinds = (*(stub.kind for stub in STUBS if stub not in kept), NODE)
    await asyncio.gather(*(_remove_all(client, kind) for kind in kinds))


async def _remove_all(client: Client, kind: Kind) -> None:
    with suppress(NotServed):
        await in_turns(_remove(client, Ref(kind, key_of(one))) for one in await client.list(kind))


async def _remove(client: Client, ref: Ref) -> None:
    with suppress(NotFound):
        await client.delete(ref)


def _healthy() -> Object:
    """The status of a healthy HyperConverged."""
    statuses = {"Available": "True", "Progressing": "False", "Degraded": "False", "ReconcileComplete": "True"}
    now = rfc3339(SystemClock().utc())
    conditions = [
        {"type": name, "status": status, "reason": "Simulated", "message": "", "lastTransitionTime": now}
        for name, status in statuses.items()
    ]
    versions = [{"name": "operator", "version": "1.18.0"}]
    return {"conditions": conditions, "versions": versions, "systemHealthStatus": "healthy"}
