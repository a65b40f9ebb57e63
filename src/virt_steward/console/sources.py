"""What the console watches besides what controllers do: their events."""

from __future__ import annotations

from virt_steward.controllers import REPORTERS
from virt_steward.insight.activity import EventRecord
from virt_steward.kube.client import Selection
from virt_steward.kube.events import EVENT
from virt_steward.kube.watch import projection
from virt_steward.objects.identity import Kind
from virt_steward.runtime.access import Reach
from virt_steward.runtime.informer import Source

EVENTS_OF_OLD = Kind("", "Event", "events")
"""The same objects under their first name: roles may grant either."""


def _about(told: EventRecord) -> tuple[str]:
    return (str(told.about),)


EVENTS = tuple(
    Source(
        EVENT,
        projection(EventRecord),
        Selection(fields=f"reportingController={reporter}"),
        indexes={"about": _about},
        where=Reach.TARGETS,
    )
    for reporter in REPORTERS.values()
)
"""One for each controller: a cluster has far more events than ours."""
