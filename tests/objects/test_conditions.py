"""Status conditions."""

from __future__ import annotations

from typing import Any

import pytest

from virt_steward.objects.conditions import Condition, find, is_true, set_condition

BEFORE = "2026-01-01T00:00:00Z"
NOW = "2026-01-02T00:00:00Z"
FOREIGN = {"type": "Synced", "status": "True", "lastHeartbeatTime": BEFORE}


def ready(status: str = "True", **more: Any) -> dict[str, Any]:
    return {
        "type": "Ready",
        "status": status,
        "reason": "AllGood",
        "message": "",
        "lastTransitionTime": BEFORE,
        **more,
    }


def test_a_new_condition_comes_last_and_starts_now() -> None:
    assert set_condition([FOREIGN], Condition("Ready", "True", "AllGood"), NOW) == [
        FOREIGN,
        ready(lastTransitionTime=NOW),
    ]


@pytest.mark.parametrize(
    ("old", "new", "since"),
    [
        (ready("True"), Condition("Ready", "True", "AllGood"), BEFORE),
        (ready("True"), Condition("Ready", "True", "Other", "other", NOW, 7), BEFORE),
        (ready("True"), Condition("Ready", "False", "AllGood"), NOW),
        (ready("Unknown"), Condition("Ready", "False", "AllGood"), NOW),
        (ready("True", lastTransitionTime=None), Condition("Ready", "True", "AllGood"), NOW),
    ],
    ids=["nothing changes", "all but the status changes", "the status changes", "it becomes known", "it had no time"],
)
def test_the_transition_time_moves_only_with_the_status_when(old: dict[str, Any], new: Condition, since: str) -> None:
    first, changed, last = set_condition([FOREIGN, old, {"type": "Last"}], new, NOW)
    assert (first, last) == (FOREIGN, {"type": "Last"})
    assert changed["lastTransitionTime"] == since
    assert (changed["status"], changed["reason"], changed["message"]) == (new.status, new.reason, new.message)


def test_the_observed_generation_is_written_only_if_known() -> None:
    assert set_condition([], Condition("Ready", "True", "R", observed_generation=0), NOW)[0]["observedGeneration"] == 0
    assert (
        "observedGeneration"
        not in set_condition([ready(observedGeneration=1)], Condition("Ready", "True", "R"), NOW)[0]
    )


def test_the_old_list_is_left_alone() -> None:
    conditions = [ready("True")]
    set_condition(conditions, Condition("Ready", "False", "Broken"), NOW)
    assert conditions == [ready("True")]


def test_a_condition_survives_its_data() -> None:
    condition = Condition("Ready", "False", "Broken", "it broke", BEFORE, 3)
    assert Condition.read(condition.as_data()) == condition
    assert find([FOREIGN, condition.as_data()], "Ready") == condition


@pytest.mark.parametrize(
    ("conditions", "expected"),
    [
        ([ready("True")], True),
        ([ready("False")], False),
        ([ready("Unknown")], False),
        ([{"type": "Ready"}], False),
        ([], False),
    ],
    ids=["true", "false", "unknown", "without a status", "missing"],
)
def test_only_true_is_true_when_it_is(conditions: list[dict[str, Any]], expected: bool) -> None:
    assert is_true(conditions, "Ready") is expected
