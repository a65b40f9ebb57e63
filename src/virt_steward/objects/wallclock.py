"""Timestamps as Kubernetes writes them, and local times as instants, also at daylight saving changes."""

from __future__ import annotations

from bisect import bisect_left
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from datetime import date
    from zoneinfo import ZoneInfo

DAY = timedelta(days=1)


def rfc3339(moment: datetime) -> str:
    """A timestamp of the API, in UTC and whole seconds."""
    return moment.astimezone(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


def rfc3339_micro(moment: datetime) -> str:
    """A timestamp of Leases and Events, in UTC and microseconds."""
    return moment.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")


def parse_rfc3339(text: str) -> datetime | None:
    """Read a timestamp that others wrote; None if it is empty, invalid, or has no time zone."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    return moment.astimezone(UTC) if moment.tzinfo else None


def instants(local: datetime, zone: ZoneInfo) -> tuple[datetime, ...]:
    """The instants of a local time: one, or two if the clock goes back; for a skipped time, that of the jump."""
    early, late = (local.replace(tzinfo=zone, fold=fold).astimezone(UTC) for fold in (0, 1))
    if early > late:  # in a gap, the two are swapped, one on either side of the jump
        return (_jump(late, early, zone),)
    return (early,) if early == late else (early, late)


def midnight_of(day: date) -> datetime:
    return datetime(day.year, day.month, day.day)  # noqa: DTZ001 - a local time gets its zone later


def is_plain(day: date, zone: ZoneInfo) -> bool:
    """Whether the day has 24 hours, without a change of the clock."""
    midnight = midnight_of(day)
    return instants(midnight + DAY, zone)[-1] - instants(midnight, zone)[0] == DAY


def _jump(before: datetime, after: datetime, zone: ZoneInfo) -> datetime:
    """The first instant in between that has the new UTC offset."""
    old = before.astimezone(zone).utcoffset()

    def jumped(seconds: int) -> bool:
        return (before + timedelta(seconds=seconds)).astimezone(zone).utcoffset() != old

    between = range(int((after - before).total_seconds()))
    return before + timedelta(seconds=bisect_left(between, True, key=jumped))
