"""What a MachineConfig disrupts: which nodes reboot, in how many rounds, and which VMs migrate or stop."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec

from virt_steward.apis.virtplatformconfig import NAMES_SHOWN, BlastRadius, PoolRadius
from virt_steward.kube.client import EVERYTHING
from virt_steward.kube.errors import NotServed
from virt_steward.objects.corekinds import NODE
from virt_steward.objects.identity import Kind
from virt_steward.objects.meta import Meta
from virt_steward.platform.nodes import node_facts
from virt_steward.platform.pools import PoolCondition, nodes_of, pools_selecting

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from virt_steward.kube.client import Reader
    from virt_steward.platform.nodes import NodeFacts
    from virt_steward.platform.pools import Pool

VIRTUAL_MACHINE_INSTANCE = Kind("kubevirt.io", "VirtualMachineInstance", "virtualmachineinstances")


class VmiStatus(msgspec.Struct, frozen=True, rename="camel"):
    node_name: str = ""
    conditions: tuple[PoolCondition, ...] = ()


class VmiFacts(msgspec.Struct, frozen=True):
    """A running virtual machine: its node, and whether it can migrate."""

    metadata: Meta
    status: VmiStatus = VmiStatus()

    @property
    def is_immovable(self) -> bool:
        return any(one.type == "LiveMigratable" and one.status == "False" for one in self.status.conditions)


@dataclass(frozen=True, slots=True)
class Census:
    """The nodes and virtual machines of the cluster."""

    nodes: tuple[NodeFacts, ...] = ()
    machines: tuple[VmiFacts, ...] | None = ()
    """None: they may not be listed."""


async def take_census(reader: Reader) -> Census:
    """List them once; they are needed only when a plan is drafted, so they are not watched."""
    return Census(*await asyncio.gather(_nodes(reader), running_vms(reader)))


async def _nodes(reader: Reader) -> tuple[NodeFacts, ...]:
    pages = reader.pages(NODE, EVERYTHING, may_lag=True)
    return tuple([node_facts(bytes(item)) async for page in pages for item in page.items])


async def running_vms(reader: Reader) -> tuple[VmiFacts, ...]:
    try:
        return tuple(await reader.list(VIRTUAL_MACHINE_INSTANCE, EVERYTHING, VmiFacts, may_lag=True))
    except NotServed:
        return ()


def blast_radius(labels: Mapping[str, str], pools: Sequence[Pool], census: Census) -> BlastRadius:
    """Which nodes reboot and which VMs migrate or stop when a MachineConfig with these labels is written."""
    return radius_of(pools_selecting(labels, pools), pools, census)


def radius_of(selecting: Iterable[Pool], pools: Sequence[Pool], census: Census) -> BlastRadius:
    """Which nodes reboot and which VMs migrate or stop when the nodes of these pools reboot."""
    affected = [(pool, nodes_of(pool, pools, census.nodes)) for pool in selecting]
    nodes = sorted(name for _, names in affected for name in names)
    on_nodes = set(nodes)
    guests = [one for one in census.machines or () if one.status.node_name in on_nodes]
    immovable = sorted(str(one.metadata.key) for one in guests if one.is_immovable)
    found = BlastRadius(
        pools=tuple(
            PoolRadius(pool.name, len(names), pool.rounds(len(names)), pool.spec.paused) for pool, names in affected
        )[:NAMES_SHOWN],
        nodes=tuple(nodes)[:NAMES_SHOWN],
        node_count=len(nodes),
        virtual_machines=len(guests) - len(immovable),
        immovable=tuple(immovable)[:NAMES_SHOWN],
        immovable_count=len(immovable),
    )
    text = _sentence(found) if census.machines is not None else f"{reboots(found)}; which VMs must migrate is unknown"
    return msgspec.structs.replace(found, message=text)


def reboots(found: BlastRadius) -> str:
    """Which nodes reboot, in words."""
    pools = ", ".join(
        f"{one.name}: {one.nodes} in {one.rounds} rounds{' once it is resumed' if one.paused else ''}"
        for one in found.pools
    )
    return f"{found.node_count} nodes reboot ({pools or 'no pool'})"


def _sentence(found: BlastRadius) -> str:
    text = f"{reboots(found)}; {found.virtual_machines} VMs must migrate"
    if found.immovable_count:
        named = ", ".join(found.immovable[:5]) + (", …" if found.immovable_count > 5 else "")
        stops = "stops" if found.immovable_count == 1 else "stop"
        text += f"; {found.immovable_count} cannot migrate and {stops} instead: {named}"
    return text[:1024]
