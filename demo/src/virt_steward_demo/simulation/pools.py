"""The logic of a MachineConfigPool: which nodes belong to it, which are updated next, and its status. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from virt_steward_demo.simulation.conditions import RawCondition, is_true, set_condition
from virt_steward_demo.simulation.label_selectors import read_selector

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from virt_steward.kube.client import Object
    from virt_steward_demo.simulation.control_loop import SimulatedObject

MASTER, WORKER = "master", "worker"
CURRENT = "machineconfiguration.openshift.io/currentConfig"
DESIRED = "machineconfiguration.openshift.io/desiredConfig"
STATE = "machineconfiguration.openshift.io/state"
REASON = "machineconfiguration.openshift.io/reason"


@dataclass(frozen=True, slots=True)
class PoolMachine:
    """A node as its pool sees it."""

    name: str
    current: str
    desired: str
    state: str
    ready: bool
    schedulable: bool
    reason: str

    @classmethod
    def of(cls, node: SimulatedObject) -> PoolMachine:
        annotations = node.metadata.annotations
        return cls(
            name=node.name,
            current=annotations.get(CURRENT, ""),
            desired=annotations.get(DESIRED, ""),
            state=annotations.get(STATE, ""),
            ready=is_true(node.status.get("conditions", ()), "Ready"),
            schedulable=not node.spec.get("unschedulable"),
            reason=annotations.get(REASON, ""),
        )

    @property
    def is_degraded(self) -> bool:
        return self.state == "Degraded"

    @property
    def is_available(self) -> bool:
        return self.ready and self.schedulable and self.state == "Done" and self.current == self.desired

    def runs(self, target: str) -> bool:
        return self.current == self.desired == target and self.state == "Done"


def pool_of(node: SimulatedObject, pools: Sequence[SimulatedObject]) -> str | None:
    """The pool of a node: a custom pool first, then master, then worker."""
    names = [pool.name for pool in pools if _has(pool, node)]
    custom = sorted(name for name in names if name not in (MASTER, WORKER))
    return next((name for name in (*custom, MASTER, WORKER) if name in names), None)


def _has(pool: SimulatedObject, node: SimulatedObject) -> bool:
    selector = pool.spec.get("nodeSelector")
    return selector is not None and read_selector(selector).matches(node.metadata.labels)


def next_machines(
    pool: SimulatedObject, target: str, machines: Sequence[PoolMachine], busy: Iterable[str]
) -> list[PoolMachine]:
    """The nodes to update now, so that at most maxUnavailable nodes are unavailable."""
    if pool.spec.get("paused"):
        return []
    unavailable = {machine.name for machine in machines if not machine.is_available} | set(busy)
    outdated = [machine for machine in machines if machine.desired != target and machine.name not in unavailable]
    return outdated[: max(0, most_unavailable(pool, len(machines)) - len(unavailable))]


def most_unavailable(pool: SimulatedObject, count: int) -> int:
    value = pool.spec.get("maxUnavailable", 1)
    if isinstance(value, str) and value.endswith("%"):
        return max(1, count * int(value.removesuffix("%")) // 100)
    return int(value) or 1


def status_of(pool: SimulatedObject, machines: Sequence[PoolMachine], unrenderable: str, now: str) -> Object:
    """The status of a pool; its configuration is the last one that all of its nodes have reached."""
    target = pool.spec.get("configuration") or {}
    name = target.get("name", "")
    updated = [machine for machine in machines if machine.runs(name)]
    ready = [machine for machine in updated if machine.is_available]
    unavailable = [machine for machine in machines if not machine.is_available]
    degraded = [machine for machine in machines if machine.is_degraded]
    failed = "; ".join(f"Node {machine.name}: {machine.reason}" for machine in degraded)
    is_updated = len(ready) == len(machines) and not unavailable
    conditions: Sequence[Any] = pool.status.get("conditions", ())
    for condition in (
        _degraded("RenderDegraded", unrenderable),
        _degraded("NodeDegraded", failed),
        _degraded("Degraded", "; ".join(filter(None, (unrenderable, failed)))),
        *_progress(name, is_updated=is_updated, is_paused=bool(pool.spec.get("paused"))),
    ):
        conditions = set_condition(conditions, condition, now)
    return {
        "conditions": list(conditions),
        "configuration": target if is_updated else pool.status.get("configuration", {}),
        "degradedMachineCount": len(degraded),
        "machineCount": len(machines),
        "observedGeneration": pool.metadata.generation,
        "readyMachineCount": len(ready),
        "unavailableMachineCount": len(unavailable),
        "updatedMachineCount": len(updated),
    }


def _progress(target: str, *, is_updated: bool, is_paused: bool) -> tuple[RawCondition, RawCondition]:
    if is_updated:
        return RawCondition("Updated", "True", "", f"All nodes run {target}"), RawCondition("Updating", "False", "")
    if is_paused:
        message = f"The pool is paused and does not go on to {target}"
        return RawCondition("Updated", "False", ""), RawCondition("Updating", "False", "", message)
    return RawCondition("Updated", "False", ""), RawCondition("Updating", "True", "", f"Nodes are going on to {target}")


def _degraded(type_: str, why: str) -> RawCondition:
    return RawCondition(type_, "True", "Failed", why) if why else RawCondition(type_, "False", "")
