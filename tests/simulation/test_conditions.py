"""Status conditions."""

from __future__ import annotations

from typing import Any

import pytest

from virt_steward_demo.simulation.conditions import RawCondition, find, is_true, set_condition

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


def test_set_condition_appends_new_condition() -> None:
    assert set_condition([FOREIGN], RawCondition("Ready", "True", "AllGood"), NOW) == [
        FOREIGN,
        ready(lastTransitionTime=NOW),
    ]


@pytest.mark.parametrize(
    ("old", "new", "since"),
    [
        (ready("True"), RawCondition("Ready", "True", "AllGood"), BEFORE),
        (ready("True"), RawCondition("Ready", "True", "Other", "other", NOW, 7), BEFORE),
        (ready("True"), RawCondition("Ready", "False", "AllGood"), NOW),
        (ready("Unknown"), RawCondition("Ready", "False", "AllGood"), NOW),
        (ready("True", lastTransitionTime=None), RawCondition("Ready", "True", "AllGood"), NOW),
    ],
    ids=["nothing changes", "all but the status changes", "the status changes", "it becomes known", "it had no time"],
)
def test_set_condition_moves_time_only_with_status(old: dict[str, Any], new: RawCondition, since: str) -> None:
    first, changed, last = set_condition([FOREIGN, old, {"type": "Last"}], new, NOW)
    assert (first, last) == (FOREIGN, {"type": "Last"})
    assert changed["lastTransitionTime"] == since
    assert (changed["status"], changed["reason"], changed["message"]) == (new.status, new.reason, new.message)


def test_condition_writes_known_observed_generation() -> None:
    assert (
        set_condition([], RawCondition("Ready", "True", "R", observed_generation=0), NOW)[0]["observedGeneration"] == 0
    )
    assert (
        "observedGeneration"
        not in set_condition([ready(observedGeneration=1)], RawCondition("Ready", "True", "R"), NOW)[0]
    )


def test_set_condition_does_not_change_the_list() -> None:
    conditions = [ready("True")]
    set_condition(conditions, RawCondition("Ready", "False", "Broken"), NOW)
    assert conditions == [ready("True")]


def test_condition_round_trips() -> None:
    condition = RawCondition("Ready", "False", "Broken", "it broke", BEFORE, 3)
    assert RawCondition.read(condition.as_data()) == condition
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
def test_is_true_only_for_true(conditions: list[dict[str, Any]], expected: bool) -> None:
    assert is_true(conditions, "Ready") is expected
