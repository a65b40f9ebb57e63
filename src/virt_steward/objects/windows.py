"""Recurring time windows, as half-open intervals: open at the first instant, closed at the last.

A window opens when its local clock shows the time of its schedule, and stays open for its duration, however the clock
is moved meanwhile. A time that the clock skips opens it at the jump. A time that comes twice opens it at the first;
at both if the hour or the minute begins with `*`, since such a schedule says how often, not when.
"""

from __future__ import annotations

from calendar import monthrange
from dataclasses import dataclass
from datetime import date, timedelta
from heapq import merge
from typing import TYPE_CHECKING, NamedTuple

from virt_steward.objects.cron import BadSchedule, Schedule
from virt_steward.objects.durations import BadDuration, parse_duration
from virt_steward.objects.quoting import quoted
from virt_steward.objects.wallclock import DAY, instants, is_plain, midnight_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from datetime import datetime
    from zoneinfo import ZoneInfo

CLOSING_LOOKED_FOR = timedelta(days=32)
OPENING_LOOKED_FOR = 41 * 366 * DAY  # the 29th of February falls on a given weekday again after 40 years at most

_LONGEST_ZONE = 100  # characters; a name of thousands of folders overflows the stack of the library
_NO_ZONES = ("posix/", "right/", "localtime", "posixrules", "Factory")  # files beside the zones, or copies of them


class BadWindow(ValueError):
    """The text does not describe a window."""


@dataclass(frozen=True, slots=True)
class Open:
    """A window is open."""

    until: datetime | None
    """When all are closed again; None if one follows another for longer than CLOSING_LOOKED_FOR."""


@dataclass(frozen=True, slots=True)
class Closed:
    """No window is open."""

    until: datetime | None
    """When the next one opens; None if none ever does."""


State = Open | Closed


class _Interval(NamedTuple):
    open: datetime
    close: datetime


class _Run(NamedTuple):
    """Times of day, counted from midnight, between which the window does not close."""

    first: timedelta
    last: timedelta


@dataclass(frozen=True, slots=True)
class Window:
    """When it opens, in which time zone, and for how long."""

    schedule: Schedule
    duration: timedelta
    zone: ZoneInfo
    runs: tuple[_Run, ...]
    """The openings on a day without a change of the clock."""

    @classmethod
    def parse(cls, schedule: str, duration: str, time_zone: str = "UTC") -> Window:
        try:
            times, lasts = Schedule.parse(schedule), parse_duration(duration)
        except (BadSchedule, BadDuration) as bad:
            raise BadWindow(str(bad)) from bad
        if not lasts:
            raise BadWindow(f"a window of {quoted(duration)} is never open; its duration must be positive")
        return cls(times, lasts, _zone(time_zone), tuple(_runs(times, lasts)))


def state(windows: Sequence[Window], now: datetime) -> State:
    """Whether any of the windows is open. Without windows, it is always open."""
    if not windows:
        return Open(until=None)
    until = max(_open_until(window, now) for window in windows)
    upcoming = merge(*(_upcoming(window, now) for window in windows))
    if until == now:
        following = next(upcoming, None)
        return Closed(following.open if following else None)
    for interval in upcoming:
        if interval.open > until:
            break
        if interval.open > now + CLOSING_LOOKED_FOR:
            return Open(until=None)
        until = max(until, interval.close)
    return Open(until)


def state_of(window: Window, now: datetime) -> State:
    """Whether this window is open. It may open again when it closes: unlike `state`, this does not look beyond."""
    until = _open_until(window, now)
    if until > now:
        return Open(until)
    following = next(_upcoming(window, now), None)
    return Closed(following.open if following else None)


def _open_until(window: Window, now: datetime) -> datetime:
    """When the last opened interval closes; now, if it has closed already."""
    until = now
    tomorrow, oldest = _day(now, window.zone) + 1, _day(now - window.duration, window.zone) - 1
    for day in _days(window.schedule, range(tomorrow, oldest - 1, -1)):
        until = max([until, *(interval.close for interval in _intervals(window, day) if interval.open <= now)])
        if until >= instants(midnight_of(day), window.zone)[-1] + window.duration:
            break  # intervals of earlier days close earlier
    return until


def _upcoming(window: Window, now: datetime) -> Iterator[_Interval]:
    """The intervals that open after now, in order."""
    today = _day(now, window.zone)
    held: list[_Interval] = []
    for day in _days(window.schedule, range(today - 1, today + OPENING_LOOKED_FOR.days)):
        begin = instants(midnight_of(day), window.zone)[0]
        yield from (interval for interval in held if interval.open < begin)
        later = (interval for interval in held if interval.open >= begin)  # the clock was put back over midnight
        held = sorted([*later, *(interval for interval in _intervals(window, day) if interval.open > now)])
    yield from held


def _intervals(window: Window, day: date) -> list[_Interval]:
    midnight = midnight_of(day)
    if is_plain(day, window.zone):
        begin = instants(midnight, window.zone)[0]
        return [_Interval(begin + run.first, begin + run.last + window.duration) for run in window.runs]
    shown = (instants(midnight + time, window.zone) for time in window.schedule.times)
    openings = (at for times in shown for at in (times if window.schedule.by_interval else times[:1]))
    return [_Interval(at, at + window.duration) for at in openings]


def _runs(schedule: Schedule, duration: timedelta) -> Iterator[_Run]:
    first = last = schedule.times[0]
    for time in schedule.times:
        if time - last > duration:
            yield _Run(first, last)
            first = time
        last = time
    yield _Run(first, last)


def _days(schedule: Schedule, ordinals: range) -> Iterator[date]:
    """Yield the days of the schedule. Months that it does not name are skipped: decades may lie between two days."""
    if not schedule.has_a_day:
        return
    ordinal = ordinals.start
    while ordinal in ordinals:
        day = date.fromordinal(ordinal)
        if day.month in schedule.months:
            if schedule.falls_on(day):
                yield day
            ordinal += ordinals.step
        else:
            ordinal = _beyond_month(day, ordinals.step)


def _beyond_month(day: date, step: int) -> int:
    """The first day after this month; the last day before it, if the search goes back."""
    first = day.replace(day=1).toordinal()
    return first - 1 if step < 0 else first + monthrange(day.year, day.month)[1]


def _day(moment: datetime, zone: ZoneInfo) -> int:
    return moment.astimezone(zone).toordinal()


def _zone(name: str) -> ZoneInfo:
    from zoneinfo import ZoneInfo  # noqa: PLC0415 - takes 0.3 MiB, and most clusters have no windows

    try:
        if len(name) <= _LONGEST_ZONE and not name.startswith(_NO_ZONES):
            return ZoneInfo(name)
    except (KeyError, ValueError, OSError):  # no such zone, no such name, a folder of zones
        pass
    raise BadWindow(f"{quoted(name)} is not a time zone; write its IANA name, such as Europe/Oslo")
