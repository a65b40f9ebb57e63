"""The conditions of an approver: on its policy, its notification endpoint, its namespaces and its count."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from virt_steward.apis.installplanapprover import COUNTED_PLANS_KEPT
from virt_steward.apis.meta import Condition
from virt_steward.controllers.approver.policy import policy_fault
from virt_steward.controllers.approver.scope import asks_for_more, reaches
from virt_steward.controllers.approver.window_memory import WINDOWS

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping
    from datetime import datetime

    from virt_steward.controllers.approver.observation import Approver


@dataclass(frozen=True, slots=True)
class ApproverEnvironment:
    """What this process knows and may do."""

    endpoints: Collection[str] = ()
    """The names of its notification endpoints."""
    denied: Collection[str] = ()
    """Namespaces that it is forbidden to read."""
    watched: Collection[str] = ()
    """The only namespaces that it watches; none means all."""
    policy_namespaces: Collection[str] = ()
    """Where approvers cover what their spec says; elsewhere they cover their own namespace alone."""
    plan_namespaces: Mapping[str, str] = field(default_factory=dict)
    """The namespaces of approved plans that it has observed, by uid."""
    outdated: frozenset[str] = frozenset()
    """Namespaces, or an empty name for all, of which its cache may be older than the status of the approver."""


POLICY_VALID = "PolicyValid"
"""False: spec.policy cannot be understood; nothing is approved until it is corrected."""
WINDOWS_CAN_OPEN = "WindowsCanOpen"
"""False: a schedule in spec.policy.windows matches no day."""
SCOPE_LIMITED = "ScopeLimited"
"""True: it asks for more namespaces than its own, and is not in a policy namespace."""
NOTIFYING = "Notifying"
"""False: spec.notify names an endpoint that is not configured."""
NAMESPACES_READABLE = "NamespacesReadable"
"""False: plans of some namespaces cannot be read, so nothing is approved there."""
COUNT_EXACT = "CountExact"
"""False: status.approvedCount may be wrong, because too many plans exist."""


@dataclass(frozen=True, slots=True)
class _ConditionFact:
    type: str
    reason: str
    fault: str = ""
    """Empty if all is well."""
    type_of_fault: bool = False
    """The condition is named after the fault, so it is True if there is one."""


def conditions_of(
    approver: Approver, environment: ApproverEnvironment, now: datetime, counted: Collection[str] = ()
) -> tuple[Condition, ...]:
    """`counted` are the uids that the status will list."""
    facts = (
        _policy(approver, now),
        _windows_can_open(approver, now),
        _scope_limited(approver, environment),
        _notifying(approver, environment),
        _readable(approver, environment),
        _count_exact(approver, environment, len(counted)),
    )
    return tuple(_condition(fact, approver, now) for fact in facts if fact)


def is_fault(condition: Condition) -> bool:
    """Whether the condition tells of a fault."""
    return condition.status == ("True" if condition.type == SCOPE_LIMITED else "False")


def how_to_allow(namespaces: Collection[str]) -> str:
    """An empty name means the whole cluster."""
    targets = "" if "" in namespaces else f" --target-namespaces {','.join(sorted(namespaces))}"
    return (
        f"apply the output of 'virt-steward rbac --controllers approver{targets}' "
        "(with --namespace, unless it is installed in virt-steward, and with --all-in-one, if it is installed so)"
    )


def _policy(approver: Approver, now: datetime) -> _ConditionFact:
    if fault := policy_fault(approver.spec.policy, now):
        return _ConditionFact(POLICY_VALID, "BadPolicy", f"{fault}; nothing is approved until it is corrected")
    return _ConditionFact(POLICY_VALID, "Understood")


def _windows_can_open(approver: Approver, now: datetime) -> _ConditionFact | None:
    windows = approver.spec.policy.windows if approver.spec.policy else ()
    never = [one.schedule for one in windows if WINDOWS.never_opens(one, now)]
    if not never:
        return _recovered(approver, WINDOWS_CAN_OPEN, "EachHasADay")
    result = "nothing is ever approved" if len(never) == len(windows) else "these windows never open"
    fault = f"policy.windows: no day matches {', '.join(map(repr, never))}, so {result}: correct the schedule"
    return _ConditionFact(WINDOWS_CAN_OPEN, "NeverOpens", fault)


def _scope_limited(approver: Approver, environment: ApproverEnvironment) -> _ConditionFact | None:
    if not asks_for_more(approver, environment.policy_namespaces):
        return _recovered(approver, SCOPE_LIMITED, "NotLimited", type_of_fault=True)
    home = approver.metadata.namespace
    policies = ", ".join(sorted(environment.policy_namespaces))
    fault = (
        f"{home} is not a policy namespace, so only plans of {home} are covered: move this InstallPlanApprover to a "
        f"policy namespace ({policies}), add {home} to --policy-namespaces, or set targetNamespaces to [{home}]"
    )
    return _ConditionFact(SCOPE_LIMITED, "NotInPolicyNamespace", fault, type_of_fault=True)


def _notifying(approver: Approver, environment: ApproverEnvironment) -> _ConditionFact | None:
    name = approver.spec.notify
    if not name:
        return None
    if name not in environment.endpoints:
        known = ", ".join(sorted(environment.endpoints)) or "none"
        fault = f"endpoint {name} not found, so no notifications are sent; the controller's settings have: {known}"
        return _ConditionFact(NOTIFYING, "UnknownEndpoint", fault)
    return _ConditionFact(NOTIFYING, "EndpointKnown")


def _readable(approver: Approver, environment: ApproverEnvironment) -> _ConditionFact | None:
    policies, targets = environment.policy_namespaces, approver.spec.target_namespaces
    denied = sorted(name for name in environment.denied if not name or reaches(approver, name, policies))
    if denied:
        names = "all namespaces" if "" in denied else ", ".join(denied)
        fault = f"forbidden (403) to read {names}, so nothing is approved there: "
        return _ConditionFact(NAMESPACES_READABLE, "Forbidden", fault + how_to_allow(denied))
    covered = (name for name in targets if reaches(approver, name, policies))
    if left_out := sorted(name for name in covered if environment.watched and name not in environment.watched):
        names = ", ".join(left_out)
        fault = f"the controller does not watch {names}: add it to --watch-namespaces"
        return _ConditionFact(NAMESPACES_READABLE, "NotWatched", fault)
    return _recovered(approver, NAMESPACES_READABLE, "Allowed")


def _count_exact(approver: Approver, environment: ApproverEnvironment, counted: int) -> _ConditionFact | None:
    if counted < COUNTED_PLANS_KEPT:
        return _recovered(approver, COUNT_EXACT, "AllRemembered")
    full = f"status.countedPlans is full ({counted} plans)"
    if environment.watched:
        fault = (
            f"{full}: the oldest plans of namespaces that are not watched are dropped, and are counted again if these "
            "are watched again; run the controller once without --watch-namespaces, to drop those that are deleted"
        )
        return _ConditionFact(COUNT_EXACT, "OldestForgotten", fault)
    fault = f"{full}: further approvals are neither counted nor reported; delete InstallPlans that are complete"
    return _ConditionFact(COUNT_EXACT, "TooManyPlans", fault)


def _recovered(approver: Approver, type_: str, reason: str, *, type_of_fault: bool = False) -> _ConditionFact | None:
    """Report that all is well only if the condition was reported before."""
    was_reported = any(one.type == type_ for one in approver.status.conditions)
    return _ConditionFact(type_, reason, type_of_fault=type_of_fault) if was_reported else None


def _condition(fact: _ConditionFact, approver: Approver, now: datetime) -> Condition:
    new = Condition(
        type=fact.type,
        status="True" if bool(fact.fault) == fact.type_of_fault else "False",
        reason=fact.reason,
        message=fact.fault,
        last_transition_time=now,
        observed_generation=approver.metadata.generation,
    )
    return new.carrying_on(approver.status.conditions)
