"""Events and notifications of approvals: one for each, or one for many at once."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from virt_steward.apis.installplanapprover import INSTALL_PLAN_APPROVER
from virt_steward.controllers.approver.olm import API_VERSION, APPROVED_BECAUSE, INSTALL_PLAN
from virt_steward.kube.events import Occurrence
from virt_steward.objects.identity import Ref, Regarding
from virt_steward.runtime.throttle import KeyedBuckets, Rate, TokenTaken

if TYPE_CHECKING:
    from collections.abc import Sequence

    from virt_steward.controllers.approver.notifications import ApproverNotifications
    from virt_steward.controllers.approver.observation import Approver
    from virt_steward.controllers.approver.olm import InstallPlan
    from virt_steward.kube.events import Recorder
    from virt_steward.objects.identity import Key
    from virt_steward.runtime.clock import Clock

EACH = Rate(capacity=25, per_second=1 / 10)
"""So many approvals of one approver get an event each; the rest are summed up."""
LONGEST_FLUSH = 1.0
"""Seconds for which a status waits for its events to be sent."""


class ApprovalEvents:
    """Sends the events and notifications of approvals before a status counts them.

    If the process is killed in between, the next one sends all of them again. That does no harm: the same approval has
    the same event name and the same notification id.
    """

    def __init__(self, recorder: Recorder, notifications: ApproverNotifications, clock: Clock) -> None:
        self._recorder = recorder
        self._notifications = notifications
        self._clock = clock
        self._pace: KeyedBuckets[Key] = KeyedBuckets(EACH)
        self._reported: dict[Key, frozenset[str]] = {}
        self._sending: dict[Key, asyncio.Task[None]] = {}

    def report(self, approver: Approver, plans: Sequence[InstallPlan], total: int) -> None:
        """Report plans that the status does not count yet, the oldest first; `total` is its count with them."""
        key = approver.metadata.key
        reported = self._reported.get(key, frozenset())  # but not counted, if the write of the status failed
        self._reported[key] = frozenset(plan.metadata.uid for plan in plans)
        fresh = [plan for plan in plans if plan.metadata.uid not in reported]
        single = self._take(key, len(fresh))
        for plan in fresh[:single]:
            self._report_one(approver, plan)
        if rest := fresh[single:]:
            self._report_many(approver, rest, total)
        if fresh:
            self._sending[key] = asyncio.create_task(self._recorder.flush(LONGEST_FLUSH), name=f"events of {key}")

    def is_sending(self, approver: Key) -> bool:
        """Whether its events are still being sent, and not for too long."""
        sending = self._sending.get(approver)
        return sending is not None and not sending.done()

    def forget(self, approver: Key) -> None:
        self._reported.pop(approver, None)
        if sending := self._sending.pop(approver, None):
            sending.cancel()

    def _take(self, approver: Key, plans: int) -> int:
        """How many of so many plans get an event each."""
        now = self._clock.now()
        return next((one for one in range(plans) if not isinstance(self._pace.take(approver, now), TokenTaken)), plans)

    def _report_one(self, approver: Approver, plan: InstallPlan) -> None:
        note = f"approved by InstallPlanApprover {approver.metadata.key}: {plan.stamp.because}"
        self._recorder.once(Occurrence(regarding(plan), "Normal", "Approved", "Approve", note))
        self._notifications.approved(plan, approver)

    def _report_many(self, approver: Approver, plans: Sequence[InstallPlan], total: int) -> None:
        """One event on the approver itself: hundreds would be read by nobody, and fill the server."""
        namespaces = len({plan.metadata.namespace for plan in plans})
        note = (
            f"approved {len(plans)} more InstallPlans in {namespaces} namespaces, {total} in total, the last of them "
            f"{plans[-1].metadata.key}; the annotation {APPROVED_BECAUSE} of each says why"
        )
        which = Regarding(
            Ref(INSTALL_PLAN_APPROVER, approver.metadata.key),
            f"{INSTALL_PLAN_APPROVER.group}/v1alpha1",
            approver.metadata.uid,
        )
        self._recorder.once(Occurrence(which, "Normal", "ApprovedMany", "Approve", note, episode=str(total)))
        self._notifications.approved_many(plans, approver, total)


def regarding(plan: InstallPlan) -> Regarding:
    return Regarding(Ref(INSTALL_PLAN, plan.metadata.key), API_VERSION, plan.metadata.uid)
