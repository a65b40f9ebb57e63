"""How far a pool has got, as the nodes that make the progress: by name, each with what it does now."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from virt_steward.plans.blast import Census, radius, reboots
from virt_steward.plans.pools import concerned, members

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from virt_steward.apis.virtplatformconfig import PlanItem
    from virt_steward.console.sources import RollingNode
    from virt_steward.plans.pools import RollingPool

Doing = Literal["done", "now", "bad", "waiting"]
NODES_SHOWN = 200


@dataclass(frozen=True, slots=True)
class NodeState:
    name: str
    doing: Doing
    says: str


@dataclass(frozen=True, slots=True)
class Rollout:
    """One pool."""

    pool: str
    done: int
    of: int
    says: str
    trouble: str
    nodes: tuple[NodeState, ...]
    """Empty where the viewer may not read nodes."""


def rollouts(item: PlanItem, pools: Sequence[RollingPool], nodes: Sequence[RollingNode]) -> tuple[Rollout, ...]:
    """The pools that an item concerns."""
    labels: Mapping[str, str] = item.desired_state.get("metadata", {}).get("labels", {})
    if item.target_ref.kind != "MachineConfig":
        return ()
    return tuple(_rollout(pool, pools, nodes) for pool in concerned(labels, pools))


def recounted(item: PlanItem, pools: Sequence[RollingPool], nodes: Sequence[RollingNode]) -> str:
    """What an item would reboot by now, if that is not what its plan has counted; empty if it is, or is not known."""
    planned = item.blast_radius
    if planned is None or not pools or not nodes:
        return ""
    labels: Mapping[str, str] = item.desired_state.get("metadata", {}).get("labels", {})
    now = radius(labels, pools, Census(tuple(nodes)))  # type: ignore[arg-type]  # all that it reads are name and labels
    if (now.pools, now.nodes, now.node_count) == (planned.pools, planned.nodes, planned.node_count):
        return ""
    return (
        f"Nodes or pools have changed since the plan was made: by now, {reboots(now)}. VMs were counted with the plan."
    )


def _rollout(pool: RollingPool, pools: Sequence[RollingPool], nodes: Sequence[RollingNode]) -> Rollout:
    status, target = pool.status, pool.spec.configuration.name
    names = set(members(pool, pools, nodes))  # type: ignore[arg-type]  # all that it reads are name and labels
    states = tuple(_state(node, target) for node in nodes if node.metadata.name in names)
    now = [one.name for one in states if one.doing == "now"]
    says = f"{status.updated_machine_count} of {status.machine_count} nodes updated"
    if now:
        says += f", {', '.join(now[:3])} updating"
    trouble = "paused: nothing happens until somebody resumes it" if pool.spec.paused else pool.degradation
    shown = tuple(sorted(states, key=lambda one: one.name))[:NODES_SHOWN]
    return Rollout(pool.name, status.updated_machine_count, status.machine_count, says, trouble, shown)


def _state(node: RollingNode, target: str) -> NodeState:
    marks, name = node.marks, node.metadata.name
    if marks.state == "Degraded":
        return NodeState(name, "bad", marks.reason or "degraded")
    if marks.current == target and marks.state == "Done":
        return NodeState(name, "done", "updated")
    if marks.state == "Working" or (marks.desired == target and marks.current != target):
        return NodeState(name, "now", "updating")
    return NodeState(name, "waiting", "waiting")
