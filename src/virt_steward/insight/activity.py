"""The recent events of the controllers: as one timeline, and as a summary of a few lines.

Anyone who may create Events in a namespace can name any controller, and any object of any namespace, in them. So an
Event counts only where its controller records such Events (`is_recorded_there`), and one in a namespace that a tenant
may own is marked as not verified. `docs/decisions/0015-events-of-others.md` says why.
"""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from virt_steward.apis.installplanapprover import INSTALL_PLAN_APPROVER
from virt_steward.apis.kubevirtconfig import KUBEVIRT_CONFIG
from virt_steward.apis.virtplatformconfig import VIRT_PLATFORM_CONFIG
from virt_steward.controllers import REPORTERS
from virt_steward.controllers.approver.olm import INSTALL_PLAN
from virt_steward.controllers.placement.observation import MACHINE
from virt_steward.objects.meta import Meta
from virt_steward.platform.hco import HYPERCONVERGED

if TYPE_CHECKING:
    from collections.abc import Iterable

    from virt_steward.objects.identity import Key

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


CLUSTER_KINDS = {"advisor": {VIRT_PLATFORM_CONFIG.name}, "placement": {KUBEVIRT_CONFIG.name}}
"""Kinds without a namespace, whose events are in `default`, by the controller that records events on them."""
NAMESPACED_KINDS = {"approver": {INSTALL_PLAN.name, INSTALL_PLAN_APPROVER.name}, "placement": {MACHINE.name}}
"""Kinds in any namespace, by the controller that records events on them. All events of the autopilot are on the
HyperConverged."""

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
        """The object that it concerns: an asset's object where the autopilot recorded it on the HyperConverged."""
        return self.related if self.related and self.controller == "autopilot" else self.regarding

    @property
    def is_verified(self) -> bool:
        """Whether only admins of the platform can have written it, given that it is where it is recorded."""
        return self.regarding.kind not in NAMESPACED_KINDS.get(self.controller, ())


class ActivityLine(NamedTuple):
    """The number of events of one kind, and the time of the last one."""

    number: int
    what: str
    controller: str
    last: datetime
    is_verified: bool = True


def is_recorded_there(event: EventRecord, hco: Key) -> bool:
    """Whether its controller records events on such an object; `hco` is the HyperConverged of the platform."""
    subject, namespace = event.regarding, event.metadata.namespace
    if event.controller == "autopilot":
        is_hco = subject.kind == HYPERCONVERGED.name and (subject.namespace, subject.name) == (hco.namespace, hco.name)
        return is_hco and namespace == hco.namespace
    if subject.kind in CLUSTER_KINDS.get(event.controller, ()):
        return not subject.namespace and namespace == "default"
    return subject.kind in NAMESPACED_KINDS.get(event.controller, ()) and subject.namespace == namespace


def timeline(events: Iterable[EventRecord], *, words: str = "", controller: str = "") -> tuple[EventRecord, ...]:
    """The events that contain all of the words, the newest first."""
    wanted = words.casefold().split()
    found = (one for one in events if controller in ("", one.controller) and all(word in _text(one) for word in wanted))
    return tuple(sorted(found, key=lambda one: (one.at, one.metadata.key), reverse=True))


def summary(events: Iterable[EventRecord], since: datetime) -> tuple[ActivityLine, ...]:
    """Count what the controllers did by themselves, in a few lines."""
    counts: Counter[tuple[str, str]] = Counter()
    last: dict[tuple[str, str], datetime] = {}
    unverified: set[tuple[str, str]] = set()
    for one in events:
        kind = one.controller, one.reason
        if kind in SUMMARIZED and one.at >= since:
            counts[kind] += one.times
            last[kind] = max(one.at, last.get(kind, LONG_AGO))
            unverified |= set() if one.is_verified else {kind}
    lines = (
        ActivityLine(counts[kind], SUMMARIZED[kind][counts[kind] > 1], kind[0], last[kind], kind not in unverified)
        for kind in counts
    )
    return tuple(sorted(lines, key=lambda line: line.last, reverse=True))


def _text(event: EventRecord) -> str:
    return f"{event.controller} {event.reason} {event.note} {event.regarding} {event.about}".casefold()
