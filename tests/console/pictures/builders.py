"""Nodes and pools for the tables of pictures."""

from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

from virt_steward.console.rollout_log import RolloutLog
from virt_steward.objects.identity import Key
from virt_steward.platform.machineconfigs import LabelledMeta
from virt_steward.platform.nodes import NodeFacts, NodeRolloutState
from virt_steward.platform.pools import Pool

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
OLD, NEW = "rendered-old", "rendered-new"


def role(name: str) -> dict[str, str]:
    return {f"node-role.kubernetes.io/{name}": ""}


def at(seconds: float) -> datetime:
    return NOON + timedelta(seconds=seconds)


def a_node(
    name: str = "one",
    current: str = NEW,
    desired: str | None = None,
    state: str = "Done",
    *,
    pool: str = "worker",
    **changes: Any,
) -> NodeFacts:
    rollout = NodeRolloutState(current, desired or current, state)
    return NodeFacts(LabelledMeta(name, labels=role(pool)), rollout=rollout, **changes)


def a_pool(name: str = "worker", *, nodes: int = 1, updated: int = 1, **conditions: datetime) -> Pool:
    """Conditions are true since then."""
    true = [
        {"type": type_, "status": "True", "lastTransitionTime": since.isoformat()}
        for type_, since in conditions.items()
    ]
    counts = {"machineCount": nodes, "updatedMachineCount": updated, "readyMachineCount": updated}
    return msgspec.convert(
        {
            "metadata": {"name": name},
            "spec": {"nodeSelector": {"matchLabels": role(name)}, "configuration": {"name": NEW}},
            "status": {"configuration": {"name": NEW if nodes == updated else OLD}, "conditions": true, **counts},
        },
        Pool,
    )


def a_log(*changes: tuple[float, NodeFacts]) -> RolloutLog:
    """The log of a console that saw these nodes so many seconds after noon."""
    clock = {"now": NOON}
    log = RolloutLog(lambda: clock["now"])
    for seconds, node in changes:
        clock["now"] = at(seconds)
        log.handle(Key("", node.metadata.name), None, node)
    return log
