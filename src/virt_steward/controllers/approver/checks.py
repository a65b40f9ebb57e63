"""The chain that a plan passes on its way to an approval, in order. The first check that does not hold decides."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from virt_steward.controllers.approver import policy
from virt_steward.controllers.approver.conditions import how_to_allow
from virt_steward.controllers.approver.olm import PACKAGE_LABEL, REQUIRES_APPROVAL
from virt_steward.controllers.approver.verdicts import LeavePlan, PlanReason, WaitForPlan
from virt_steward.objects.versions import Version, version_of

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from virt_steward.controllers.approver.observation import Approver, ApproverObservation, PlanCsv

    Check = Callable[["PlanCase"], LeavePlan | WaitForPlan | None]

LEAVE_IT = "leave this plan as it is, or delete it"


@dataclass(frozen=True, slots=True)
class PlanCase:
    """One plan before one approver."""

    seen: ApproverObservation
    items: tuple[PlanCsv, ...]
    approver: Approver
    now: datetime


def not_yet_approved(case: PlanCase) -> LeavePlan | None:
    if case.seen.plan.approved:
        return LeavePlan(PlanReason.ALREADY_APPROVED, "the plan is approved")
    return None


def approval_is_manual(case: PlanCase) -> LeavePlan | None:
    approval = case.seen.plan.approval
    if approval != "Manual":
        return LeavePlan(PlanReason.AUTOMATIC, f"the plan's approval is {approval or 'not set'}: OLM asks nobody")
    return None


def waits_for_approval(case: PlanCase) -> LeavePlan | None:
    """Approved earlier than this phase, a plan never runs: OLM makes another one, again and again."""
    phase = case.seen.plan.phase
    if phase != REQUIRES_APPROVAL:
        return LeavePlan(PlanReason.NOT_WAITING, f"the plan is in phase {phase or 'none yet'}, not {REQUIRES_APPROVAL}")
    return None


def namespace_is_in_scope(case: PlanCase) -> LeavePlan | None:
    spec, namespace = case.approver.spec, case.seen.plan.metadata.namespace
    if spec.target_namespaces and namespace not in spec.target_namespaces:
        return LeavePlan(PlanReason.OUT_OF_SCOPE, f"namespace {namespace} is none of its targetNamespaces")
    labels = case.seen.namespace_labels
    if spec.namespace_selector and (labels is None or not spec.namespace_selector.matches(labels)):
        return LeavePlan(
            PlanReason.OUT_OF_SCOPE, f"the labels of namespace {namespace} do not match its namespaceSelector"
        )
    return None


def operators_are_in_scope(case: PlanCase) -> LeavePlan | WaitForPlan | None:
    names = case.approver.spec.operator_names
    if not names:
        return None
    inside = [item for item in case.items if item.csv.startswith(names)]
    outside = [item for item in case.items if item not in inside and not item.is_new_dependency]
    return _partly_outside(inside, outside, "operatorNames")


def subscriptions_are_in_scope(case: PlanCase) -> LeavePlan | WaitForPlan | None:
    selector = case.approver.spec.subscription_selector
    if not selector:
        return None
    outside = [
        item for item in case.items if any(not selector.matches(one.metadata.labels) for one in item.subscriptions)
    ]
    inside = [item for item in case.items if item.subscriptions and item not in outside]
    return _partly_outside(inside, outside, "subscriptionSelector")


def _partly_outside(inside: list[PlanCsv], outside: list[PlanCsv], limit: str) -> LeavePlan | WaitForPlan | None:
    """A plan that is none of ours is left alone; one that is partly ours waits, and says what else it carries."""
    if not outside:
        return None
    others = ", ".join(item.csv for item in outside)
    if not inside:
        return LeavePlan(PlanReason.OUT_OF_SCOPE, f"its {limit} leave out {others}")
    ours = ", ".join(item.csv for item in inside)
    message = f"the plan carries {ours}, but also {others}, which the approver's {limit} leave out"
    return WaitForPlan(PlanReason.OUT_OF_SCOPE, f"{message}: widen them, or approve it by hand")


def everything_can_be_read(case: PlanCase) -> WaitForPlan | None:
    if case.seen.is_denied:
        namespace = case.seen.plan.metadata.namespace
        message = f"the controller may not see all of namespace {namespace}: {how_to_allow([namespace])}"
        return WaitForPlan(PlanReason.NAMESPACE_DENIED, message)
    if case.seen.unreadable:
        names = ", ".join(case.seen.unreadable)
        return WaitForPlan(
            PlanReason.UNREADABLE, f"Subscription {names} cannot be read, so its pin is unknown: correct it"
        )
    return None


def every_csv_belongs_to_an_operator(case: PlanCase) -> WaitForPlan | None:
    if not case.items:
        message = "the plan names no ClusterServiceVersion: delete it, and OLM makes a new one"
        return WaitForPlan(PlanReason.UNKNOWN_PACKAGE, message)
    for item in case.items:
        if item.package is None:
            message = f"plan and Subscriptions do not tell, or not in agreement, the package of {item.csv or 'a CSV'}"
            remedy = "delete the plan, and OLM makes a new one, or approve it by hand"
            return WaitForPlan(PlanReason.UNKNOWN_PACKAGE, f"{message}: {remedy}")
        if not item.subscriptions and not item.is_new_dependency:
            return _not_subscribed(item, case.seen.plan.metadata.namespace)
    return None


def _not_subscribed(item: PlanCsv, namespace: str) -> WaitForPlan:
    """Say why it is no new dependency either, and the way out."""
    if item.is_brought and item.present == item.unmarked:
        others = ", ".join(item.unmarked)
        return WaitForPlan(
            PlanReason.UNKNOWN_PACKAGE,
            f"{item.csv} may be an upgrade and no new dependency, since nothing tells the package of {others} "
            f"in the namespace: label that {PACKAGE_LABEL}<its package>.{namespace}, delete it if nobody needs it, "
            "or approve the plan by hand",
        )
    there = ", ".join(csv for csv in item.present if csv not in item.unmarked)
    message = f"no Subscription in the namespace is for {item.package}, the package of {item.csv}"
    message += f", though {there} is there" if there else ""
    remedy = f"subscribe to it with startingCSV {item.csv}, or approve the plan by hand"
    return WaitForPlan(PlanReason.NO_SUBSCRIPTION, f"{message}: {remedy}")


def subscriptions_have_caught_up(case: PlanCase) -> WaitForPlan | None:
    """OLM writes a plan first and its Subscriptions a moment later."""
    plan = case.seen.plan
    for item in case.items:
        for one in item.subscriptions:
            if not item.is_current and one.status.plan_generation < plan.generation:
                message = f"OLM has not yet updated Subscription {one.metadata.name}, which should offer {item.csv}"
                message += ": if it does not soon, look at the log of its catalog operator"
                return WaitForPlan(PlanReason.SUBSCRIPTION_BEHIND, message)
    return None


def not_superseded(case: PlanCase) -> WaitForPlan | None:
    """OLM leaves an outdated plan waiting for ever; a pin that moves back must not run it."""
    plan = case.seen.plan
    for item in case.items:
        if not item.is_new_dependency and not item.is_current:
            offered = ", ".join(sorted({one.status.current_csv or "nothing" for one in item.subscriptions}))
            message = f"OLM has moved on: for {item.package} it now offers {offered}, not {item.csv}: {LEAVE_IT}"
            return WaitForPlan(PlanReason.SUPERSEDED, message)
    for other in case.seen.siblings:
        if other.generation > plan.generation and set(other.csvs) == set(plan.csvs):
            return WaitForPlan(
                PlanReason.SUPERSEDED, f"plan {other.metadata.name} is newer and carries the same: {LEAVE_IT}"
            )
    if all(item.is_installed for item in case.items):
        return WaitForPlan(PlanReason.SUPERSEDED, f"everything in the plan is installed already: {LEAVE_IT}")
    return None


def every_csv_is_pinned(case: PlanCase) -> WaitForPlan | None:
    """One plan can carry several operators: what is not pinned must be wanted by a person, or be a new dependency."""
    unwanted = [item for item in case.items if not item.is_wanted]
    pinned = [item for item in case.items if item.is_pinned]
    if pinned and unwanted:
        return _rides_along(pinned, unwanted)
    if unwanted:
        return _not_the_pin(unwanted[0])
    if not pinned:
        return WaitForPlan(
            PlanReason.NOT_PINNED, "no Subscription of the plan has a startingCSV: pin one, or approve it by hand"
        )
    return None


def dependencies_are_allowed(case: PlanCase) -> WaitForPlan | None:
    rules = case.approver.spec.policy
    new = [item.csv for item in case.items if item.is_new_dependency]
    if new and rules and not rules.allow_dependencies:
        message = f"the plan would also install {', '.join(new)}, and the policy allows no dependencies"
        return WaitForPlan(
            PlanReason.DEPENDENCY_NOT_ALLOWED, f"{message}: set policy.allowDependencies, or approve it by hand"
        )
    return None


def automatic_approval_is_on(case: PlanCase) -> WaitForPlan | None:
    if not case.approver.spec.auto_approve:
        return WaitForPlan(PlanReason.AUTO_APPROVE_OFF, "autoApprove is off: approve it by hand, or turn it on")
    return None


def not_a_dry_run(case: PlanCase) -> WaitForPlan | None:
    if case.approver.spec.dry_run:
        return WaitForPlan(
            PlanReason.DRY_RUN, "everything allows it, but dryRun is on: turn it off, or approve it by hand"
        )
    return None


CHECKS: tuple[Check, ...] = (
    not_yet_approved,
    approval_is_manual,
    waits_for_approval,
    namespace_is_in_scope,
    operators_are_in_scope,
    subscriptions_are_in_scope,
    everything_can_be_read,
    every_csv_belongs_to_an_operator,
    subscriptions_have_caught_up,
    not_superseded,
    every_csv_is_pinned,
    dependencies_are_allowed,
    automatic_approval_is_on,
    *policy.CHECKS,
    not_a_dry_run,
)


def _rides_along(pinned: list[PlanCsv], unwanted: list[PlanCsv]) -> WaitForPlan:
    rider = unwanted[0]
    wanted = ", ".join(item.csv for item in pinned)
    pin = f"its pin is {rider.pin}" if rider.pin else "it has no pin"
    remedy = _how_to_own(rider) if rider.is_left_to_olm else f"pin {rider.csv} too"
    return WaitForPlan(
        PlanReason.RIDES_ALONG,
        f"{wanted} is pinned, but the plan would also install {rider.csv}, and {pin}: "
        f"{remedy}, or approve the plan by hand; OLM offers no other",
    )


def _how_to_own(item: PlanCsv) -> str:
    """What OLM made for a dependency pins nothing, whatever it says."""
    name = item.subscriptions[0].metadata.name
    return (
        f"Subscription {name} was made by OLM, so its startingCSV is no pin; keep it in Git with startingCSV "
        f"{item.csv}, and remove its annotation olm.generated-by"
    )


def _not_the_pin(item: PlanCsv) -> WaitForPlan:
    """Say which of the ways to miss a pin this is, and the way out."""
    offered, pin = item.csv, item.pin
    if item.is_left_to_olm:
        return WaitForPlan(PlanReason.NOT_PINNED, f"{offered} is offered: {_how_to_own(item)}, or approve it by hand")
    if not pin:
        return WaitForPlan(
            PlanReason.NOT_PINNED, f"{offered} is offered, and no startingCSV pins {item.package}: set it"
        )
    if item.installed == pin:
        return WaitForPlan(
            PlanReason.NOT_PINNED, f"{pin} is pinned and installed; move startingCSV to {offered} to upgrade"
        )
    if not item.installed:  # nothing has to be passed on the way: OLM offers the pin once this plan is gone
        message = f"{pin} is pinned, but this plan is for {offered}: delete it, and OLM makes one for the pin if it can"
        return WaitForPlan(PlanReason.PIN_NOT_OFFERED, message)
    if _is_before(offered, pin):
        message = f"{pin} is pinned, and OLM goes there by way of {offered}: set startingCSV to that first"
        return WaitForPlan(PlanReason.INTERMEDIATE_VERSION, message)
    message = f"{pin} is pinned, but OLM offers {offered}: pin that, or a version that the channel still has"
    return WaitForPlan(PlanReason.PIN_NOT_OFFERED, message)


def _is_before(one: str, other: str) -> bool:
    earlier, later = version_of(one), version_of(other)
    return isinstance(earlier, Version) and isinstance(later, Version) and earlier < later
