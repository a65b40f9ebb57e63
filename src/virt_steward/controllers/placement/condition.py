"""The condition `Placed` of a machine: said where something is wrong, or was."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from virt_steward.controllers.placement.observation import MachineCondition
from virt_steward.controllers.placement.verdicts import Blocked
from virt_steward.objects.wallclock import rfc3339

if TYPE_CHECKING:
    from datetime import datetime

    from virt_steward.controllers.placement.observation import Machine
    from virt_steward.controllers.placement.verdicts import Chosen

TYPE = "Placed"


def said_of(machine: Machine) -> MachineCondition | None:
    return next((one for one in machine.conditions if one.type == TYPE), None)


def to_say_of(machine: Machine, outcome: Chosen | Blocked, now: datetime) -> MachineCondition | None:
    """The condition to write; None if it stands already, or all is well and nobody has said otherwise."""
    before = said_of(machine)
    if isinstance(outcome, Blocked):
        new = MachineCondition(TYPE, "False", outcome.reason, outcome.because)
    elif before and before.status != "True":
        new = MachineCondition(TYPE, "True", TYPE, f"cluster {outcome.cluster}: {outcome.because}")
    else:
        return None
    if before and (before.status, before.reason, before.message) == (new.status, new.reason, new.message):
        return None
    since = before.last_transition_time if before and before.status == new.status else ""
    return msgspec.structs.replace(new, last_transition_time=since or rfc3339(now))


def patch_with(machine: Machine, condition: MachineCondition) -> list[dict[str, Any]]:
    """The JSON patch that sets our element of the list and nothing else, on just the version that was seen."""
    element = msgspec.to_builtins(condition)
    test = {"op": "test", "path": "/metadata/resourceVersion", "value": machine.metadata.resource_version}
    if machine.status is None:
        return [test, {"op": "add", "path": "/status", "value": {"conditions": [element]}}]
    if machine.status.conditions is None:
        return [test, {"op": "add", "path": "/status/conditions", "value": [element]}]
    types = [one.type for one in machine.conditions]
    if TYPE in types:
        return [test, {"op": "replace", "path": f"/status/conditions/{types.index(TYPE)}", "value": element}]
    return [test, {"op": "add", "path": "/status/conditions/-", "value": element}]
