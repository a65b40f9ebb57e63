"""Cron schedules."""

from __future__ import annotations

from datetime import date, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.objects.grammars import published
from tests.objects.strategies import modest
from virt_steward.apis.meta import WindowSpec
from virt_steward.objects.cron import BadSchedule, Schedule

PUBLISHED = published(WindowSpec, "schedule")
MAY = [date(2026, 5, day) for day in range(1, 32)]  # begins on a Friday


def days_in_may(schedule: str) -> list[int]:
    parsed = Schedule.parse(schedule)
    return [day.day for day in MAY if parsed.falls_on(day)]


@pytest.mark.parametrize(
    ("schedule", "times"),
    [
        pytest.param("0 22 * * *", [(22, 0)], id="one time"),
        pytest.param("15,45 1-2 * * *", [(1, 15), (1, 45), (2, 15), (2, 45)], id="lists and ranges"),
        pytest.param("*/30 */12 * * *", [(0, 0), (0, 30), (12, 0), (12, 30)], id="steps through all"),
        pytest.param("10-40/15 5 * * *", [(5, 10), (5, 25), (5, 40)], id="steps through a range"),
        pytest.param("50/4 5 * * *", [(5, 50), (5, 54), (5, 58)], id="steps from a value to the end"),
        pytest.param("5-5/9 5 * * *", [(5, 5)], id="steps through a range of one"),
        pytest.param("*/99 5 * * *", [(5, 0)], id="a step beyond the end"),
        pytest.param("59,0,0 05  * * *", [(5, 0), (5, 59)], id="any order, repeats, zeros and spaces"),
    ],
)
def test_schedule_times_of_day(schedule: str, times: list[tuple[int, int]]) -> None:
    assert Schedule.parse(schedule).times == tuple(timedelta(hours=hour, minutes=minute) for hour, minute in times)


@pytest.mark.parametrize(
    ("schedule", "days"),
    [
        pytest.param("0 0 * * *", list(range(1, 32)), id="every day"),
        pytest.param("0 0 31 * *", [31], id="by number"),
        pytest.param("0 0 */10 * *", [1, 11, 21, 31], id="by steps"),
        pytest.param("0 0 * * FRI", [1, 8, 15, 22, 29], id="by the name of a weekday"),
        pytest.param("0 0 * * 0", [3, 10, 17, 24, 31], id="on Sunday as 0"),
        pytest.param("0 0 * * 7", [3, 10, 17, 24, 31], id="on Sunday as 7"),
        pytest.param("0 0 * * sat-Sun", [2, 3, 9, 10, 16, 17, 23, 24, 30, 31], id="at weekends"),
        pytest.param("0 0 * * 6-0", [2, 3, 9, 10, 16, 17, 23, 24, 30, 31], id="at weekends in numbers"),
        pytest.param("0 0 * * 5/2", [1, 3, 8, 10, 15, 17, 22, 24, 29, 31], id="by steps through the week"),
        pytest.param("0 0 1 * MON", [1, 4, 11, 18, 25], id="by number or weekday"),
        pytest.param("0 0 */2 * MON", [11, 25], id="by number and weekday, if the number begins with a star"),
        pytest.param("0 0 1-7 * */7", [3], id="by number and weekday, if the weekday begins with a star"),
        pytest.param("0 0 * 5 *", list(range(1, 32)), id="in their month"),
        pytest.param("0 0 * jun-DEC,4 *", [], id="not in other months"),
    ],
)
def test_schedule_days_of_month(schedule: str, days: list[int]) -> None:
    assert days_in_may(schedule) == days


@pytest.mark.parametrize(
    ("schedule", "because"),
    [
        pytest.param("", "it takes minute, hour", id="nothing"),
        pytest.param("0 22 * *", "it takes minute, hour", id="four fields"),
        pytest.param("0 0 22 * * *", "it takes minute, hour", id="six fields"),
        pytest.param("@daily", "it takes minute, hour", id="a nickname"),
        pytest.param("0 22 * * ", "'' is not a valid day of week", id="an empty field"),
        pytest.param("60 22 * * *", "'60' is not a valid minute", id="minute 60"),
        pytest.param("0 24 * * *", "'24' is not a valid hour", id="hour 24"),
        pytest.param("0 0 0 * *", "'0' is not a valid day of month", id="day 0"),
        pytest.param("0 0 * 13 *", "'13' is not a valid month", id="month 13"),
        pytest.param("0 0 * * 8", "'8' is not a valid day of week", id="weekday 8"),
        pytest.param("0 0 * * 07", "'07' is not a valid day of week", id="a weekday with a zero in front"),
        pytest.param("0 0 * * jan", "'jan' is not a valid day of week", id="a month as weekday"),
        pytest.param("0 0 L * *", "'l' is not a valid day of month", id="the last day"),
        pytest.param("0 0 * * MON#1", "'mon#1' is not a valid day of week", id="the first Monday"),
        pytest.param("*/0 0 * * *", r"'\*/0' is not a valid minute", id="a step of nothing"),
        pytest.param("1, 0 * * *", "'' is not a valid minute", id="a list that does not end"),
        pytest.param("0 22-2 * * *", "hour '22-2' is reversed; write two ranges", id="over midnight"),
        pytest.param("0 \u0662 * * *", "is not a valid hour", id="digits of another script"),
        pytest.param("0 22 * * FRI\n", "is not a valid day of week", id="a line break"),
    ],
)
def test_schedule_refuses_invalid_text(schedule: str, because: str) -> None:
    with pytest.raises(BadSchedule, match=because):
        Schedule.parse(schedule)


def refusal(text: str) -> str:
    try:
        Schedule.parse(text)
    except BadSchedule as bad:
        return str(bad)
    return ""


def fields(*values: str) -> st.SearchStrategy[str]:
    ranges = st.tuples(st.sampled_from(values), st.sampled_from(values)).map("-".join)
    elements = st.tuples(st.sampled_from(("*", *values)) | ranges, st.sampled_from(("", "/2", "/99"))).map("".join)
    return st.lists(elements, min_size=1, max_size=2).map(",".join)


@modest
@given(
    st.tuples(
        fields("0", "00", "59"),
        fields("0", "09", "23"),
        fields("1", "01", "31"),
        fields("1", "12", "jan", "Dec"),
        fields("0", "7", "SUN", "mon", "Sat"),
    ),
    st.sampled_from((" ", "   ")),
)
def test_schedule_accepts_what_crd_accepts(parts: tuple[str, ...], space: str) -> None:
    text = space.join(parts)
    assert PUBLISHED.fullmatch(text)
    assert "is reversed" in (refusal(text) or "is reversed")


ANY_FIELD = st.text("0123456789*,-/satunjx", min_size=1, max_size=4) | st.sampled_from("0*")


@modest
@given(st.lists(ANY_FIELD, min_size=5, max_size=5).map(" ".join))
def test_schedule_refuses_what_crd_refuses(text: str) -> None:
    assert PUBLISHED.fullmatch(text) or refusal(text)
