"""The checks before an approval, in order. The first that fails decides. Pure functions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from virt_steward.controllers.approver import policy
from virt_steward.controllers.approver.conditions import how_to_allow
from virt_steward.controllers.approver.olm import PACKAGE_LABEL, REQUIRES_APPROVAL
from virt_steward.controllers.approver.scope import is_limited, reaches
from virt_steward.controllers.approver.unpinned import allowance, is_before, objection
from virt_steward.controllers.approver.verdicts import LeavePlan, PlanReason, WaitForPlan
from virt_steward.holds.order import HoldKind, in_order

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from virt_steward.apis.installplanapprover import Policy
    from virt_steward.controllers.approver.observation import Approver, ApproverObservation, PlanCsv


LEAVE_IT = "ignore this plan, or delete it"
OR_MANUALLY = "or approve it manually"


@dataclass(frozen=True, slots=True)
class PlanCase:
    """One plan and one approver."""

    observation: ApproverObservation
    items: tuple[PlanCsv, ...]
    approver: Approver
    now: datetime
    is_left_to_policy: bool = False
    """An approver of a policy namespace covers the plan, so the others do not decide on it."""


@dataclass(frozen=True, slots=True)
class InstallPlanCheck:
    """A check with its title for users; `run` returns None if it passes."""

    title: str
    run: Callable[[PlanCase], LeavePlan | WaitForPlan | None]
    passed: Callable[[PlanCase], str] = lambda _: ""
    """What an explanation says of it when it passes."""


def not_approved_yet(case: PlanCase) -> LeavePlan | None:
    if case.observation.plan.approved:
        return LeavePlan(PlanReason.ALREADY_APPROVED, "the plan is approved already")
    return None


def approval_is_manual(case: PlanCase) -> LeavePlan | None:
    approval = case.observation.plan.approval
    if approval != "Manual":
        return LeavePlan(
            PlanReason.AUTOMATIC, f"the plan's approval is {approval or 'not set'}, not Manual: OLM needs no approval"
        )
    return None


def requires_approval(case: PlanCase) -> LeavePlan | None:
    """A plan that is approved before this phase never runs: OLM makes another one, again and again."""
    phase = case.observation.plan.phase
    if phase != REQUIRES_APPROVAL:
        return LeavePlan(PlanReason.NOT_WAITING, f"the plan is in phase {phase or 'not set'}, not {REQUIRES_APPROVAL}")
    return None


def namespace_is_in_scope(case: PlanCase) -> LeavePlan | None:
    spec, namespace = case.approver.spec, case.observation.plan.metadata.namespace
    home, policies = case.approver.metadata.namespace, case.observation.policy_namespaces
    if namespace != home and is_limited(case.approver, policies):
        message = f"{home} is not a policy namespace, so only plans of {home} are covered, not of {namespace}"
        return LeavePlan(PlanReason.OUT_OF_SCOPE, message)
    if not reaches(case.approver, namespace, policies):
        return LeavePlan(PlanReason.OUT_OF_SCOPE, f"namespace {namespace} is not in targetNamespaces")
    labels = case.observation.namespace_labels
    if spec.namespace_selector and (labels is None or not spec.namespace_selector.matches(labels)):
        return LeavePlan(PlanReason.OUT_OF_SCOPE, f"the labels of namespace {namespace} do not match namespaceSelector")
    return None


def operators_are_in_scope(case: PlanCase) -> LeavePlan | WaitForPlan | None:
    names = case.approver.spec.operator_names
    if not names:
        return None
    inside = [item for item in case.items if item.csv.startswith(names)]
    outside = [item for item in case.items if item not in inside and not item.is_new_dependency]
    return _partly_in_scope(inside, outside, "operatorNames")


def subscriptions_are_in_scope(case: PlanCase) -> LeavePlan | WaitForPlan | None:
    selector = case.approver.spec.subscription_selector
    if not selector:
        return None
    outside = [
        item for item in case.items if any(not selector.matches(one.metadata.labels) for one in item.subscriptions)
    ]
    inside = [item for item in case.items if item.subscriptions and item not in outside]
    return _partly_in_scope(inside, outside, "subscriptionSelector")


def _partly_in_scope(inside: list[PlanCsv], outside: list[PlanCsv], limit: str) -> LeavePlan | WaitForPlan | None:
    """A plan that is out of scope is ignored; one that is partly in scope is pending, and names what else it has."""
    if not outside:
        return None
    others = ", ".join(item.csv for item in outside)
    if not inside:
        return LeavePlan(PlanReason.OUT_OF_SCOPE, f"{others} not selected by {limit}")
    ours = ", ".join(item.csv for item in inside)
    message = f"the plan has {ours}, but also {others}, not selected by {limit}"
    return WaitForPlan(PlanReason.OUT_OF_SCOPE, f"{message}: extend {limit}, {OR_MANUALLY}")


def policy_namespaces_leave_it(case: PlanCase) -> LeavePlan | WaitForPlan | None:
    if not is_limited(case.approver, case.observation.policy_namespaces):
        return None
    if case.is_left_to_policy:
        message = "an InstallPlanApprover of a policy namespace covers the plan, so only those decide on it"
        return LeavePlan(PlanReason.LEFT_TO_POLICY, message)
    if denied := case.observation.denied_policies:
        names = ", ".join(denied)
        message = f"forbidden (403) to read the InstallPlanApprovers of {names}, of which one may cover the plan"
        return WaitForPlan(PlanReason.NAMESPACE_DENIED, f"{message}: {how_to_allow(denied)}")
    return None


def namespace_is_readable(case: PlanCase) -> WaitForPlan | None:
    if case.observation.is_denied:
        namespace = case.observation.plan.metadata.namespace
        message = f"forbidden (403) to read namespace {namespace}: {how_to_allow([namespace])}"
        return WaitForPlan(PlanReason.NAMESPACE_DENIED, message)
    if case.observation.unreadable:
        names = ", ".join(case.observation.unreadable)
        return WaitForPlan(
            PlanReason.UNREADABLE, f"Subscription {names} is malformed, so its startingCSV is unknown: correct it"
        )
    return None


def every_csv_has_a_subscription(case: PlanCase) -> WaitForPlan | None:
    if not case.items:
        message = "the plan has no ClusterServiceVersion: delete it, and OLM makes a new one"
        return WaitForPlan(PlanReason.UNKNOWN_PACKAGE, message)
    for item in case.items:
        if item.package is None:
            message = f"the package of {item.csv or 'a CSV'} is unknown: plan and Subscriptions omit it or differ"
            remedy = f"delete the plan, and OLM makes a new one, {OR_MANUALLY}"
            return WaitForPlan(PlanReason.UNKNOWN_PACKAGE, f"{message}; {remedy}")
        if not item.subscriptions and not item.is_new_dependency:
            return _not_subscribed(item, case.observation.plan.metadata.namespace)
    return None


def _not_subscribed(item: PlanCsv, namespace: str) -> WaitForPlan:
    """Say why it does not count as a new dependency either, and what to do."""
    if item.is_brought and item.present == item.unmarked:
        others = ", ".join(item.unmarked)
        return WaitForPlan(
            PlanReason.UNKNOWN_PACKAGE,
            f"{item.csv} may be an upgrade and not a new dependency, since the package of {others} in the namespace is "
            f"unknown: label it {PACKAGE_LABEL}<its package>.{namespace}, delete it if it is not needed, {OR_MANUALLY}",
        )
    there = ", ".join(csv for csv in item.present if csv not in item.unmarked)
    message = f"no Subscription in the namespace is for {item.package}, the package of {item.csv}"
    message += f", though {there} is installed" if there else ""
    remedy = f"create one with startingCSV {item.csv}, {OR_MANUALLY}"
    return WaitForPlan(PlanReason.NO_SUBSCRIPTION, f"{message}: {remedy}")


def subscriptions_are_up_to_date(case: PlanCase) -> WaitForPlan | None:
    """OLM writes a plan first, and updates its Subscriptions a moment later."""
    plan = case.observation.plan
    for item in case.items:
        for one in item.subscriptions:
            if not item.is_current and one.status.plan_generation < plan.generation:
                message = f"OLM has not yet updated Subscription {one.metadata.name}, which should offer {item.csv}"
                message += ": if it does not do so soon, see the logs of the catalog operator"
                return WaitForPlan(PlanReason.SUBSCRIPTION_BEHIND, message)
    return None


def not_superseded(case: PlanCase) -> WaitForPlan | None:
    """OLM never removes an outdated plan; if the pin moves back, it must not run."""
    plan = case.observation.plan
    for item in case.items:
        if not item.is_new_dependency and not item.is_current:
            offered = ", ".join(sorted({one.status.current_csv or "nothing" for one in item.subscriptions}))
            message = f"superseded: OLM now offers {offered} for {item.package}, not {item.csv}: {LEAVE_IT}"
            return WaitForPlan(PlanReason.SUPERSEDED, message)
    for other in case.observation.siblings:
        if other.generation > plan.generation and set(other.csvs) == set(plan.csvs):
            return WaitForPlan(
                PlanReason.SUPERSEDED,
                f"superseded by the newer plan {other.metadata.name} with the same CSVs: {LEAVE_IT}",
            )
    if all(item.is_installed for item in case.items):
        return WaitForPlan(PlanReason.SUPERSEDED, f"superseded: every CSV of the plan is installed already: {LEAVE_IT}")
    return None


def every_csv_is_wanted(case: PlanCase) -> WaitForPlan | None:
    """A plan can have several operators, and all of them must be wanted.

    One that is not pinned must be allowed by the policy, Automatic, installed, or a new dependency. At least one must
    be pinned or allowed.
    """
    policy = case.approver.spec.policy
    requested = [item for item in case.items if item.is_pinned or allowance(item, policy)]
    unwanted = [item for item in case.items if item not in requested and not item.is_wanted]
    objections = (objection(item, policy) for item in unwanted)
    if refusal := next((one for one in objections if one), None):
        return refusal
    if requested and unwanted:
        return _also_installs(requested, unwanted)
    if unwanted:
        return _not_the_pin(unwanted[0])
    if not requested:
        return WaitForPlan(
            PlanReason.NOT_PINNED, f"no Subscription of the plan has a startingCSV: set it on one, {OR_MANUALLY}"
        )
    return None


def reasons(case: PlanCase) -> str:
    """Why each CSV of the plan is wanted."""
    return "; ".join(_reason(item, case.approver.spec.policy) for item in case.items)


def _reason(item: PlanCsv, policy: Policy | None) -> str:
    if item.is_pinned:
        return f"{item.csv} is the startingCSV of its Subscription"
    if item.is_new_dependency:
        return f"{item.csv} is a new dependency"
    if item.is_installed:
        return f"{item.csv} is installed already"
    return allowance(item, policy) or f"the Subscription of {item.csv} was set to Automatic by a person"


def dependencies_are_allowed(case: PlanCase) -> WaitForPlan | None:
    rules = case.approver.spec.policy
    new = [item.csv for item in case.items if item.is_new_dependency]
    if new and rules and not rules.allow_dependencies:
        message = f"the plan also installs {', '.join(new)}, and the policy allows no new dependencies"
        return WaitForPlan(PlanReason.DEPENDENCY_NOT_ALLOWED, f"{message}: set policy.allowDependencies, {OR_MANUALLY}")
    return None


def automatic_approval_is_enabled(case: PlanCase) -> WaitForPlan | None:
    if not case.approver.spec.auto_approve:
        return WaitForPlan(PlanReason.AUTO_APPROVE_OFF, f"autoApprove is false: set it to true, {OR_MANUALLY}")
    return None


def not_a_dry_run(case: PlanCase) -> WaitForPlan | None:
    if not case.approver.spec.dry_run:
        return None
    skipped = " (gates are not evaluated for it)" if policy.gates_of(case) else ""
    return WaitForPlan(
        PlanReason.DRY_RUN, f"all other checks pass{skipped}, but dryRun is true: set it to false, {OR_MANUALLY}"
    )


def _also_installs(requested: list[PlanCsv], unwanted: list[PlanCsv]) -> WaitForPlan:
    rider = unwanted[0]
    wanted = ", ".join(item.csv for item in requested)
    is_wanted = "is pinned" if all(item.is_pinned for item in requested) else "is pinned or allowed by the policy"
    pin = f"pinned to {rider.pin}" if rider.pin else "not pinned"
    remedy = _how_to_own(rider) if rider.is_left_to_olm else f"pin {rider.csv} too"
    return WaitForPlan(
        PlanReason.RIDES_ALONG,
        f"{wanted} {is_wanted}, but the plan also installs {rider.csv}, which is {pin}: {remedy}, {OR_MANUALLY}; "
        "OLM offers no other plan",
    )


def _how_to_own(item: PlanCsv) -> str:
    """A Subscription that OLM made for a dependency pins nothing, whatever its startingCSV."""
    name = item.subscriptions[0].metadata.name
    return (
        f"Subscription {name} was made by OLM, so its startingCSV does not pin it; keep it in Git with startingCSV "
        f"{item.csv}, and remove its annotation olm.generated-by"
    )


def _not_the_pin(item: PlanCsv) -> WaitForPlan:
    """Say why the offered CSV is not the pinned one, and what to do."""
    offered, pin = item.csv, item.pin
    if item.is_left_to_olm:
        return WaitForPlan(PlanReason.NOT_PINNED, f"{offered} is offered: {_how_to_own(item)}, {OR_MANUALLY}")
    if not pin:
        return WaitForPlan(
            PlanReason.NOT_PINNED, f"{offered} is offered, but no startingCSV pins {item.package}: set it"
        )
    if item.installed == pin:
        return WaitForPlan(
            PlanReason.NOT_PINNED, f"{pin} is pinned and installed; set startingCSV to {offered} to upgrade"
        )
    if not item.installed:  # without an upgrade path, OLM offers the pinned version once this plan is deleted
        message = f"{pin} is pinned, but this plan is for {offered}: delete it, and OLM makes one for the pin if it can"
        return WaitForPlan(PlanReason.PIN_NOT_OFFERED, message)
    if is_before(offered, pin):
        message = f"{pin} is pinned, and OLM upgrades to {offered} on the way: set startingCSV to {offered} first"
        message += ", or policy.allowIntermediate to approve upgrades on the way to a pin"
        return WaitForPlan(PlanReason.INTERMEDIATE_VERSION, message)
    message = f"{pin} is pinned, but OLM offers {offered}: pin that, or another version of the channel"
    return WaitForPlan(PlanReason.PIN_NOT_OFFERED, message)


SCOPE = (
    InstallPlanCheck("Namespace in scope", namespace_is_in_scope),
    InstallPlanCheck("Operators in scope", operators_are_in_scope),
    InstallPlanCheck("Subscriptions in scope", subscriptions_are_in_scope),
)
"""An approver covers a plan unless one of these leaves it."""

CHECKS = (
    InstallPlanCheck("Not approved yet", not_approved_yet),
    InstallPlanCheck("Approval is Manual", approval_is_manual),
    InstallPlanCheck("Requires approval", requires_approval),
    *SCOPE,
    InstallPlanCheck("Not left to policy namespaces", policy_namespaces_leave_it),
    InstallPlanCheck("Namespace readable", namespace_is_readable),
    InstallPlanCheck("Every CSV belongs to a Subscription", every_csv_has_a_subscription),
    InstallPlanCheck("Subscriptions up to date", subscriptions_are_up_to_date),
    InstallPlanCheck("Not superseded", not_superseded),
    InstallPlanCheck("Policy is valid", policy.policy_is_valid),
    InstallPlanCheck("Every CSV is pinned or allowed by the policy", every_csv_is_wanted, passed=reasons),
    InstallPlanCheck("Dependencies allowed", dependencies_are_allowed),
    InstallPlanCheck("Automatic approval enabled", automatic_approval_is_enabled),
    InstallPlanCheck("Versions in range", policy.versions_are_in_range),
    InstallPlanCheck("First installation", policy.is_first_installation),
    InstallPlanCheck("Old enough", policy.is_old_enough),
    *in_order(
        {
            HoldKind.APPROVALS: InstallPlanCheck(
                "Approved by enough people", policy.people_have_approved, passed=policy.approved_by
            ),
            HoldKind.FREEZE: InstallPlanCheck("No freeze", policy.nothing_is_frozen),
            HoldKind.WINDOW: InstallPlanCheck("Inside a maintenance window", policy.is_inside_a_window),
            HoldKind.GATES: InstallPlanCheck("Gates open", policy.gates_are_open),
        }
    ),
    InstallPlanCheck("Not a dry run", not_a_dry_run),
)
