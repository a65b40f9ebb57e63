"""Overrides that end by themselves, and the mode of drift."""

from datetime import UTC, datetime, timedelta

import pytest

from virt_steward.controllers.autopilot.annotation_keys import DRIFT, IGNORED, MODE, PATCH, PAUSED, UNTIL, DriftMode
from virt_steward.controllers.autopilot.overrides.expiry import InForce, in_force

NOW = datetime(2026, 11, 16, 12, tzinfo=UTC)
OVERRIDES = {MODE: "unmanaged", PATCH: "[]", IGNORED: "/spec/a", DRIFT: "report"}


def test_in_force_without_end() -> None:
    assert in_force({**OVERRIDES, PAUSED: "true"}, NOW) == InForce({**OVERRIDES, PAUSED: "true"})


def test_in_force_ignores_end_without_overrides() -> None:
    assert in_force({UNTIL: "rubbish"}, NOW) == InForce({UNTIL: "rubbish"})


@pytest.mark.parametrize(
    "text", ["2026-11-16T12:00:01Z", "2026-11-16t13:00:01+01:00", "2026-11-16 12:00:00.5z", " 2027-01-01T00:00:00Z "]
)
def test_in_force_remarks_the_end(text: str) -> None:
    annotations = {**OVERRIDES, UNTIL: text}
    found = in_force(annotations, NOW)
    assert found.overrides == annotations
    assert found.until is not None
    assert found.until > NOW
    assert [remark.reason for remark in found.remarks] == ["OverrideEnds"]


@pytest.mark.parametrize("text", ["2026-11-16T12:00:00Z", "2026-11-16T12:30:00+01:00", "0001-01-01T00:00:00Z"])
def test_in_force_lifts_expired_overrides(text: str) -> None:
    found = in_force({**OVERRIDES, PAUSED: "true", UNTIL: text}, NOW)
    assert found.overrides == {PAUSED: "true", UNTIL: text}
    assert found.until is None
    assert [remark.reason for remark in found.remarks] == ["OverrideLifted"]
    assert all(name in found.remarks[0].message for name in OVERRIDES)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "tomorrow",
        "2026-11-16",
        "2026-11-16T12:00:01",
        "2026-02-30T00:00:00Z",
        "2026-11-16T25:00:00Z",
        "0001-01-01T00:00:00+14:00",
        "9999-12-31T23:59:59-14:00",
        "٢٠٢٦-11-16T12:00:01Z",
        "2026-11-16T12:00:01Z" * 10_000,
    ],
)
def test_in_force_remarks_invalid_end(text: str) -> None:
    found = in_force({**OVERRIDES, UNTIL: text}, NOW)
    assert found.overrides == {**OVERRIDES, UNTIL: text}
    assert found.until is None
    assert [remark.reason for remark in found.remarks] == ["InvalidOverrideUntil"]
    assert len(found.remarks[0].message) < 500


def test_in_force_ends_at_an_instant() -> None:
    annotations = {PATCH: "[]", UNTIL: "2026-11-16T12:00:00Z"}
    assert PATCH in in_force(annotations, NOW - timedelta(microseconds=1)).overrides
    assert PATCH not in in_force(annotations, NOW).overrides


@pytest.mark.parametrize(
    ("text", "mode"), [(None, DriftMode.ENFORCE), ("enforce", DriftMode.ENFORCE), (" report ", DriftMode.REPORT)]
)
def test_drift_mode_enforces_unless_told_to_report(text: str | None, mode: DriftMode) -> None:
    assert DriftMode.parse(text) is mode


@pytest.mark.parametrize("text", ["", "Report", "off", "report,enforce"])
def test_drift_mode_refuses_unknown_values(text: str) -> None:
    assert DriftMode.parse(text) is None
