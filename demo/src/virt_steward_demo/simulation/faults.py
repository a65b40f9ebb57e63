"""Faults on request: annotations that make a pool slow or a node fail, and functions that set them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from virt_steward.objects.corekinds import NODE
from virt_steward.objects.identity import Key, Ref
from virt_steward_demo.simulation.kinds.machineconfiguration import MACHINE_CONFIG_POOL

if TYPE_CHECKING:
    from virt_steward.kube.client import Client
    from virt_steward_demo.simulation.seen import SimulatedObject

FAILS = "simulation.virt-steward.example/fails"
"""On a node: why it cannot take a new configuration."""
PACE = "simulation.virt-steward.example/seconds-per-node"
"""On a pool: how long one of its nodes is away."""


def why_it_fails(node: SimulatedObject) -> str:
    return node.metadata.annotations.get(FAILS, "")


def pace_of(pool: SimulatedObject, usual: float) -> float:
    return float(pool.metadata.annotations.get(PACE, usual))


async def break_node(client: Client, name: str, why: str = "the new kernel does not boot") -> None:
    """Let the node's next update fail, and all further ones until it is repaired."""
    await client.merge_patch(Ref(NODE, Key("", name)), {"metadata": {"annotations": {FAILS: why}}})


async def repair_node(client: Client, name: str) -> None:
    await client.merge_patch(Ref(NODE, Key("", name)), {"metadata": {"annotations": {FAILS: None}}})


async def set_pace(client: Client, pool: str, seconds: float) -> None:
    """Make the nodes of one pool take that long."""
    await client.merge_patch(_pool(pool), {"metadata": {"annotations": {PACE: str(seconds)}}})


async def pause_pool(client: Client, name: str) -> None:
    await client.merge_patch(_pool(name), {"spec": {"paused": True}})


async def resume_pool(client: Client, name: str) -> None:
    await client.merge_patch(_pool(name), {"spec": {"paused": False}})


def _pool(name: str) -> Ref:
    return Ref(MACHINE_CONFIG_POOL, Key("", name))
