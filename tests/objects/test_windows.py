"""Windows of time."""

from __future__ import annotations

import time
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache
from itertools import pairwise
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.objects.strategies import modest
from virt_steward.objects.wallclock import rfc3339
from virt_steward.objects.windows import BadWindow, Closed, Open, State, Window, state

MINUTE = timedelta(minutes=1)


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).astimezone(UTC)


def opened(text: str) -> Open:
    return Open(at(text))


def closed(text: str) -> Closed:
    return Closed(at(text))


def a_window(text: str) -> Window:
    """Read `0 22 * * FRI for 4h in Europe/Oslo`."""
    schedule, rest = text.split(" for ")
    duration, _, zone = rest.partition(" in ")
    return Window.parse(schedule, duration, zone or "UTC")


@pytest.mark.parametrize(
    ("now", "expected"),
    [
        pytest.param("2026-06-12T19:59:59.999999Z", closed("2026-06-12T20:00Z"), id="right before it opens"),
        pytest.param("2026-06-12T20:00Z", opened("2026-06-13T00:00Z"), id="as it opens"),
        pytest.param("2026-06-12T22:10:30Z", opened("2026-06-13T00:00Z"), id="while it is open"),
        pytest.param("2026-06-12T23:59:59.999999Z", opened("2026-06-13T00:00Z"), id="right before it closes"),
        pytest.param("2026-06-13T00:00Z", closed("2026-06-19T20:00Z"), id="as it closes"),
        pytest.param("2026-10-24T00:00Z", closed("2026-10-30T21:00Z"), id="as summer ends before the next"),
    ],
)
def test_window_state_over_a_week(now: str, expected: State) -> None:
    assert state([a_window("0 22 * * FRI for 4h in Europe/Oslo")], at(now)) == expected


@pytest.mark.parametrize(
    ("window", "now", "expected"),
    [
        pytest.param(
            "30 2 * * * for 1h in Europe/Oslo",
            "2026-03-29T00:59Z",
            closed("2026-03-29T01:00Z"),
            id="a skipped time opens at the jump",
        ),
        pytest.param(
            "30 2 * * * for 1h in Europe/Oslo",
            "2026-03-29T01:00Z",
            opened("2026-03-29T02:00Z"),
            id="a skipped time loses nothing of its duration",
        ),
        pytest.param(
            "30 2 * * * for 1h in Europe/Oslo",
            "2026-10-25T00:30Z",
            opened("2026-10-25T01:30Z"),
            id="a time that comes twice opens at the first",
        ),
        pytest.param(
            "30 2 * * * for 1h in Europe/Oslo",
            "2026-10-25T01:30Z",
            closed("2026-10-26T01:30Z"),
            id="a time that comes twice opens once",
        ),
        pytest.param(
            "30 2 * * * for 1h in Europe/Oslo",
            "2026-10-25T01:15Z",
            opened("2026-10-25T01:30Z"),
            id="a window is still open after the clock was put back before it",
        ),
        pytest.param(
            "30 * * * * for 10m in Europe/Oslo",
            "2026-10-25T00:40Z",
            closed("2026-10-25T01:30Z"),
            id="an hourly window opens in both hours of the same name",
        ),
        pytest.param(
            "0 1 * * * for 4h in Europe/Oslo",
            "2026-10-25T00:00Z",
            opened("2026-10-25T03:00Z"),
            id="hours are counted, not read from the clock",
        ),
        pytest.param(
            "10 2 * * * for 1h in Australia/Lord_Howe",
            "2026-10-03T15:00Z",
            closed("2026-10-03T15:30Z"),
            id="half an hour is skipped",
        ),
        pytest.param(
            "45 1 * * * for 20m in Australia/Lord_Howe",
            "2026-04-04T15:10Z",
            closed("2026-04-05T15:15Z"),
            id="half an hour comes twice",
        ),
        pytest.param(
            "0 12 30 12 * for 1h in Pacific/Apia",
            "2011-12-30T09:59Z",
            closed("2011-12-30T10:00Z"),
            id="a whole day is skipped",
        ),
        pytest.param(
            "0 0 * * * for 1h in America/Havana",
            "2026-03-08T04:00Z",
            closed("2026-03-08T05:00Z"),
            id="midnight is skipped",
        ),
        pytest.param(
            "45 23 * * SAT for 30m in America/St_Johns",
            "2010-11-07T02:35Z",
            opened("2010-11-07T02:45Z"),
            id="the clock is put back over midnight",
        ),
        pytest.param(
            "0 0 * * SUN for 30m in America/St_Johns",
            "2010-11-07T02:40Z",
            opened("2010-11-07T03:00Z"),
            id="the clock is back in the day before the window's",
        ),
        pytest.param(
            "45 * * * SAT for 10m in America/St_Johns",
            "2010-11-07T02:30:30Z",
            closed("2010-11-07T03:15Z"),
            id="the day before is to come again",
        ),
        pytest.param(
            "0,45 * * * * for 5m in America/St_Johns",
            "2010-11-07T02:40Z",
            closed("2010-11-07T03:15Z"),
            id="minutes of two days take turns",
        ),
        pytest.param(
            "*/20 * * * * for 5m in Europe/Oslo",
            "2026-10-25T00:06Z",
            closed("2026-10-25T00:20Z"),
            id="the first of two hours of the same name goes on",
        ),
        pytest.param(
            "0 22 * * * for 1h in Asia/Kolkata",
            "2026-03-29T16:00Z",
            closed("2026-03-29T16:30Z"),
            id="a zone never moves its clock",
        ),
    ],
)
def test_window_at_clock_changes(window: str, now: str, expected: State) -> None:
    assert state([a_window(window)], at(now)) == expected


