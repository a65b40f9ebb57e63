"""The chart of activity, and the axis of time that all pictures share."""

from datetime import datetime, timedelta

import pytest

from tests.console.pictures.builders import NOON, at
from virt_steward.console.pictures.activity_chart import LEFT, TALLEST, activity_chart
from virt_steward.console.pictures.time_axis import RIGHT, TimeAxis
from virt_steward.insight.activity import EventRecord, Series, Subject
from virt_steward.objects.meta import Meta

NAMES = ("advisor", "approver")


def an_event(controller: str, seconds: float, *, times: int = 1, warning: bool = False) -> EventRecord:
    moment = at(seconds)
    return EventRecord(
        Meta("event", "default"),
        controller,
        "Warning" if warning else "Normal",
        regarding=Subject(kind="InstallPlan"),
        event_time=moment,
        series=Series(times, moment) if times > 1 else None,
    )


def test_chart_counts_events_by_controller_and_minute() -> None:
    events = [
        an_event("advisor", -10),
        an_event("advisor", -15, times=3),
        an_event("advisor", -1_800, warning=True),
        an_event("approver", -3_000),
        an_event("somebody", -10),
        an_event("advisor", -90_000),
    ]
    chart = activity_chart(events, NAMES, NOON)
    advisor, approver = chart.rows
    assert (advisor.events, advisor.warnings, advisor.unverified, advisor.last) == (5, 1, 0, at(-10))
    assert (approver.events, approver.unverified) == (1, 1)
    assert [column.height for column in advisor.columns] == [TALLEST / 4, TALLEST]
    assert [column.warnings for column in advisor.columns] == [TALLEST / 4, 0]
    assert advisor.columns[-1].title == "11:59 UTC: 4 events"
    assert advisor.columns[0].title == "11:30 UTC: 1 event, 1 of them warnings"
    assert all(LEFT <= column.x <= RIGHT and column.y + column.height == advisor.base for column in advisor.columns)
    assert (chart.period, chart.tallest) == ("hour", 4)
    assert chart.summary == "Events of the last hour: advisor 5, approver 1"


def test_chart_shows_a_day_where_events_are_kept_longer() -> None:
    chart = activity_chart([an_event("advisor", -7_200), an_event("advisor", 0)], NAMES, NOON)
    assert (chart.period, [row.events for row in chart.rows]) == ("24 hours", [2, 0])


def test_chart_moves_once_per_interval() -> None:
    events = [an_event("advisor", -60)]
    assert activity_chart(events, NAMES, at(1)) == activity_chart(events, NAMES, at(59))
    assert activity_chart(events, NAMES, at(1)) != activity_chart(events, NAMES, at(61))


def test_chart_without_events() -> None:
    chart = activity_chart([], NAMES, NOON)
    assert [(row.events, row.columns, row.last) for row in chart.rows] == [(0, (), None), (0, (), None)]


@pytest.mark.parametrize(
    ("start", "seconds", "labels"),
    [
        pytest.param(NOON, 12, ["12:00:00", "12:00:02", "12:00:04", "12:00:06", "12:00:08"], id="seconds"),
        pytest.param(at(61), 300, ["12:02", "12:03", "12:04", "12:05", "12:06"], id="minutes"),
        pytest.param(at(-1), 86_400, ["12:00", "18:00", "00:00", "06:00"], id="a-day"),
        pytest.param(NOON, 5 * 86_400, ["02 Mar", "03 Mar", "04 Mar", "05 Mar", "06 Mar"], id="days"),
    ],
)
def test_axis_has_ticks_at_round_times(start: datetime, seconds: int, labels: list[str]) -> None:
    axis = TimeAxis(start, start + timedelta(seconds=seconds))
    assert [tick.label for tick in axis.ticks][: len(labels)] == labels
    assert len(axis.ticks) <= 7
    assert [tick.x for tick in axis.ticks] == sorted(tick.x for tick in axis.ticks)


def test_axis_is_bounded() -> None:
    axis = TimeAxis(NOON, NOON, left=100)
    assert (axis.x(at(-5)), axis.x(NOON), axis.x(at(5)), axis.x(at(500))) == (100, 100, (100 + RIGHT) / 2, RIGHT)
