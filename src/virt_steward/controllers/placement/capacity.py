"""The free memory and CPU of clusters, where it can be read; measured when a strategy needs it."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Protocol, TypeVar

import msgspec

from virt_steward.controllers.placement.observation import CapacityFree
from virt_steward.kube.answers import PORTION, decoded_items
from virt_steward.kube.client import EVERYTHING
from virt_steward.kube.errors import InvalidAnswer, Refused, Unavailable
from virt_steward.objects.corekinds import NODE
from virt_steward.objects.identity import Kind
from virt_steward.objects.quantities import BadQuantity, parse_quantity

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from virt_steward.apis.kubevirtconfig import KubevirtConfigSpec
    from virt_steward.controllers.placement.assignments import Assignments
    from virt_steward.controllers.placement.observation import Unreachable
    from virt_steward.controllers.placement.observe import KubevirtConfig
    from virt_steward.kube.client import Reader
    from virt_steward.runtime.clock import Clock
    from virt_steward.runtime.store import Store

T = TypeVar("T")

NODE_METRICS = Kind("metrics.k8s.io", "NodeMetrics", "nodes")
PAGE = 50
"""Nodes per page: their objects are large."""
SMALLEST_SHARE = 0.01
"""The part of a cluster that a Machine takes at least, until the next measurement."""


@dataclass(frozen=True, slots=True)
class FreeCapacity:
    """A measurement, and the number of Machines at that time."""

    free: CapacityFree
    machines: int

    def with_machines(self, machines: int) -> CapacityFree:
        """Estimate what is free now: each Machine since then takes the average of those before it.

        Example: 10 Machines used 50 % of the memory, so each counts 5 %. With 12 Machines, 40 % is then free.
        """
        came = machines - self.machines
        cpu = None if self.free.cpu is None else self._left_of(self.free.cpu, came)
        return CapacityFree(self._left_of(self.free.memory, came), cpu)

    def _left_of(self, part: float, came: int) -> float:
        measured = (1 - part) / self.machines if self.machines else 0.0
        return part - came * max(measured, SMALLEST_SHARE)


class CapacityClusters(Protocol):
    """The clusters that are asked."""

    def edition(self, config: str) -> int: ...

    async def ask(self, config: str, question: Callable[[Reader], Awaitable[T]]) -> T | Unreachable: ...


@dataclass(frozen=True, slots=True)
class _Measured:
    edition: int
    at: float
    capacity: FreeCapacity | None


class CapacityCache:
    """The capacities of all clusters, measured together, and remembered for some seconds: lists of nodes are long."""

    def __init__(
        self,
        clusters: CapacityClusters,
        configs: Store[KubevirtConfig],
        assignments: Assignments,
        clock: Clock,
        *,
        lasting: float,
    ) -> None:
        self._clusters = clusters
        self._configs = configs
        self._assignments = assignments
        self._clock = clock
        self._lasting = lasting
        self._measured: dict[str, _Measured] = {}
        self._measuring = asyncio.Lock()

    def of(self, cluster: str) -> FreeCapacity | None:
        """The last measurement; None if there is none."""
        known = self._measured.get(cluster)
        return known.capacity if known and known.edition == self._clusters.edition(cluster) else None

    async def refresh(self) -> None:
        """Measure again what is too old. Callers that come meanwhile wait for the same measurement."""
        async with self._measuring:
            specs = {config.metadata.name: config.spec for config in self._configs}
            self._measured = {name: known for name, known in self._measured.items() if name in specs}
            await asyncio.gather(*(self._measure(name, spec) for name, spec in specs.items() if self._is_old(name)))

    def _is_old(self, cluster: str) -> bool:
        known = self._measured.get(cluster)
        if known is None or known.edition != self._clusters.edition(cluster):
            return True
        return self._clock.now() - known.at >= self._lasting

    async def _measure(self, cluster: str, spec: KubevirtConfigSpec) -> None:
        edition, at = self._clusters.edition(cluster), self._clock.now()
        machines = self._assignments.machines_on(cluster)
        free = await self._clusters.ask(cluster, capacity_request(spec))
        capacity = FreeCapacity(free, machines) if isinstance(free, CapacityFree) else None
        self._measured[cluster] = _Measured(edition, at, capacity)


class _Amounts(msgspec.Struct):
    memory: str = "0"
    cpu: str = "0"


class _NodeStatus(msgspec.Struct):
    allocatable: _Amounts = msgspec.field(default_factory=_Amounts)


class _CapacityNode(msgspec.Struct):
    status: _NodeStatus = msgspec.field(default_factory=_NodeStatus)


class _NodeMetrics(msgspec.Struct):
    usage: _Amounts = msgspec.field(default_factory=_Amounts)


@dataclass(frozen=True, slots=True)
class _Sum:
    memory: float = 0.0
    cpu: float = 0.0


def capacity_request(spec: KubevirtConfigSpec) -> Callable[[Reader], Awaitable[CapacityFree | None]]:
    """The request for a cluster's free capacity; its answer is None where nodes or their metrics cannot be read.

    The total is spec.capacity of its KubevirtConfig, else the allocatable resources of its nodes.
    """
    capacity = spec.capacity
    memory, cpu = (capacity.memory, capacity.cpu) if capacity else (None, None)
    return partial(_free, memory=memory, cpu=cpu)


async def _free(reader: Reader, memory: str | None, cpu: str | None) -> CapacityFree | None:
    try:
        nodes = _Sum() if memory and cpu else await _allocatable(reader)
        total = _Sum(parse_quantity(memory) if memory else nodes.memory, parse_quantity(cpu) if cpu else nodes.cpu)
        used = await _used(reader)
    except (Refused, BadQuantity):
        return None
    if used is None or not total.memory:
        return None
    return CapacityFree(_free_part(used.memory, total.memory), _free_part(used.cpu, total.cpu) if total.cpu else None)


def _free_part(used: float, total: float) -> float:
    return max(1 - used / total, 0.0)


async def _allocatable(reader: Reader) -> _Sum:
    pages = reader.pages(NODE, EVERYTHING, page=PAGE)
    nodes = [one async for page in pages for one in await decoded_items(page.items, _CapacityNode, "list Node")]
    return await _sum([one.status.allocatable for one in nodes])


async def _used(reader: Reader) -> _Sum | None:
    try:
        measured = await reader.list(NODE_METRICS, EVERYTHING, _NodeMetrics)
    except InvalidAnswer:
        raise
    except Unavailable:  # the metrics API is down, not the cluster
        return None
    return await _sum([one.usage for one in measured]) if measured else None


async def _sum(amounts: Sequence[_Amounts]) -> _Sum:
    memory = cpu = 0.0
    for number, one in enumerate(amounts, start=1):
        if number % PORTION == 0:
            await asyncio.sleep(0)  # a cluster may claim to have thousands of nodes
        memory += parse_quantity(one.memory)
        cpu += parse_quantity(one.cpu)
    return _Sum(memory, cpu)
