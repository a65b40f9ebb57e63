"""The events of each controller over time, as columns: one row per controller, one column per few minutes."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, NamedTuple

from virt_steward.console.pictures.time_axis import TimeAxis

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from virt_steward.console.pictures.time_axis import Tick
    from virt_steward.insight.activity import EventRecord

LEFT = 100
TOP = 8
ROW = 44
TALLEST = 32
COLUMNS = 60
HOUR, DAY = timedelta(hours=1), timedelta(days=1)
LEAST_HEIGHT = 2.0
"""So that a single event is seen beside hundreds."""


class ActivityColumn(NamedTuple):
    """The events of one controller in one interval; warnings are drawn from the bottom."""

    x: float
    width: float
    y: float
    height: float
    warnings: float
    """The height of the part of warnings."""
    title: str


@dataclass(frozen=True, slots=True)
class ActivityRow:
    """One controller."""

    controller: str
    base: int
    """The line on which its columns stand."""
    columns: tuple[ActivityColumn, ...]
    events: int
    warnings: int
    unverified: int
    last: datetime | None


@dataclass(frozen=True, slots=True)
class ActivityChart:
    """The picture, and the table beside it."""

    rows: tuple[ActivityRow, ...]
    ticks: tuple[Tick, ...]
    height: int
    period: str
    """How far back it reaches, in words."""
    tallest: int
    """The number of events of the highest column."""

    @property
    def left(self) -> int:
        return LEFT

    @property
    def summary(self) -> str:
        """The picture in words."""
        counted = ", ".join(f"{row.controller} {row.events:,}" for row in self.rows)
        return f"Events of the last {self.period}: {counted}"


def activity_chart(events: Iterable[EventRecord], controllers: Sequence[str], now: datetime) -> ActivityChart:
    """Of the last hour; of the last day if some events are older. The end is a whole interval, so it moves rarely.

    An event that happened several times counts as often, at the time of the last one: Events keep no other.
    """
    known = [one for one in events if now - DAY < one.at <= now + HOUR and one.controller in controllers]
    period = DAY if any(one.at < now - HOUR for one in known) else HOUR
    interval = period / COLUMNS
    end = _next_interval(now, interval)
    axis = TimeAxis(end - period, end, left=LEFT)
    counts: Counter[tuple[str, int]] = Counter()
    warnings: Counter[tuple[str, int]] = Counter()
    for one in known:
        place = one.controller, min(max((one.at - axis.start) // interval, 0), COLUMNS - 1)
        counts[place] += one.times
        warnings[place] += one.times if one.is_warning else 0
    tallest = max(counts.values(), default=0)
    rows = []
    for number, name in enumerate(controllers):
        base = TOP + ROW * (number + 1) - 8
        places = sorted(place for place in counts if place[0] == name)
        columns = tuple(
            _column(axis, interval, place[1], (counts[place], warnings[place]), base, tallest) for place in places
        )
        mine = [one for one in known if one.controller == name]
        rows.append(
            ActivityRow(
                name,
                base,
                columns,
                sum(counts[place] for place in places),
                sum(warnings[place] for place in places),
                sum(one.times for one in mine if not one.is_verified),
                max((one.at for one in mine), default=None),
            )
        )
    height = TOP + ROW * len(controllers) + 20
    return ActivityChart(tuple(rows), axis.ticks, height, "24 hours" if period == DAY else "hour", tallest)


def _next_interval(now: datetime, interval: timedelta) -> datetime:
    midnight = now.replace(hour=0, minute=0, second=0, microsecond=0)
    return midnight + ((now - midnight) // interval + 1) * interval


def _column(  # noqa: PLR0913, PLR0917 - the geometry of one column
    axis: TimeAxis, interval: timedelta, number: int, counts: tuple[int, int], base: int, tallest: int
) -> ActivityColumn:
    events, warnings = counts
    since = axis.start + number * interval
    x = axis.x(since)
    scale = TALLEST / tallest
    height = max(round(events * scale, 1), LEAST_HEIGHT)
    warned = f", {warnings:,} of them warnings" if warnings else ""
    title = f"{since:%H:%M} UTC: {events:,} event{'' if events == 1 else 's'}{warned}"
    part = max(round(warnings * scale, 1), LEAST_HEIGHT) if warnings else 0.0
    return ActivityColumn(
        x, round(axis.x(since + interval) - x - 1, 1), base - height, height, min(part, height), title
    )
