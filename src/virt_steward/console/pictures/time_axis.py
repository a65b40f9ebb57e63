"""A horizontal axis of time: where a moment is, and ticks at round times."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

WIDTH = 960
RIGHT = 936
"""Where the axis ends, so that the label of a last tick fits."""
MOST_TICKS = 7
SHORTEST = timedelta(seconds=10)
"""An axis is at least so long."""
SECONDS = (1, 2, 5, 10, 15, 30)
STEPS = tuple(
    timedelta(seconds=seconds)
    for seconds in (
        *SECONDS,
        *(60 * step for step in SECONDS),
        *(3600 * step for step in (1, 2, 3, 6, 12, 24, 48, 7 * 24)),
    )
)


class Tick(NamedTuple):
    """A labelled moment."""

    x: float
    label: str


@dataclass(frozen=True, slots=True)
class TimeAxis:
    """From `start` at `left` to `end` at `right`."""

    start: datetime
    end: datetime
    left: int = 0
    right: int = RIGHT

    @property
    def length(self) -> timedelta:
        return max(self.end - self.start, SHORTEST)

    def x(self, moment: datetime) -> float:
        """Where it is; a moment outside is at the nearest end."""
        part = (moment - self.start) / self.length
        return round(self.left + (self.right - self.left) * min(max(part, 0.0), 1.0), 1)

    @property
    def ticks(self) -> tuple[Tick, ...]:
        """At round times in UTC, at most seven."""
        step = next((one for one in STEPS if self.length / one < MOST_TICKS), STEPS[-1])
        midnight = self.start.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
        moment = midnight + -((midnight - self.start) // step) * step
        found: list[Tick] = []
        while moment <= self.start + self.length and len(found) < MOST_TICKS:
            found.append(Tick(self.x(moment), moment.strftime(_form(step))))
            moment += step
        return tuple(found)


def _form(step: timedelta) -> str:
    if step < timedelta(minutes=1):
        return "%H:%M:%S"
    return "%H:%M" if step < timedelta(days=1) else "%d %b"
