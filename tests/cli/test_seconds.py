"""Options that take a time."""

from __future__ import annotations

import pytest
import typer

from virt_steward.cli.seconds import seconds, whole_seconds


@pytest.mark.parametrize(
    ("text", "found"),
    [("5", 5.0), ("0.5", 0.5), (".5", 0.5), (2.0, 2.0), ("1m30s", 90.0), ("1.5h", 5400.0), ("300ms", 0.3)],
)
def test_seconds_reads_numbers_and_durations(text: str | float, found: float) -> None:
    assert seconds(0.1)(text) == found


@pytest.mark.parametrize(
    ("text", "because"),
    [
        ("nan", "is not a duration"),
        ("inf", "is not a duration"),
        ("1e3", "is not a duration"),
        ("-5", "is not a duration"),
        ("", "a number alone means seconds"),
        ("0", "not between 0.1 s and one day"),
        ("50ms", "not between 0.1 s and one day"),
        ("25h", "not between 0.1 s and one day"),
        ("9" * 400, "is not a duration"),
    ],
)
def test_seconds_refuses_other_text(text: str, because: str) -> None:
    with pytest.raises(typer.BadParameter, match=because):
        seconds(0.1)(text)


def test_whole_seconds_refuses_fractions() -> None:
    assert whole_seconds(1)("1m") == 60
    with pytest.raises(typer.BadParameter, match="not a whole number of seconds"):
        whole_seconds(1)("1500ms")
