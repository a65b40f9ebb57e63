"""What is said of a machine, and how it gets into a list that belongs to others."""

from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from tests.controllers.placement.builders import a_machine
from virt_steward.controllers.placement.observation import Machine, MachineCondition, MachineStatus
from virt_steward.controllers.placement.report import condition_patch, new_condition
from virt_steward.controllers.placement.verdicts import Blocked, Chosen, PlacementReason

NOW = datetime(2031, 1, 6, 12, 0, tzinfo=UTC)
THEN = "2030-01-01T00:00:00Z"
BLOCKED = Blocked(PlacementReason.FOUND_TWICE, "vm-web exists in east and west")
CHOSEN = Chosen("east", "it is the only cluster")
READY = MachineCondition("Ready", "True", "Up", "", THEN)


def placed(
    status: str, reason: str = "Placed", message: str = "cluster east: it is the only cluster"
) -> MachineCondition:
    return MachineCondition("Placed", status, reason, message, THEN)


SAID_BLOCKED = placed("False", BLOCKED.reason, BLOCKED.message)


def with_status(status: MachineStatus | None) -> Machine:
    return msgspec.structs.replace(a_machine("web"), status=status)


def with_conditions(*conditions: MachineCondition) -> Machine:
    return with_status(MachineStatus(conditions))


@pytest.mark.parametrize(
    ("machine", "outcome"),
    [
        pytest.param(with_conditions(), CHOSEN, id="all-is-well-and-nobody-said-otherwise"),
        pytest.param(with_conditions(placed("True")), CHOSEN, id="it-is-said-already"),
        pytest.param(with_conditions(placed("True", "Other", "by others")), CHOSEN, id="others-say-it-in-their-words"),
        pytest.param(with_conditions(SAID_BLOCKED), BLOCKED, id="what-blocks-it-is-said-already"),
    ],
)
def test_nothing_is_said_if(machine: Machine, outcome: Chosen | Blocked) -> None:
    assert new_condition(machine, outcome, NOW) is None


@pytest.mark.parametrize(
    ("machine", "outcome", "status", "since"),
    [
        pytest.param(with_status(None), BLOCKED, "False", "2031-01-06T12:00:00Z", id="it-begins"),
        pytest.param(with_conditions(placed("True")), BLOCKED, "False", "2031-01-06T12:00:00Z", id="it-turns-bad"),
        pytest.param(with_conditions(SAID_BLOCKED), CHOSEN, "True", "2031-01-06T12:00:00Z", id="it-turns-good"),
        pytest.param(with_conditions(placed("False", "NoConfigs")), BLOCKED, "False", THEN, id="another-reason-came"),
    ],
)
def test_the_time_moves_only_with_the_status(
    machine: Machine, outcome: Chosen | Blocked, status: str, since: str
) -> None:
    said = new_condition(machine, outcome, NOW)
    assert said
    assert (said.status, said.last_transition_time) == (status, since)


ELEMENT = msgspec.to_builtins(SAID_BLOCKED)


@pytest.mark.parametrize(
    ("machine", "operation"),
    [
        pytest.param(
            with_status(None),
            {"op": "add", "path": "/status", "value": {"conditions": [ELEMENT]}},
            id="a-status-if-there-is-none",
        ),
        pytest.param(
            with_status(MachineStatus()),
            {"op": "add", "path": "/status/conditions", "value": [ELEMENT]},
            id="the-list-if-there-is-none",
        ),
        pytest.param(
            with_conditions(READY),
            {"op": "add", "path": "/status/conditions/-", "value": ELEMENT},
            id="an-element-behind-those-of-others",
        ),
        pytest.param(
            with_conditions(READY, placed("True")),
            {"op": "replace", "path": "/status/conditions/1", "value": ELEMENT},
            id="our-element-if-there-is-one",
        ),
    ],
)
def test_the_patch_sets_on_the_version_that_was_seen(machine: Machine, operation: dict[str, Any]) -> None:
    test = {"op": "test", "path": "/metadata/resourceVersion", "value": machine.metadata.resource_version}
    assert condition_patch(machine, SAID_BLOCKED) == [test, operation]
