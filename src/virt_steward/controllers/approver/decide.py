"""From what was seen to what is to be done, without looking anywhere else."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from virt_steward.controllers.approver.checks import CHECKS, PlanCase
from virt_steward.controllers.approver.observation import csvs_of
from virt_steward.controllers.approver.verdicts import ApprovePlan, PlanReason, WaitForPlan

if TYPE_CHECKING:
    from datetime import datetime

    from virt_steward.controllers.approver.checks import Check
    from virt_steward.controllers.approver.observation import Approver, ApproverObservation, PlanCsv
    from virt_steward.controllers.approver.verdicts import LeavePlan, Verdict
    from virt_steward.objects.identity import Key


@dataclass(frozen=True, slots=True)
class ApproverVerdict:
    """What one approver makes of a plan."""

    approver: Approver
    verdict: Verdict


@dataclass(frozen=True, slots=True)
class ApprovalDecision:
    """Who approves, and why."""

    approver: Approver
    because: str


@dataclass(frozen=True, slots=True)
class PlanDecision:
    """What all approvers make of a plan; the oldest that approves it acts."""

    opinions: tuple[ApproverVerdict, ...]

    @property
    def approval(self) -> ApprovalDecision | None:
        for one in self.opinions:
            if isinstance(one.verdict, ApprovePlan):
                return ApprovalDecision(one.approver, one.verdict.because)
        return None

    def refused(self, message: str) -> PlanDecision:
        """The same, after the server did not let the approval through."""
        wait = WaitForPlan(PlanReason.APPROVAL_REFUSED, f"the API server refuses the approval: {message}")
        return PlanDecision(
            tuple(replace(one, verdict=wait) if isinstance(one.verdict, ApprovePlan) else one for one in self.opinions)
        )

    @property
    def waits(self) -> dict[Key, WaitForPlan]:
        """What each approver that covers the plan waits for."""
        return {one.approver.metadata.key: one.verdict for one in self.opinions if isinstance(one.verdict, WaitForPlan)}


def decide(seen: ApproverObservation, now: datetime) -> PlanDecision:
    items = csvs_of(seen)
    return PlanDecision(
        tuple(ApproverVerdict(approver, _judge(PlanCase(seen, items, approver, now))) for approver in seen.approvers)
    )


def trace(case: PlanCase) -> list[tuple[Check, LeavePlan | WaitForPlan | None]]:
    """Every check up to the one that decides, with its answer: for those who ask why."""
    passed: list[tuple[Check, LeavePlan | WaitForPlan | None]] = []
    for check in CHECKS:
        refusal = check(case)
        passed.append((check, refusal))
        if refusal is not None:
            break
    return passed


def _judge(case: PlanCase) -> Verdict:
    for check in CHECKS:
        refusal = check(case)
        if refusal is not None:
            return refusal
    return ApprovePlan(_because(case))


def _because(case: PlanCase) -> str:
    return "; ".join(_why(item) for item in case.items)


def _why(item: PlanCsv) -> str:
    if item.is_pinned:
        return f"{item.csv} is the startingCSV of its Subscription"
    if item.is_new_dependency:
        return f"{item.csv} is a new dependency"
    if item.is_installed:
        return f"{item.csv} is installed already"
    return f"a person made the Subscription of {item.csv} Automatic"
