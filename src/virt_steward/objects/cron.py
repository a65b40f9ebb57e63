"""Cron schedules of five fields, as calendars of local days and times of day.

Where both day of month and day of week are restricted, either may match; if one of them begins with `*`, both must.
"""

from __future__ import annotations

import re
from calendar import monthrange
from dataclasses import dataclass
from datetime import timedelta
from itertools import product
from typing import TYPE_CHECKING

from virt_steward.objects.quoting import quoted

if TYPE_CHECKING:
    from datetime import date

_ELEMENT = re.compile(r"(?:(?P<all>\*)|(?P<first>[0-9a-z]+)(?:-(?P<last>[0-9a-z]+))?)(?:/(?P<step>[1-9][0-9]?))?")
_NUMBER = re.compile("[0-9]{1,2}")
_SUNDAY, _SUNDAY_AS_LAST = 0, 7
LEAP_YEAR = 2024


class BadSchedule(ValueError):
    """The text is not a schedule."""


@dataclass(frozen=True, slots=True)
class _Field:
    """One of the five: its values, and their names where they have some."""

    title: str
    first: int
    last: int
    names: tuple[str, ...] = ()

    def read(self, text: str) -> frozenset[int]:
        return frozenset(value for element in text.split(",") for value in self._element(element))

    def _element(self, text: str) -> range:
        found = _ELEMENT.fullmatch(text)
        if not found:
            raise BadSchedule(f"{quoted(text)} is not a valid {self.title}")
        step = int(found["step"] or 1)
        if found["all"]:
            return range(self.first, self.last + 1, step)
        first = self._value(found["first"])
        if not found["last"]:
            return range(first, (self.last if found["step"] else first) + 1, step)
        last = self._value(found["last"])
        if self is _WEEKDAY and last == _SUNDAY < first:  # FRI-SUN is the weekend, not a mistake
            last = _SUNDAY_AS_LAST
        if last < first:
            raise BadSchedule(f"{self.title} {quoted(text)} is reversed; write two ranges instead")
        return range(first, last + 1, step)

    def _value(self, text: str) -> int:
        if text in self.names:
            return self.first + self.names.index(text)
        if _NUMBER.fullmatch(text) and len(text) <= len(str(self.last)) and self.first <= int(text) <= self.last:
            return int(text)
        raise BadSchedule(f"{quoted(text)} is not a valid {self.title}")


_MINUTE = _Field("minute", 0, 59)
_HOUR = _Field("hour", 0, 23)
_DAY = _Field("day of month", 1, 31)
_MONTH = _Field("month", 1, 12, ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"))
_WEEKDAY = _Field("day of week", 0, _SUNDAY_AS_LAST, ("sun", "mon", "tue", "wed", "thu", "fri", "sat"))


@dataclass(frozen=True, slots=True)
class Schedule:
    """Times of day, in order and counted from midnight, and the days that have them."""

    times: tuple[timedelta, ...]
    days: frozenset[int]
    months: frozenset[int]
    weekdays: frozenset[int]
    both_days: bool
    """A day must match by its number and by its weekday, not by one of them."""
    by_interval: bool
    """The hour or the minute begins with `*`: it says how often, not when."""

    @classmethod
    def parse(cls, text: str) -> Schedule:
        fields = re.split(" +", text.lower())
        if len(fields) != 5:
            raise BadSchedule(
                f"{quoted(text)} is not a schedule; it takes minute, hour, day of month, month and day of week"
            )
        minute, hour, day, month, weekday = fields
        clock = product(sorted(_HOUR.read(hour)), sorted(_MINUTE.read(minute)))
        return cls(
            times=tuple(timedelta(hours=hours, minutes=minutes) for hours, minutes in clock),
            days=_DAY.read(day),
            months=_MONTH.read(month),
            weekdays=frozenset(value % _SUNDAY_AS_LAST for value in _WEEKDAY.read(weekday)),
            both_days="*" in (day[0], weekday[0]),
            by_interval="*" in (minute[0], hour[0]),
        )

    @property
    def has_a_day(self) -> bool:
        """Whether any date ever matches: `0 0 30 2 *` has none."""
        if not self.both_days:
            return True  # some weekday matches by itself
        return any(day <= monthrange(LEAP_YEAR, month)[1] for month in self.months for day in self.days)

    def falls_on(self, day: date) -> bool:
        if day.month not in self.months:
            return False
        by_number, by_weekday = day.day in self.days, day.isoweekday() % 7 in self.weekdays
        return by_number and by_weekday if self.both_days else by_number or by_weekday
