"""What the controllers have told lately: their events as one timeline, and a few lines that sum it up."""

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

SUMMED_UP = {
    ("approver", "Approved"): ("InstallPlan approved as pinned", "InstallPlans approved as pinned"),
    ("placement", "Placed"): ("machine placed", "machines placed"),
    ("autopilot", "AssetApplied"): ("object brought to best practice", "objects brought to best practice"),
    ("autopilot", "DriftCorrected"): ("drift corrected", "drifts corrected"),
    ("advisor", "Completed"): ("plan carried out", "plans carried out"),
    ("advisor", "Failed"): ("plan that failed", "plans that failed"),
}
"""By controller and reason, for one and for several. What is not here is for the timeline alone."""


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


NOBODY = Subject()


class Series(msgspec.Struct, frozen=True, rename="camel", gc=False):
    count: int = 1
    last_observed_time: datetime | None = None


class EventRecord(msgspec.Struct, frozen=True, rename="camel"):
    """An event of ours."""

    metadata: Meta
    reporting_controller: str = ""
    type: str = ""
    reason: str = ""
    note: str = ""
    regarding: Subject = NOBODY
    related: Subject | None = None
    event_time: datetime | None = None
    series: Series | None = None

    @property
    def controller(self) -> str:
        """Who has told it."""
        return _CONTROLLERS.get(self.reporting_controller, self.reporting_controller)

    @property
    def at(self) -> datetime:
        """When it happened last."""
        again = self.series.last_observed_time if self.series else None
        return again or self.event_time or LONG_AGO

    @property
    def times(self) -> int:
        return self.series.count if self.series else 1

    @property
    def is_warning(self) -> bool:
        return self.type == "Warning"

    @property
    def about(self) -> Subject:
        """The object itself, where many are reported on one."""
        return self.related or self.regarding


class ActivityLine(NamedTuple):
    """So many of one sort of news, and when the last of them came."""

    number: int
    what: str
    controller: str
    last: datetime


def timeline(told: Iterable[EventRecord], *, words: str = "", controller: str = "") -> tuple[EventRecord, ...]:
    """Those that hold all of the words, the newest first."""
    wanted = words.casefold().split()
    found = (one for one in told if controller in ("", one.controller) and all(word in _text(one) for word in wanted))
    return tuple(sorted(found, key=lambda one: (one.at, one.metadata.key), reverse=True))


def summary(told: Iterable[EventRecord], since: datetime) -> tuple[ActivityLine, ...]:
    """What was done without anybody, in a few lines."""
    counts: Counter[tuple[str, str]] = Counter()
    last: dict[tuple[str, str], datetime] = {}
    for one in told:
        sort = one.controller, one.reason
        if sort in SUMMED_UP and one.at >= since:
            counts[sort] += one.times
            last[sort] = max(one.at, last.get(sort, LONG_AGO))
    lines = (ActivityLine(counts[sort], SUMMED_UP[sort][counts[sort] > 1], sort[0], last[sort]) for sort in counts)
    return tuple(sorted(lines, key=lambda line: line.last, reverse=True))


def _text(told: EventRecord) -> str:
    return f"{told.controller} {told.reason} {told.note} {told.regarding} {told.about}".casefold()
