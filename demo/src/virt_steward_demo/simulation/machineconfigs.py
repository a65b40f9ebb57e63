"""Simulates the Machine Config Operator: renders one configuration per pool and rolls it out node by node."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import structlog

from virt_steward.kube.errors import AlreadyExists, KubeError, NotFound
from virt_steward.objects.canonical import same
from virt_steward.objects.corekinds import NODE
from virt_steward.objects.identity import Key, Ref
from virt_steward.objects.wallclock import rfc3339
from virt_steward.runtime.informer import Informer
from virt_steward_demo.simulation.control_loop import RETRY, in_order, reconcile_on_change, source_of
from virt_steward_demo.simulation.faults import pace_of, update_error
from virt_steward_demo.simulation.kinds.machineconfiguration import KUBELET_CONFIG, MACHINE_CONFIG, MACHINE_CONFIG_POOL
from virt_steward_demo.simulation.nodedaemon import NodeDaemon, drain_nothing
from virt_steward_demo.simulation.pools import CURRENT, DESIRED, STATE, PoolMachine, next_machines, pool_of, status_of
from virt_steward_demo.simulation.rendering import GENERATED_FROM, Unrenderable, kubelet_machine_configs, render

if TYPE_CHECKING:
    from virt_steward.kube.client import Client
    from virt_steward_demo.simulation.control_loop import SimulatedObject
    from virt_steward_demo.simulation.nodedaemon import DrainNode

log = structlog.get_logger()

MANAGER = "machine-config-controller"


class MachineConfigController:
    """Reconciles all pools on every change. `pace` is how long the update of one node takes, in seconds.

    `render_delay` is how many seconds MachineConfigs must stay the same before a configuration is rendered from them.
    """

    def __init__(
        self, client: Client, pace: float, drained: DrainNode = drain_nothing, render_delay: float = 0.0
    ) -> None:
        self._client = client
        self._pace = pace
        self._render_delay = render_delay
        self._renderings: dict[str, tuple[str, float]] = {}
        """The last rendering of each pool, and since when it is the same."""
        self._daemon = NodeDaemon(client, drained)
        self._configs, self._pools, self._kubelet_configs, self._nodes = self._informers = [
            Informer(client, source_of(kind)) for kind in (MACHINE_CONFIG, MACHINE_CONFIG_POOL, KUBELET_CONFIG, NODE)
        ]
        self._changed = asyncio.Event()
        self._updating: dict[str, asyncio.Task[None]] = {}
        self._finished: dict[str, str] = {}
        """The last configuration of each node, since the watch may deliver it later."""

    async def run(self) -> None:
        """Ends by cancellation only."""
        await reconcile_on_change(self._informers, self._changed, self._reconcile, "pools")

    async def _reconcile(self, group: asyncio.TaskGroup) -> None:
        pools = in_order(self._pools.store)
        await self._follow_kubelet_configs(pools)
        members: dict[str | None, list[SimulatedObject]] = {}
        for node in in_order(self._nodes.store):
            members.setdefault(pool_of(node, pools), []).append(node)
        for pool in pools:
            try:
                await self._reconcile_pool(pool, members.get(pool.name, []), group)
            except KubeError:
                raise
            except Exception:  # one bad pool must not stop the others
                log.exception("pool not reconciled", pool=pool.name)

    async def _reconcile_pool(
        self, pool: SimulatedObject, nodes: list[SimulatedObject], group: asyncio.TaskGroup
    ) -> None:
        unrenderable = ""
        try:
            await self._render(pool)
        except Unrenderable as error:
            unrenderable = str(error)
        if pool.spec.get("configuration"):
            await self._roll(pool, nodes, group)
            status = status_of(pool, [PoolMachine.of(node) for node in nodes], unrenderable, _now())
            if not same(status, pool.status):
                await self._set_status(Ref(MACHINE_CONFIG_POOL, pool.key), status)

    async def _follow_kubelet_configs(self, pools: list[SimulatedObject]) -> None:
        wanted = {one["metadata"]["name"]: one for one in kubelet_machine_configs(pools, self._kubelet_configs.store)}
        for name, manifest in wanted.items():
            known = self._configs.store.get(Key("", name))
            if known is None or not same(known.spec, manifest["spec"]):
                await self._client.apply(manifest, manager=MANAGER, force=True)
        for one in in_order(self._configs.store):
            if GENERATED_FROM in one.metadata.annotations and one.name not in wanted:
                with suppress(NotFound):
                    await self._client.delete(Ref(MACHINE_CONFIG, one.key))
        for kubelet_config in in_order(self._kubelet_configs.store):
            await self._accept(kubelet_config)

    async def _accept(self, kubelet_config: SimulatedObject) -> None:
        generation = kubelet_config.metadata.generation
        if kubelet_config.status.get("observedGeneration") == generation:
            return
        condition = {"type": "Success", "status": "True", "message": "Success", "lastTransitionTime": _now()}
        status = {"observedGeneration": generation, "conditions": [condition]}
        await self._set_status(Ref(KUBELET_CONFIG, kubelet_config.key), status)

    async def _render(self, pool: SimulatedObject) -> None:
        rendered = render(pool, self._configs.store)
        if rendered is None:
            return
        if not self._is_stable(pool, rendered.name):
            return
        if self._configs.store.get(Key("", rendered.name)) is None:
            with suppress(AlreadyExists):
                await self._client.create(rendered.manifest(pool))
        configuration = rendered.configuration()
        if pool.spec.get("configuration") != configuration:
            patch = {"spec": {"configuration": configuration}}
            await self._client.merge_patch(Ref(MACHINE_CONFIG_POOL, pool.key), patch, manager=MANAGER)

    def _is_stable(self, pool: SimulatedObject, name: str) -> bool:
        loop = asyncio.get_running_loop()
        if self._renderings.get(pool.name, ("", 0.0))[0] != name:
            self._renderings[pool.name] = name, loop.time()
            if self._render_delay:
                loop.call_later(self._render_delay, self._changed.set)
        return loop.time() - self._renderings[pool.name][1] >= self._render_delay

    async def _roll(self, pool: SimulatedObject, nodes: list[SimulatedObject], group: asyncio.TaskGroup) -> None:
        target = pool.spec["configuration"]["name"]
        machines = [PoolMachine.of(node) for node in nodes]
        for machine in machines:
            if not machine.current:  # a new node boots with the configuration of its pool
                await self._annotate(machine.name, {CURRENT: target, DESIRED: target, STATE: "Done"})
        for machine in next_machines(pool, target, machines, self._updating.keys() & {node.name for node in nodes}):
            await self._annotate(machine.name, {DESIRED: target})
        for node, machine in zip(nodes, machines, strict=True):
            if self._needs_update(node, machine):
                update = self._update(node, machine.desired, pace_of(pool, self._pace))
                self._updating[machine.name] = group.create_task(update)

    def _needs_update(self, node: SimulatedObject, machine: PoolMachine) -> bool:
        if machine.current == machine.desired or machine.name in self._updating:
            return False
        if self._finished.get(machine.name) == machine.desired:
            return False
        return not (machine.is_degraded and machine.reason == update_error(node))

    async def _update(self, node: SimulatedObject, target: str, pace: float) -> None:
        try:
            if why := update_error(node):
                await self._daemon.fail(node.name, why)
            else:
                await self._daemon.update(node.name, target, pace=pace)
                self._finished[node.name] = target
        except KubeError as error:  # the next reconcile starts it again
            log.warning("node not updated", node=node.name, error=str(error), retry_in=RETRY)
            await asyncio.sleep(RETRY)
        finally:
            del self._updating[node.name]
            self._changed.set()

    async def _annotate(self, node: str, annotations: dict[str, str]) -> None:
        patch = {"metadata": {"annotations": annotations}}
        await self._client.merge_patch(Ref(NODE, Key("", node)), patch, manager=MANAGER)

    async def _set_status(self, ref: Ref, status: dict[str, object]) -> None:
        await self._client.merge_patch(ref, {"status": status}, subresource="status", manager=MANAGER)


def _now() -> str:
    return rfc3339(datetime.now(UTC))
