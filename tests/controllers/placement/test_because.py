"""The note on why a machine was placed where it is."""

import pytest

from virt_steward.controllers.placement.observation import Machine, MachineFieldsEntry, MachineMeta, MachineRequest
from virt_steward.controllers.placement.reason_annotation import reason_on, with_reason
from virt_steward.controllers.placement.verdicts import Chosen

OURS = (MachineFieldsEntry("virt-steward-placement", "2030-01-01T00:00:00Z"),)


def a_placed_machine(config: str, because: str, writes: tuple[MachineFieldsEntry, ...] = OURS) -> Machine:
    annotations = MachineRequest(config=config, because=because)
    return Machine(MachineMeta(name="web", namespace="default", annotations=annotations, managed_fields=writes))


def test_what_was_noted_is_read_again() -> None:
    note = with_reason(Chosen("east", "round-robin: number 1 in turn"))
    assert reason_on(a_placed_machine("east", note)) == "round-robin: number 1 in turn"


@pytest.mark.parametrize(
    "machine",
    [
        pytest.param(a_placed_machine("east", ""), id="has none"),
        pytest.param(a_placed_machine("west", "east: it is the only one"), id="was moved by somebody"),
        pytest.param(a_placed_machine("", "east: it is the only one"), id="has no cluster any more"),
        pytest.param(a_placed_machine("east", "east: it is the only one", ()), id="is a copy"),
        pytest.param(a_placed_machine("east", "east"), id="has a note that says nothing"),
    ],
)
def test_no_reason_is_told_of_a_machine_that(machine: Machine) -> None:
    assert reason_on(machine) == ""


def test_a_note_is_one_line_of_bounded_length_whoever_wrote_it() -> None:
    endless = "a\n\x1b[31m" + "b" * 1000
    for text in (with_reason(Chosen("east", endless)), reason_on(a_placed_machine("east", f"east: {endless}"))):
        assert text.isprintable()
        assert len(text) < 300
