"""The recent events of the controllers: as one timeline, and as a summary of a few lines."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from virt_steward.controllers import REPORTERS
from virt_steward.objects.meta import Meta

if TYPE_CHECKING:
    from collections.abc import Iterable

LONG_AGO = datetime.fromtimestamp(0, UTC)

SUMMARIZED = {
    ("approver", "Approved"): ("InstallPlan approved as pinned", "InstallPlans approved as pinned"),
    ("placement", "Placed"): ("machine placed", "machines placed"),
    ("autopilot", "AssetApplied"): ("object applied", "objects applied"),
    ("autopilot", "DriftCorrected"): ("drift corrected", "drifts corrected"),
    ("advisor", "Completed"): ("plan completed", "plans completed"),
    ("advisor", "Failed"): ("plan failed", "plans failed"),
}
"""Texts by controller and reason, singular and plural. Other events are shown in the timeline only."""


_CONTROLLERS = {reporter: name for name, reporter in REPORTERS.items()}


class Subject(msgspec.Struct, frozen=True, rename="camel", gc=False):
    """The object that an event is about."""

    api_version: str = ""
    kind: str = ""
    namespace: str = ""
    name: str = ""

    @property
    def group(self) -> str:
        return self.api_version.rpartition("/")[0]

    def __str__(self) -> str:
        return f"{self.kind} {self.namespace}/{self.name}" if self.namespace else f"{self.kind} {self.name}"


NO_SUBJECT = Subject()


class Series(msgspec.Struct, frozen=True, rename="camel", gc=False):
    count: int = 1
    last_observed_time: datetime | None = None


class EventRecord(msgspec.Struct, frozen=True, rename="camel"):
    """An event that one of the controllers recorded."""

    metadata: Meta
    reporting_controller: str = ""
    type: str = ""
    reason: str = ""
    note: str = ""
    regarding: Subject = NO_SUBJECT
    related: Subject | None = None
    event_time: datetime | None = None
    series: Series | None = None

    @property
    def controller(self) -> str:
        """The controller that recorded it."""
        return _CONTROLLERS.get(self.reporting_controller, self.reporting_controller)

    @property
    def at(self) -> datetime:
        """When it happened last."""
        last = self.series.last_observed_time if self.series else None
        return last or self.event_time or LONG_AGO

    @property
    def times(self) -> int:
        return self.series.count if self.series else 1

    @property
    def is_warning(self) -> bool:
        return self.type == "Warning"

    @property
    def about(self) -> Subject:
        """The object that it concerns: an asset's object where the event is on the HyperConverged."""
        return self.related or self.regarding


class ActivityLine(NamedTuple):
    """The number of events of one kind, and the time of the last one."""

    number: int
    what: str
    controller: str
    last: datetime


def timeline(events: Iterable[EventRecord], *, words: str = "", controller: str = "") -> tuple[EventRecord, ...]:
    """The events that contain all of the words, the newest first."""
    wanted = words.casefold().split()
    found = (one for one in events if controller in ("", one.controller) and all(word in _text(one) for word in wanted))
    return tuple(sorted(found, key=lambda one: (one.at, one.metadata.key), reverse=True))


def summary(events: Iterable[EventRecord], since: datetime) -> tuple[ActivityLine, ...]:
    """Count what the controllers did by themselves, in a few lines."""
    counts: Counter[tuple[str, str]] = Counter()
    last: dict[tuple[str, str], datetime] = {}
    for one in events:
        kind = one.controller, one.reason
        if kind in SUMMARIZED and one.at >= since:
            counts[kind] += one.times
            last[kind] = max(one.at, last.get(kind, LONG_AGO))
    lines = (ActivityLine(counts[kind], SUMMARIZED[kind][counts[kind] > 1], kind[0], last[kind]) for kind in counts)
    return tuple(sorted(lines, key=lambda line: line.last, reverse=True))


def _text(event: EventRecord) -> str:
    return f"{event.controller} {event.reason} {event.note} {event.regarding} {event.about}".casefold()
