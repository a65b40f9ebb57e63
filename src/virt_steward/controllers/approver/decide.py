"""Decides on a plan from an observation. Pure functions."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from virt_steward.controllers.approver.checks import CHECKS, SCOPE, PlanCase, reasons
from virt_steward.controllers.approver.observation import csvs_of
from virt_steward.controllers.approver.scope import is_limited
from virt_steward.controllers.approver.verdicts import ApprovePlan, LeavePlan, PlanReason, WaitForPlan
from virt_steward.objects.checks import CheckResult

if TYPE_CHECKING:
    from datetime import datetime

    from virt_steward.controllers.approver.observation import Approver, ApproverObservation
    from virt_steward.controllers.approver.verdicts import Verdict
    from virt_steward.objects.identity import Key


@dataclass(frozen=True, slots=True)
class ApproverVerdict:
    """The verdict of one approver on a plan."""

    approver: Approver
    verdict: Verdict


@dataclass(frozen=True, slots=True)
class ApprovalDecision:
    """Which approver approves, and why."""

    approver: Approver
    reason: str


@dataclass(frozen=True, slots=True)
class PlanDecision:
    """The verdicts of all approvers on a plan, the oldest first: the first that approves it acts."""

    verdicts: tuple[ApproverVerdict, ...]

    @property
    def approval(self) -> ApprovalDecision | None:
        for one in self.verdicts:
            if isinstance(one.verdict, ApprovePlan):
                return ApprovalDecision(one.approver, one.verdict.reason)
        return None

    def refused(self, message: str) -> PlanDecision:
        """The same decision after the API server refused the approval."""
        wait = WaitForPlan(PlanReason.APPROVAL_REFUSED, f"the API server refuses the approval: {message}")
        return PlanDecision(
            tuple(replace(one, verdict=wait) if isinstance(one.verdict, ApprovePlan) else one for one in self.verdicts)
        )

    @property
    def waits(self) -> dict[Key, WaitForPlan]:
        """Why the plan is pending, by approver."""
        return {one.approver.metadata.key: one.verdict for one in self.verdicts if isinstance(one.verdict, WaitForPlan)}


def decide(observation: ApproverObservation, now: datetime) -> PlanDecision:
    return PlanDecision(tuple(ApproverVerdict(case.approver, _evaluate(case)) for case in cases_of(observation, now)))


def cases_of(observation: ApproverObservation, now: datetime) -> tuple[PlanCase, ...]:
    """The plan as a case for each approver, the oldest first.

    If an approver of a policy namespace covers the plan, the others leave it, whatever that approver decides: a plan
    that an admin holds is not approved by anybody else.
    """
    items, policies = csvs_of(observation), observation.policy_namespaces
    cases = tuple(PlanCase(observation, items, approver, now) for approver in observation.approvers)
    limited = tuple(is_limited(approver, policies) for approver in observation.approvers)
    if not any(limited) or not any(_covers(case) for case, yes in zip(cases, limited, strict=True) if not yes):
        return cases
    return tuple(replace(case, is_left_to_policy=True) for case in cases)


def _covers(case: PlanCase) -> bool:
    return not any(isinstance(check.run(case), LeavePlan) for check in SCOPE)


def trace(case: PlanCase) -> tuple[CheckResult, ...]:
    """The whole chain for users: checks after the one that decided are not reached."""
    results: list[CheckResult] = []
    decided = False
    for check in CHECKS:
        refusal = None if decided else check.run(case)
        if decided:
            results.append(CheckResult(check.title, "not reached"))
        elif refusal is None:
            results.append(CheckResult(check.title, "pass", check.passed(case)))
        else:
            decided = True
            results.append(CheckResult(check.title, "fail", refusal.message, decided))
    return tuple(results)


def _evaluate(case: PlanCase) -> Verdict:
    for check in CHECKS:
        refusal = check.run(case)
        if refusal is not None:
            return refusal
    return ApprovePlan(reasons(case))
