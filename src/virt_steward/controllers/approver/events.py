"""Tells people of approvals: one by one as long as they can follow, and a flood by its number."""

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

ONE_BY_ONE = Rate(capacity=25, per_second=1 / 10)
"""Approvals of one approver that are told each by itself."""
PATIENCE = 1.0
"""Seconds that a status is put off for the events that should be there before it."""


class ApprovalEvents:
    """Events and notices of approvals, told before a status counts them.

    A process that is killed in between leaves them to the next one, which tells all of them again: events are the
    same by their names, notices by their ids.
    """

    def __init__(self, recorder: Recorder, notices: ApproverNotifications, clock: Clock) -> None:
        self._recorder = recorder
        self._notices = notices
        self._clock = clock
        self._pace: KeyedBuckets[Key] = KeyedBuckets(ONE_BY_ONE)
        self._told: dict[Key, frozenset[str]] = {}
        self._sending: dict[Key, asyncio.Task[None]] = {}

    def tell(self, approver: Approver, plans: Sequence[InstallPlan], total: int) -> None:
        """Tell of plans that the status does not count yet, the oldest first; `total` is its count with them."""
        key = approver.metadata.key
        told = self._told.get(key, frozenset())  # and not counted, since the write of the status was refused
        self._told[key] = frozenset(plan.metadata.uid for plan in plans)
        news = [plan for plan in plans if plan.metadata.uid not in told]
        alone = self._followable(key, len(news))
        for plan in news[:alone]:
            self._tell_one(approver, plan)
        if rest := news[alone:]:
            self._tell_number(approver, rest, total)
        if news:
            self._sending[key] = asyncio.create_task(self._recorder.flush(PATIENCE), name=f"events of {key}")

    def is_telling(self, approver: Key) -> bool:
        """Whether events of it are still on their way to the server, and not for too long."""
        sending = self._sending.get(approver)
        return sending is not None and not sending.done()

    def gone(self, approver: Key) -> None:
        self._told.pop(approver, None)
        if sending := self._sending.pop(approver, None):
            sending.cancel()

    def _followable(self, approver: Key, plans: int) -> int:
        now = self._clock.now()
        return next((one for one in range(plans) if not isinstance(self._pace.take(approver, now), TokenTaken)), plans)

    def _tell_one(self, approver: Approver, plan: InstallPlan) -> None:
        note = f"approved by InstallPlanApprover {approver.metadata.key}: {plan.stamp.because}"
        self._recorder.once(Occurrence(regarding(plan), "Normal", "Approved", "Approve", note))
        self._notices.approved(plan, approver)

    def _tell_number(self, approver: Approver, plans: Sequence[InstallPlan], total: int) -> None:
        """On the approver itself: nobody reads hundreds of events, and a server should not have to keep them."""
        namespaces = len({plan.metadata.namespace for plan in plans})
        note = (
            f"approved {len(plans)} more InstallPlans in {namespaces} namespaces, {total} by now, the last of them "
            f"{plans[-1].metadata.key}; the annotation {APPROVED_BECAUSE} of each says why"
        )
        which = Regarding(
            Ref(INSTALL_PLAN_APPROVER, approver.metadata.key),
            f"{INSTALL_PLAN_APPROVER.group}/v1alpha1",
            approver.metadata.uid,
        )
        self._recorder.once(Occurrence(which, "Normal", "ApprovedMany", "Approve", note, episode=str(total)))
        self._notices.approved_many(plans, approver, total)


def regarding(plan: InstallPlan) -> Regarding:
    return Regarding(Ref(INSTALL_PLAN, plan.metadata.key), API_VERSION, plan.metadata.uid)