@pytest.mark.parametrize(
    ("windows", "expected"),
    [
        pytest.param([], Open(None), id="none at all"),
        pytest.param(["0 0 30 2 * for 1h"], Closed(None), id="one that never comes"),
        pytest.param(["0 0 30 2 * for 1h", "0 13 * * * for 1h"], closed("2026-06-10T13:00Z"), id="one of them never"),
        pytest.param(["0 0 29 2 * for 1h"], closed("2028-02-29T00:00Z"), id="a leap day"),
        pytest.param(["0 0 29 2 */7 for 1h"], closed("2032-02-29T00:00Z"), id="a leap day on a Sunday"),
        pytest.param(["0 12 * * * for 1h", "30 12 * * * for 1h"], opened("2026-06-10T13:30Z"), id="two that overlap"),
        pytest.param(["0 12 * * * for 1h", "0 13 * * * for 1h"], opened("2026-06-10T14:00Z"), id="two that touch"),
        pytest.param(["0 12 * * * for 1h", "1 13 * * * for 1h"], opened("2026-06-10T13:00Z"), id="two that do not"),
        pytest.param(["0 12 * * * for 3h", "30 12 * * * for 1h"], opened("2026-06-10T15:00Z"), id="one in another"),
        pytest.param(
            ["0 12 * * * for 1h", "0 15 * * * for 1h in Europe/Oslo"], opened("2026-06-10T14:00Z"), id="two zones"
        ),
        pytest.param(["0 15 * * * for 1h", "0 14 * * * for 1h"], closed("2026-06-10T14:00Z"), id="two to come"),
        pytest.param(["0 22 * * * for 20h"], opened("2026-06-10T18:00Z"), id="one from the day before"),
        pytest.param(["0 0 * * * for 24h"], Open(None), id="day after day"),
        pytest.param(["* * * * * for 1m"], Open(None), id="minute after minute"),
        pytest.param(["* * * * 1-5 for 1m in Europe/Oslo"], opened("2026-06-12T22:00Z"), id="all minutes of a week"),
        pytest.param(["* * * * * for 30s"], closed("2026-06-10T12:04Z"), id="half minutes"),
        pytest.param(["0 0 * * * for 3650d"], Open(None), id="ten years, every day"),
        pytest.param(["0 0 10 3,6 * for 40d"], opened("2026-07-20T00:00Z"), id="many days"),
        pytest.param(["0 0 1 1 */4 for 3650d"], Open(None), id="what opened years ago"),
    ],
)
def test_window_state_at_noon(windows: list[str], expected: State) -> None:
    assert state([a_window(text) for text in windows], at("2026-06-10T12:03:45Z")) == expected


@pytest.mark.parametrize(
    ("changed", "because"),
    [
        pytest.param({"time_zone": "Europe/Atlantis"}, "'Europe/Atlantis' is not a time zone", id="an unknown zone"),
        pytest.param({"time_zone": "Europe"}, "'Europe' is not a time zone", id="a folder of zones"),
        pytest.param({"time_zone": "a/" * 10_000}, "is not a time zone", id="a name of many folders"),
        pytest.param({"time_zone": "localtime"}, "'localtime' is not a time zone", id="the zone of the machine"),
        pytest.param({"time_zone": "right/Europe/Oslo"}, "is not a time zone", id="a zone with leap seconds"),
        pytest.param({"time_zone": "leapseconds"}, "is not a time zone", id="a file beside the zones"),
        pytest.param({"time_zone": "../../etc/passwd"}, "is not a time zone", id="a path"),
        pytest.param({"time_zone": ""}, "'' is not a time zone", id="no zone"),
        pytest.param({"duration": "4"}, "'4' is not a duration", id="a bad duration"),
        pytest.param({"duration": "0h"}, "duration must be positive", id="no duration"),
        pytest.param({"schedule": "daily"}, "'daily' is not a schedule", id="a bad schedule"),
    ],
)
def test_window_refuses_invalid_spec(changed: dict[str, str], because: str) -> None:
    good = {"schedule": "0 22 * * *", "duration": "4h", "time_zone": "Europe/Oslo"}
    with pytest.raises(BadWindow) as refused:
        Window.parse(**good | changed)
    assert because in str(refused.value)


