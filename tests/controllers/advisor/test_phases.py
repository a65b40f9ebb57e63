"""The table of phases: complete, unambiguous, and refusing what it does not know."""

from itertools import combinations

import pytest

from virt_steward.controllers.advisor.phases import PHASES, TABLE, IllegalTransition, On, after


def test_no_two_rows_speak_of_one_case() -> None:
    assert not [
        (one, other) for one, other in combinations(TABLE, 2) if one.on is other.on and one.before & other.before
    ]


def test_every_event_has_a_row() -> None:
    assert {row.on for row in TABLE} == set(On)


def test_every_phase_can_be_reached() -> None:
    assert {row.after for row in TABLE} == set(PHASES)


@pytest.mark.parametrize(
    ("phase", "on"),
    [
        ("Ignored", On.ITEM_MOVED),
        ("ReviewRequired", On.ALL_DONE),
        ("ReviewRequired", On.DRIFT_FOUND),
        ("Completed", On.PLAN_STALE),
        ("Failed", On.ENFORCED),
        ("InProgress", On.LOGIC_CHANGED),
        (None, On.ALL_DONE),
    ],
)
def test_there_is_no_way(phase: str | None, on: On) -> None:
    with pytest.raises(IllegalTransition):
        after(phase, on)  # type: ignore[arg-type]
