"""Decides on a plan from an observation. Pure functions."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from virt_steward.controllers.approver.checks import CHECKS, SCOPE, PlanCase, reasons
from virt_steward.controllers.approver.observation import csvs_of
from virt_steward.controllers.approver.policy import ADMISSION_POLICY, approved_by
from virt_steward.controllers.approver.scope import is_limited
from virt_steward.controllers.approver.verdicts import ApprovePlan, LeavePlan, PlanReason, WaitForPlan
from virt_steward.objects.approvals import unenforced
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

    @property
    def approves(self) -> bool:
        return isinstance(self.verdict, ApprovePlan)

    @property
    def needs_people(self) -> bool:
        policy = self.approver.spec.policy
        return policy is not None and policy.approvals is not None


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
        return PlanDecision(tuple(replace(one, verdict=wait) if one.approves else one for one in self.verdicts))

    @property
    def is_by_people(self) -> bool:
        """Whether it depends on approvals that people gave."""
        return any(one.approves and one.needs_people for one in self.verdicts)

    @property
    def required_approvals(self) -> int:
        """How many people must approve the plan before an approver does; 0 if it does not wait for people."""
        policies = (
            one.approver.spec.policy
            for one in self.verdicts
            if isinstance(one.verdict, WaitForPlan)
            and one.verdict.reason in (PlanReason.WAITING_FOR_APPROVALS, PlanReason.APPROVALS_NOT_ENFORCED)
            and not one.approver.spec.dry_run
        )
        return min((one.approvals.required for one in policies if one and one.approvals), default=0)

    def unenforced(self) -> PlanDecision:
        """The same decision while approvals of people prove nothing: those approvers that need them wait."""
        wait = WaitForPlan(PlanReason.APPROVALS_NOT_ENFORCED, unenforced(ADMISSION_POLICY))
        waits = (one.approves and one.needs_people for one in self.verdicts)
        return PlanDecision(
            tuple(replace(one, verdict=wait) if yes else one for one, yes in zip(self.verdicts, waits, strict=True))
        )

    @property
    def gates(self) -> tuple[str, ...]:
        """Gates whose answers may lead to an approval; none if there is one already."""
        return () if self.approval else tuple(name for wait in self.waits.values() for name in wait.gates)

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
    people = approved_by(case)
    return ApprovePlan(f"{people}; {reasons(case)}" if people else reasons(case))
