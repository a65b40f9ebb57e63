"""The Event of a person's decision: the controller records it when it observes the decision's annotations.

The controller writes it and not the person, so that no right on Events is needed to decide, and so that the activity of
the console shows it as verified where only the controller can have written it.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from virt_steward.kube.events import Occurrence
from virt_steward.objects.wallclock import rfc3339

if TYPE_CHECKING:
    from datetime import datetime

    from virt_steward.kube.events import Recorder
    from virt_steward.objects.decision_record import DecisionRecord
    from virt_steward.objects.identity import Regarding

RECENT = timedelta(minutes=10)
"""Less than servers keep events: a decision that is older had its event, and must not get another after a restart."""


def report_decision(
    recorder: Recorder,
    record: DecisionRecord | None,
    regarding: Regarding,
    now: datetime,
    related: Regarding | None = None,
) -> None:
    """Record a recent decision once; repeated calls cost nothing."""
    if record is None or abs(now - record.at) > RECENT:
        return
    note = f"{related.ref}: {record}" if related else str(record)
    episode = f"{record.verb} {record.subject} {record.by} {rfc3339(record.at)}"
    recorder.once(Occurrence(regarding, "Normal", record.reason, "Decide", note, episode, related))
