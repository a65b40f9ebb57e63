"""The annotation that keeps why the placement chose a cluster."""

import pytest

from virt_steward.controllers.placement.observation import Machine, MachineFieldsEntry, MachineMeta, MachineRequest
from virt_steward.controllers.placement.report import reason_annotation, recorded_reason
from virt_steward.controllers.placement.verdicts import Chosen

OURS = (MachineFieldsEntry("virt-steward-placement", "2030-01-01T00:00:00Z"),)


def a_placed_machine(config: str, because: str, writes: tuple[MachineFieldsEntry, ...] = OURS) -> Machine:
    annotations = MachineRequest(config=config, because=because)
    return Machine(MachineMeta(name="web", namespace="default", annotations=annotations, managed_fields=writes))


def test_recorded_reason_reads_what_was_written() -> None:
    note = reason_annotation(Chosen("east", "round-robin: number 1 in turn"))
    assert recorded_reason(a_placed_machine("east", note)) == "round-robin: number 1 in turn"


@pytest.mark.parametrize(
    "machine",
    [
        pytest.param(a_placed_machine("east", ""), id="no annotation"),
        pytest.param(a_placed_machine("west", "east: it is the only cluster"), id="moved"),
        pytest.param(a_placed_machine("", "east: it is the only cluster"), id="unplaced"),
        pytest.param(a_placed_machine("east", "east: it is the only cluster", ()), id="copied"),
        pytest.param(a_placed_machine("east", "east"), id="without a reason"),
    ],
)
def test_recorded_reason_is_empty_if_not_ours(machine: Machine) -> None:
    assert recorded_reason(machine) == ""


def test_reason_annotation_is_one_bounded_line() -> None:
    endless = "a\n\x1b[31m" + "b" * 1000
    written, read = reason_annotation(Chosen("east", endless)), a_placed_machine("east", f"east: {endless}")
    for text in (written, recorded_reason(read)):
        assert text.isprintable()
        assert len(text) < 300
