"""The checks of an approver's policy that narrow what is approved; `unpinned.py` has what widens it."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from virt_steward.apis.installplanapprover import INSTALL_PLAN_APPROVER
from virt_steward.controllers.approver.unpinned import out_of_range
from virt_steward.controllers.approver.verdicts import PlanReason, WaitForPlan
from virt_steward.controllers.approver.window_memory import REMEMBERED, WINDOWS
from virt_steward.holds.freezes import NOT_FROZEN, Frozen, NotFrozen, combined
from virt_steward.holds.gates import NotEvaluated, closed_gates
from virt_steward.objects.approvals import count_approvals
from virt_steward.objects.durations import BadDuration, parse_duration
from virt_steward.objects.ranges import BadRange, Range
from virt_steward.objects.wallclock import rfc3339
from virt_steward.objects.windows import Open

if TYPE_CHECKING:
    from datetime import datetime

    from virt_steward.apis.installplanapprover import Policy
    from virt_steward.controllers.approver.checks import PlanCase
    from virt_steward.holds.freezes import FreezeState
    from virt_steward.objects.approvals import ApprovalCount


ADMISSION_POLICY = f"approved-by.{INSTALL_PLAN_APPROVER.group}"
"""It holds approvals to the names of those who give them."""
WITHIN_WHAT = "policy.withinRange needs policy.versions: add the range of each operator that may follow it"


def policy_is_valid(case: PlanCase) -> WaitForPlan | None:
    """All of it must be valid: a range with a mistake may be meant to exclude what another one includes."""
    if fault := policy_fault(case.approver.spec.policy, case.now):
        return WaitForPlan(PlanReason.BAD_POLICY, f"{fault}; nothing is approved until it is corrected")
    return None


def versions_are_in_range(case: PlanCase) -> WaitForPlan | None:
    policy = case.approver.spec.policy
    refusals = (out_of_range(item, policy) for item in case.items) if policy else ()
    return next((refusal for refusal in refusals if refusal), None)


def is_first_installation(case: PlanCase) -> WaitForPlan | None:
    policy = case.approver.spec.policy
    for item in case.items:
        if policy and policy.first_install_only and item.replaced:
            doubt = " (of an unknown package, maybe this one)" if item.replaced in item.unmarked else ""
            message = f"{item.replaced} is installed{doubt}, and the policy allows first installations only"
            return WaitForPlan(PlanReason.NOT_FIRST_INSTALL, f"{message}: approve it manually")
    return None


def people_have_approved(case: PlanCase) -> WaitForPlan | None:
    """All other rules may be fulfilled: the plan waits for people nevertheless."""
    count = _approvals(case)
    if count is None or count.is_complete:
        return None
    remedy = f"approve it with 'virt-steward approve installplan {case.observation.plan.metadata.key}'"
    return WaitForPlan(PlanReason.WAITING_FOR_APPROVALS, f"{count}: {remedy}")


def approved_by(case: PlanCase) -> str:
    """The people who approved the plan, if the policy requires them."""
    count = _approvals(case)
    return f"approved by {', '.join(count.users)}" if count else ""


def _approvals(case: PlanCase) -> ApprovalCount | None:
    """None unless the policy requires approvals."""
    policy, plan = case.approver.spec.policy, case.observation.plan
    if policy is None or policy.approvals is None:
        return None
    return count_approvals(plan.metadata.approvals, plan.fingerprint, policy.approvals.required)


def is_old_enough(case: PlanCase) -> WaitForPlan | None:
    policy = case.approver.spec.policy
    if not policy or not policy.minimum_age:
        return None
    try:
        old = case.observation.plan.metadata.creation_timestamp + parse_duration(policy.minimum_age)
    except OverflowError:
        fault = f"policy.minimumAge: {policy.minimum_age} is too long"
        return WaitForPlan(PlanReason.BAD_POLICY, f"{fault}; nothing is approved until it is corrected")
    if case.now < old:
        return WaitForPlan(
            PlanReason.TOO_YOUNG,
            f"the plan is younger than {policy.minimum_age}; it is old enough at {rfc3339(old)}",
            old,
        )
    return None


def nothing_is_frozen(case: PlanCase) -> WaitForPlan | None:
    freeze = combined((case.observation.freeze, _own_freeze(case)))
    if isinstance(freeze, Frozen):
        return WaitForPlan(PlanReason.FROZEN, freeze.message, freeze.until)
    return None


def _own_freeze(case: PlanCase) -> FreezeState:
    """The freezes of the policy; one that is invalid is reported as a fault of the policy before."""
    policy = case.approver.spec.policy
    if not policy or not policy.freezes:
        return NOT_FROZEN
    now = WINDOWS.state(policy.freezes, case.now)
    return Frozen("policy.freezes", until=now.until) if isinstance(now, Open) else NotFrozen(now.until)


def is_inside_a_window(case: PlanCase) -> WaitForPlan | None:
    policy = case.approver.spec.policy
    if not policy or not policy.windows:
        return None
    now = WINDOWS.state(policy.windows, case.now)
    if isinstance(now, Open):
        return None
    if now.until is None:
        return WaitForPlan(
            PlanReason.OUTSIDE_WINDOW, "no maintenance window of the policy ever opens: correct its schedule"
        )
    return WaitForPlan(
        PlanReason.OUTSIDE_WINDOW,
        f"outside the maintenance windows; the next one opens at {rfc3339(now.until)}",
        now.until,
    )


def gates_of(case: PlanCase) -> tuple[str, ...]:
    """The gates that must be open: those of the policy, and those of the installation."""
    policy = case.approver.spec.policy
    return case.observation.gate_settings.of("approver", policy.gates if policy else ())


def gates_are_open(case: PlanCase) -> WaitForPlan | None:
    """A dry run approves nothing, so nothing is asked for it."""
    settings = case.observation.gate_settings
    closed = None if case.approver.spec.dry_run else closed_gates(gates_of(case), case.observation.gates)
    if closed is None:
        return None
    if isinstance(closed, NotEvaluated):
        return WaitForPlan(PlanReason.GATE_CLOSED, closed.message, gates=closed.names)
    return WaitForPlan(PlanReason.GATE_CLOSED, closed.message, recheck=settings.poll_seconds)


def policy_fault(policy: Policy | None, now: datetime) -> str | None:
    """What is invalid in the policy though the server accepted it; None if all is valid."""
    if policy is None:
        return None
    fields = (("windows", policy.windows), ("freezes", policy.freezes))
    faults = ((field, WINDOWS.fault(one, now)) for field, some in fields for one in some)
    return fault_of(policy) or next((f"policy.{field}: {fault}" for field, fault in faults if fault), None)


@lru_cache(maxsize=REMEMBERED)  # called for every plan and approver
def fault_of(policy: Policy) -> str | None:
    """The same, but for its windows."""
    field = ""
    try:
        for one in policy.versions:
            field = f"policy.versions of {one.operator}"
            Range.parse(one.range)
        if policy.within_range and not policy.versions:
            return WITHIN_WHAT
        field = "policy.minimumAge"
        if policy.minimum_age:
            parse_duration(policy.minimum_age)
    except (BadRange, BadDuration) as error:
        return f"{field}: {error}"
    return None