def test_rfc3339_format() -> None:
    assert rfc3339(at("2026-06-12T22:00:00.75+02:00")) == "2026-06-12T20:00:00Z"


EVERY_DAY = frozenset(range(7))
MINUTES = {"0": {0}, "30": {30}, "*/20": {0, 20, 40}, "*": {*range(60)}, "5-50/15": {5, 20, 35, 50}}
HOURS = {"*": {*range(24)}, "*/2": {*range(0, 24, 2)}, "0": {0}, "1-2": {1, 2}, "23,0": {0, 23}, "12": {12}}
WEEKDAYS = {"*": EVERY_DAY, "SUN": {6}, "6": {5}, "MON-THU": {0, 1, 2, 3}}


@dataclass(frozen=True)
class Timetable:
    """A window in words, which can be looked up minute by minute."""

    minute: str
    hour: str
    weekday: str
    minutes_open: int

    def window(self, zone: str) -> Window:
        return Window.parse(f"{self.minute} {self.hour} * * {self.weekday}", f"{self.minutes_open}m", zone)

    def lists(self, local: datetime) -> bool:
        return (
            local.minute in MINUTES[self.minute]
            and local.hour in HOURS[self.hour]
            and local.weekday() in WEEKDAYS[self.weekday]
        )

    def opens(self, before: datetime, shown: datetime) -> bool:
        """Look at the clock, and at what it showed a minute ago."""
        skipped = (before + MINUTE * n for n in range(1, (shown - before) // MINUTE))
        again = shown.fold and "*" not in (self.minute[0], self.hour[0])
        return (self.lists(shown) and not again) or any(map(self.lists, skipped))


timetables = st.builds(
    Timetable,
    *map(st.sampled_from, ([*MINUTES], [*HOURS], [*WEEKDAYS])),
    st.sampled_from((1, 7, 20, 30, 45, 60, 90, 120, 600, 1440, 2000)),
)
CHANGES = (
    ("Europe/Oslo", "2026-03-29T01:00Z"),
    ("Europe/Oslo", "2026-10-25T01:00Z"),
    ("America/New_York", "2026-11-01T06:00Z"),
    ("America/Havana", "2026-03-08T05:00Z"),
    ("America/Havana", "2026-11-01T05:00Z"),
    ("America/St_Johns", "2010-11-07T02:31Z"),
    ("Australia/Lord_Howe", "2026-04-04T15:00Z"),
    ("Australia/Lord_Howe", "2026-10-03T15:30Z"),
    ("Pacific/Apia", "2011-12-30T10:00Z"),
    ("Asia/Kolkata", "2026-03-29T01:00Z"),
)


MINUTES_SEEN = 5 * 24 * 60


@cache
def clock(zone: str, begin: datetime) -> list[datetime]:
    """Return what a clock on the wall shows minute by minute, from the minute before the beginning."""
    moments = (begin + MINUTE * n for n in range(-1, MINUTES_SEEN))
    return [moment.astimezone(ZoneInfo(zone)).replace(tzinfo=None) for moment in moments]


def minutes_open(timetable: Timetable, zone: str, begin: datetime) -> list[bool]:
    """Tell for every minute whether the window is open, with nothing known of the time before."""
    answers, left = [], 0
    for before, shown in pairwise(clock(zone, begin)):
        left = timetable.minutes_open if timetable.opens(before, shown) else left - 1
        answers.append(left > 0)
    return answers


@modest
@given(
    st.sampled_from(CHANGES),
    st.lists(timetables, min_size=1, max_size=2),
    st.lists(st.integers(2 * 24 * 60, 3 * 24 * 60 + 300), min_size=5, max_size=5),
)
def test_window_state_matches_minute_by_minute_check(
    change: tuple[str, str], tables: list[Timetable], minutes: list[int]
) -> None:
    zone, begin = change[0], at(change[1]) - timedelta(days=3)
    answers = [any(now) for now in zip(*(minutes_open(table, zone, begin) for table in tables), strict=True)]
    windows = [table.window(zone) for table in tables]
    for minute in minutes:
        found = state(windows, begin + MINUTE * minute)
        assert isinstance(found, Open) is answers[minute]
        until = next((later for later in range(minute, MINUTES_SEEN) if answers[later] is not answers[minute]), None)
        if until is None:
            assert found.until is None or found.until >= begin + MINUTE * MINUTES_SEEN
        else:
            assert found.until == begin + MINUTE * until


@pytest.mark.parametrize("schedule", ["0 0 30 2 *", "0 0 31 2,4,6,9,11 *", "* * 29 2 1"])
def test_state_of_rare_window_costs_little(schedule: str) -> None:
    window = Window.parse(schedule, "1h")
    started = time.process_time()
    for _ in range(20):
        state([window], datetime(2026, 3, 1, tzinfo=UTC))
    assert time.process_time() - started < 0.5  # 41 years were searched day by day: 0.3 s for each look
