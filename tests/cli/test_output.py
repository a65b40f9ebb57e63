"""How answers are printed as text."""

import pytest

from virt_steward.cli.output import check_lines, wrapped
from virt_steward.objects.checks import CheckResult

CHAIN = (
    CheckResult("Inputs", "pass", "all read"),
    CheckResult("Prerequisites", "fail", "KubeDescheduler CRD is missing.", decided=True),
    CheckResult("Approved", "not reached"),
)


def test_check_lines_mark_results_and_the_deciding_check() -> None:
    assert list(check_lines(CHAIN, "utf-8")) == [
        "  ✓ Inputs: all read",
        "  ✗ Prerequisites: KubeDescheduler CRD is missing. Stopped here",
        "  \N{EN DASH} Approved: not reached",
    ]


def test_check_lines_fall_back_to_ascii() -> None:
    assert [line[:3] for line in check_lines(CHAIN, "ascii")] == ["  +", "  x", "  -"]


def test_check_lines_say_that_a_passed_check_decided() -> None:
    assert list(check_lines([CheckResult("Pinned", "pass", "", decided=True)], "utf-8")) == ["  ✓ Pinned. Decided here"]


def test_check_lines_wrap_at_the_width_of_the_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    lines = list(check_lines([CheckResult("Reachable", "fail", "timed out after 5 s " * 8)], "utf-8"))
    assert len(lines) > 1
    assert all(len(line) <= 80 for line in lines)
    assert all(line.startswith("    ") for line in lines[1:])


def test_wrapped_breaks_no_names_and_prints_no_control_characters() -> None:
    name = "openshift-cnv/kubevirt-hyperconverged-" * 4
    assert wrapped(f"object {name}\x1b[2J") == ["object", f"{name}?[2J"]
