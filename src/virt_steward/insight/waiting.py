"""InstallPlans that wait: for what, in the words of the approver that lets them wait, and whether a person can help."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from virt_steward.controllers.approver.decide import decide
from virt_steward.controllers.approver.verdicts import NEED_NOBODY, ApprovePlan, PlanReason, WaitForPlan

if TYPE_CHECKING:
    from datetime import datetime

    from virt_steward.controllers.approver.observation import ApproverObservation
    from virt_steward.objects.identity import Key

UNCOVERED = "NoApprover"
APPROVES = "Approves"


@dataclass(frozen=True, slots=True)
class PendingInstallPlan:
    """One plan that OLM would run if it were approved."""

    key: Key
    csvs: tuple[str, ...]
    since: datetime
    reason: str
    message: str
    until: datetime | None = None
    """When time alone removes the objection, if it does."""
    approver: Key | None = None
    """Who lets it wait; None if no approver looks after it."""

    @property
    def needs_a_person(self) -> bool:
        return self.until is None and self.reason not in {*NEED_NOBODY, APPROVES}

    @property
    def is_outdated(self) -> bool:
        return self.reason == PlanReason.SUPERSEDED


def waiting(seen: ApproverObservation, now: datetime) -> PendingInstallPlan | None:
    """None: the plan does not wait."""
    plan = seen.plan
    if not plan.is_open:
        return None
    known = plan.metadata.key, plan.csvs, plan.metadata.creation_timestamp
    if seen.is_denied:  # by us, which says nothing of what the approver sees
        return PendingInstallPlan(
            *known, PlanReason.NAMESPACE_DENIED, "not all that bears on it may be read, so nobody can tell why"
        )
    opinions = decide(seen, now).verdicts
    for one in opinions:
        if isinstance(one.verdict, ApprovePlan):
            return PendingInstallPlan(*known, APPROVES, one.verdict.reason, approver=one.approver.metadata.key)
    for one in opinions:
        if isinstance(wait := one.verdict, WaitForPlan):
            return PendingInstallPlan(*known, wait.reason, wait.message, wait.until, one.approver.metadata.key)
    return PendingInstallPlan(
        *known, UNCOVERED, "no InstallPlanApprover looks after it: approve it by hand, or make one"
    )
