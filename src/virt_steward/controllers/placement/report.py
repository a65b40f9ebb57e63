"""What is reported: a Machine's condition `Placed` and the reason for its cluster, a KubevirtConfig's status. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from virt_steward.apis.kubevirtconfig import ReportedCapacity
from virt_steward.apis.meta import Condition
from virt_steward.controllers.placement.candidates import quoted
from virt_steward.controllers.placement.fleet import ClusterReached, ClusterRejected
from virt_steward.controllers.placement.observation import MachineCondition, Unreachable, UnusableCluster
from virt_steward.controllers.placement.observe import KubevirtConfigReport
from virt_steward.controllers.placement.verdicts import Blocked, PlacementReason
from virt_steward.objects.wallclock import rfc3339

if TYPE_CHECKING:
    from datetime import datetime

    from virt_steward.apis.meta import ConditionStatus
    from virt_steward.controllers.placement.observation import CapacityFree, Machine
    from virt_steward.controllers.placement.observe import KubevirtConfig
    from virt_steward.controllers.placement.verdicts import Chosen

Answer = ClusterReached | Unreachable | UnusableCluster

PLACED = "Placed"
"""On a Machine. False: it has no cluster; the message says what to do. Written only once placing it has failed."""
REACHABLE = "Reachable"
"""On a KubevirtConfig. True: its API server answers."""
CREDENTIALS_VALID = "CredentialsValid"
"""On a KubevirtConfig. True: its API server accepts the kubeconfig of the Secret."""
LONGEST_MESSAGE = 1024
STEP = 5
"""Percent: a smaller change of the free capacity is not reported."""
NOT_CHECKED = "Not checked: no valid credentials"


def placed_condition(machine: Machine) -> MachineCondition | None:
    return next((one for one in machine.conditions if one.type == PLACED), None)


def new_condition(machine: Machine, outcome: Chosen | Blocked, now: datetime) -> MachineCondition | None:
    """The condition to write. None: it is up to date, or the Machine is placed and never had one."""
    before = placed_condition(machine)
    if isinstance(outcome, Blocked):
        new = MachineCondition(PLACED, "False", outcome.reason, outcome.message)
    elif before and before.status != "True":
        new = MachineCondition(PLACED, "True", PLACED, f"cluster {outcome.cluster}: {outcome.reason}")
    else:
        return None
    if before and (before.status, before.reason, before.message) == (new.status, new.reason, new.message):
        return None
    since = before.last_transition_time if before and before.status == new.status else ""
    return msgspec.structs.replace(new, last_transition_time=since or rfc3339(now))


def condition_patch(machine: Machine, condition: MachineCondition) -> list[dict[str, Any]]:
    """The JSON patch that sets our element of the list and nothing else, on just the version that was observed."""
    element = msgspec.to_builtins(condition)
    test = {"op": "test", "path": "/metadata/resourceVersion", "value": machine.metadata.resource_version}
    if machine.status is None:
        return [test, {"op": "add", "path": "/status", "value": {"conditions": [element]}}]
    if machine.status.conditions is None:
        return [test, {"op": "add", "path": "/status/conditions", "value": [element]}]
    types = [one.type for one in machine.conditions]
    if PLACED in types:
        return [test, {"op": "replace", "path": f"/status/conditions/{types.index(PLACED)}", "value": element}]
    return [test, {"op": "add", "path": "/status/conditions/-", "value": element}]


def reason_annotation(chosen: Chosen) -> str:
    """The value of the annotation that keeps the reason, since events expire.

    It names the cluster, as in `east: it is the only cluster`, so that it does not seem to explain another cluster that
    somebody sets later.
    """
    return f"{chosen.cluster}: {quoted(chosen.reason)}"


def recorded_reason(machine: Machine) -> str:
    """Why the placement chose the recorded cluster; empty if somebody else chose it."""
    cluster, separator, reason = machine.request.because.partition(": ")
    ours = machine.metadata.managed_fields  # a copy of a Machine has the annotation, but not from us
    return quoted(reason) if ours and separator and cluster == machine.request.config else ""


def reported_capacity(
    before: ReportedCapacity | None, free: CapacityFree | None, now: datetime
) -> ReportedCapacity | None:
    """What the status says of the free capacity: in steps, so that it is written rarely.

    Without a measurement it stays as it was, with the time of it.
    """
    if free is None:
        return before
    memory, cpu = _in_steps(free.memory), None if free.cpu is None else _in_steps(free.cpu)
    if before and (before.memory, before.cpu) == (memory, cpu):
        return before
    return ReportedCapacity(memory=memory, cpu=cpu, at=now.replace(microsecond=0))


def _in_steps(part: float) -> int:
    return min(max(round(part * 100 / STEP) * STEP, 0), 100)


def config_status(
    config: KubevirtConfig, answer: Answer, machines: int, free: CapacityFree | None, now: datetime
) -> KubevirtConfigReport:
    """What is known of a silent cluster stays. Without a usable kubeconfig nobody can tell which cluster it was of."""
    conditions = (_reachable(answer), _credentials(answer))
    known = KubevirtConfigReport() if isinstance(answer, UnusableCluster) else config.status
    return KubevirtConfigReport(
        phase=_phase(answer),
        version=answer.version if isinstance(answer, ClusterReached) else known.version,
        machines=machines,
        free=reported_capacity(known.free, free, now),
        observed_generation=config.metadata.generation,
        conditions=tuple(
            Condition(
                type=type_,
                status=status,
                reason=reason,
                message=message[:LONGEST_MESSAGE],
                last_transition_time=now,
                observed_generation=config.metadata.generation,
            ).carrying_on(config.status.conditions)
            for type_, (status, reason, message) in zip((REACHABLE, CREDENTIALS_VALID), conditions, strict=True)
        ),
    )


def _phase(answer: Answer) -> str:
    match answer:
        case ClusterReached():
            return "Ready"
        case UnusableCluster() | ClusterRejected():
            return "CredentialsInvalid"
        case Unreachable(reason=PlacementReason.MISBEHAVES):
            return "Misbehaving"
        case _:
            return "Unreachable"


def _reachable(answer: Answer) -> tuple[ConditionStatus, str, str]:
    match answer:
        case ClusterReached() | ClusterRejected():
            return "True", "Answers", ""
        case UnusableCluster():
            return "Unknown", "NotAsked", NOT_CHECKED
        case Unreachable(message, PlacementReason.REFUSED):
            return "False", "Refuses", message
        case Unreachable(message, PlacementReason.MISBEHAVES):
            return "False", "Misbehaves", message
        case _:
            return "False", "NoAnswer", answer.message


def _credentials(answer: Answer) -> tuple[ConditionStatus, str, str]:
    match answer:
        case ClusterReached():
            return "True", "Accepted", ""
        case UnusableCluster(reason, message):
            return "False", str(reason), message
        case ClusterRejected(message, reason):
            return "False", str(reason), message
        case Unreachable(reason=PlacementReason.REFUSED):
            return "Unknown", "Refuses", "Not checked: the cluster refuses the request"
        case Unreachable(reason=PlacementReason.MISBEHAVES):
            return "Unknown", "Misbehaves", "Not checked: the cluster sends invalid answers"
        case _:
            return "Unknown", "NoAnswer", "Not checked: the cluster is unreachable"
