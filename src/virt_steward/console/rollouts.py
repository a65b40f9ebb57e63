"""The progress of a rollout: each pool with its nodes by name, and the state of each node."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from virt_steward.plans.blast_radius import Census, blast_radius, reboots
from virt_steward.platform.pools import nodes_of, pools_selecting

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from virt_steward.apis.virtplatformconfig import PlanItem
    from virt_steward.console.pictures.rollout_timeline import RolloutTimeline
    from virt_steward.platform.nodes import NodeFacts
    from virt_steward.platform.pools import Pool

NodeProgress = Literal["done", "now", "bad", "waiting"]
NODES_SHOWN = 200


@dataclass(frozen=True, slots=True)
class NodeState:
    """One node of a pool."""

    name: str
    progress: NodeProgress
    message: str


@dataclass(frozen=True, slots=True)
class Rollout:
    """The progress of one pool."""

    pool: str
    updated: int
    total: int
    message: str
    trouble: str
    nodes: tuple[NodeState, ...]
    """Empty where the viewer may not read nodes."""
    timeline: RolloutTimeline | None = None
    """None where nothing is known of the past."""


def rollouts(
    item: PlanItem,
    pools: Sequence[Pool],
    nodes: Sequence[NodeFacts],
    timeline_of: Callable[[Pool], RolloutTimeline | None],
) -> tuple[Rollout, ...]:
    """The pools that an item rolls out to."""
    labels: Mapping[str, str] = item.desired_state.get("metadata", {}).get("labels", {})
    if item.target_ref.kind != "MachineConfig":
        return ()
    selecting = pools_selecting(labels, pools)
    return tuple(replace(_rollout(pool, pools, nodes), timeline=timeline_of(pool)) for pool in selecting)


def recounted(item: PlanItem, pools: Sequence[Pool], nodes: Sequence[NodeFacts]) -> str:
    """What an item would reboot now, if that is no longer what its plan says; empty if it is, or is not known."""
    planned = item.blast_radius
    if planned is None or not pools or not nodes:
        return ""
    labels: Mapping[str, str] = item.desired_state.get("metadata", {}).get("labels", {})
    now = blast_radius(labels, pools, Census(tuple(nodes)))
    if (now.pools, now.nodes, now.node_count) == (planned.pools, planned.nodes, planned.node_count):
        return ""
    return (
        f"Nodes or pools have changed since the plan was drafted: now {reboots(now)}."
        " The numbers of VMs are those of the plan."
    )


def _rollout(pool: Pool, pools: Sequence[Pool], nodes: Sequence[NodeFacts]) -> Rollout:
    status, target = pool.status, pool.spec.configuration.name
    names = set(nodes_of(pool, pools, nodes))
    states = tuple(node_progress(node, target) for node in nodes if node.metadata.name in names)
    updating = [one.name for one in states if one.progress == "now"]
    message = f"{status.updated_machine_count} of {status.machine_count} nodes updated"
    if updating:
        message += f", {', '.join(updating[:3])} updating"
    trouble = "paused; no node updates until it is resumed" if pool.spec.paused else pool.degradation
    shown = tuple(sorted(states, key=lambda one: one.name))[:NODES_SHOWN]
    return Rollout(pool.name, status.updated_machine_count, status.machine_count, message, trouble, shown)


def node_progress(node: NodeFacts, target: str) -> NodeState:
    """How far a node is on the way to this configuration of its pool."""
    state, name = node.rollout, node.metadata.name
    if state.state == "Degraded":
        return NodeState(name, "bad", state.reason or "degraded")
    if state.current == target and state.state == "Done":
        return NodeState(name, "done", "updated")
    if state.state == "Working" or (state.desired == target and state.current != target):
        return NodeState(name, "now", "updating")
    return NodeState(name, "waiting", "not updated yet")
