"""Why an InstallPlan is approved or pending: observed as the approver would, with the result of each of its checks."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from virt_steward.controllers.approver.decide import cases_of, decide, trace
from virt_steward.controllers.approver.observation import csvs_of
from virt_steward.controllers.approver.observe import ApproverStores, observe
from virt_steward.controllers.approver.verdicts import NEED_NOBODY, ApprovePlan, LeavePlan, PlanReason, WaitForPlan
from virt_steward.controllers.approver.watches import APPROVERS, CSVS, NAMESPACES, PLANS, SUBSCRIPTIONS
from virt_steward.insight.freeze import read_freeze
from virt_steward.insight.reading import listed, listed_if_served
from virt_steward.kube.client import Selection
from virt_steward.objects.checks import CheckResult
from virt_steward.objects.document import JsonDocument
from virt_steward.objects.errors import UserError
from virt_steward.objects.identity import Key
from virt_steward.objects.wallclock import rfc3339

if TYPE_CHECKING:
    from datetime import datetime

    from virt_steward.controllers.approver.checks import PlanCase
    from virt_steward.controllers.approver.decide import ApproverVerdict
    from virt_steward.controllers.approver.observation import Approver, ApproverObservation, PlanCsv
    from virt_steward.controllers.approver.olm import InstallPlan
    from virt_steward.controllers.approver.options import ApproverOptions
    from virt_steward.kube.client import Reader

UNCOVERED = "NoApprover"
APPROVES = "Approves"
FORBIDDEN_TO_YOU = "Reason unknown: you are forbidden (403) to read everything that the approver reads"
NO_APPROVER = "No InstallPlanApprover covers it; approve it manually, or create an InstallPlanApprover"


class NoAnswer(UserError):
    """The InstallPlan does not exist or cannot be read; the text says which."""


class Chain(JsonDocument, frozen=True):
    """What one approver makes of the plan."""

    approver: str
    verdict: Literal["approves", "waits", "leaves it alone"]
    because: str
    reason: str
    """Why it does not approve, as `status.pending` names it; empty if it approves."""
    until: str | None
    """When time alone removes the objection, if it does."""
    checks: tuple[CheckResult, ...]


class Csv(JsonDocument, frozen=True):
    """One operator version that the plan installs."""

    name: str
    package: str | None
    pin: str | None
    installed: str | None
    is_new_dependency: bool


class Approved(JsonDocument, frozen=True):
    """Who approved the plan."""

    by: str
    at: str | None
    because: str | None
    """The approver's reason, or the comment of the user."""


class ApprovalExplanation(JsonDocument, frozen=True):
    """The whole answer."""

    plan: str
    uid: str
    phase: str
    approval: str
    approved: bool
    decision: Approved | None
    """None: it is not approved, or the approval does not name anyone."""
    csvs: tuple[Csv, ...]
    approvers: tuple[Chain, ...]
    """The oldest first: if several approve, the oldest one acts."""
    policy_namespaces: tuple[str, ...]
    """As assumed: approvers there cover what their spec says, and others their own namespace alone."""


async def explain_approval(reader: Reader, plan: Key, options: ApproverOptions, now: datetime) -> ApprovalExplanation:
    """Read what the approver reads, and decide as it would with these options. Raises NoAnswer."""
    stores = await _stores(reader, plan.namespace, options)
    if problem := stores.plans.unreadable(plan):
        raise NoAnswer(f"InstallPlan {plan} cannot be decoded, so no approver approves it: {problem}")
    seen = observe(stores, plan, now)
    if seen is None:
        there = ", ".join(sorted(one.metadata.name for one in stores.plans)) or "none"
        raise NoAnswer(f"InstallPlan {plan} not found; existing in that namespace: {there}")
    return explain_observation(seen, now)


def _approved_by(seen: ApproverObservation) -> Approved | None:
    plan, stamp, signature = seen.plan, seen.plan.stamp, seen.plan.signature
    if not plan.approved:
        return None
    if stamp.by:
        names = {one.metadata.uid: str(one.metadata.key) for one in seen.approvers}
        return Approved(f"InstallPlanApprover {names.get(stamp.by, '(deleted)')}", stamp.at or None, stamp.because)
    if not signature.user:
        return None
    return Approved(f"{signature.user}, manually", signature.at or None, signature.comment or None)


def explain_observation(seen: ApproverObservation, now: datetime) -> ApprovalExplanation:
    """Decide on an observation as the approver would, wherever the observation comes from."""
    plan = seen.plan
    return ApprovalExplanation(
        plan=str(plan.metadata.key),
        uid=plan.metadata.uid,
        phase=plan.phase,
        approval=plan.approval,
        approved=plan.approved,
        decision=_approved_by(seen),
        csvs=tuple(_csv(item) for item in csvs_of(seen)),
        approvers=tuple(map(_chain, decide(seen, now).verdicts, cases_of(seen, now))),
        policy_namespaces=tuple(sorted(seen.policy_namespaces)),
    )


def _csv(item: PlanCsv) -> Csv:
    return Csv(item.csv, item.package, item.pin or None, item.installed or None, item.is_new_dependency)


def _chain(opinion: ApproverVerdict, case: PlanCase) -> Chain:
    verdict, approver = opinion.verdict, str(opinion.approver.metadata.key)
    checks = trace(case)
    match verdict:
        case ApprovePlan(reason):
            return Chain(approver, "approves", reason, "", None, checks)
        case WaitForPlan(reason, _, until) as wait:
            message = answer_of_gates(wait, opinion.approver, case.observation.plan)
            return Chain(approver, "waits", message, reason, rfc3339(until) if until else None, checks)
        case LeavePlan(reason, message):
            return Chain(approver, "leaves it alone", message, reason, None, checks)


def answer_of_gates(wait: WaitForPlan, approver: Approver, plan: InstallPlan) -> str:
    """The message of a wait. Only the controller evaluates gates, so what they answered is read from its status."""
    name = str(plan.metadata.key)
    said = (one for one in approver.status.pending if one.plan == name and one.reason == wait.reason)
    return next((one.message for one in said), wait.message) if wait.gates else wait.message


async def _stores(reader: Reader, namespace: str, options: ApproverOptions) -> ApproverStores:
    """Fill the approver's stores with what concerns one namespace."""
    here = Selection(namespace)
    plans = await listed(reader, PLANS, here)  # first and alone: without OLM there is nothing else to ask
    subscriptions, csvs, namespaces, approvers = await asyncio.gather(
        listed(reader, SUBSCRIPTIONS, here),
        listed(reader, CSVS, replace(CSVS.selection, namespace=namespace)),
        listed(reader, NAMESPACES, Selection.one(Key("", namespace), metadata_only=True)),
        listed_if_served(reader, APPROVERS),
    )
    return ApproverStores(
        plans,
        subscriptions,
        csvs,
        namespaces,
        approvers,
        policy_namespaces=options.policy_namespaces,
        freezes=await read_freeze(reader, options.namespace, "approver"),
        gates=options.gates,
    )


@dataclass(frozen=True, slots=True)
class PendingInstallPlan:
    """One plan that OLM would run if it were approved."""

    key: Key
    csvs: tuple[str, ...]
    since: datetime
    reason: str
    message: str
    until: datetime | None = None
    """When it can be approved without anybody acting, if that is known."""
    approver: Key | None = None
    """The approver that gave the reason; None if no approver covers the plan."""

    @property
    def needs_a_person(self) -> bool:
        return self.until is None and self.reason not in {*NEED_NOBODY, APPROVES}

    @property
    def is_outdated(self) -> bool:
        return self.reason == PlanReason.SUPERSEDED


def pending_install_plan(observation: ApproverObservation, now: datetime) -> PendingInstallPlan | None:
    """Say what a plan waits for, by the verdicts of its approvers; None if it is not pending."""
    plan = observation.plan
    if not plan.is_open:
        return None
    known = plan.metadata.key, plan.csvs, plan.metadata.creation_timestamp
    if observation.is_denied:  # to us, which says nothing about what the approver may read
        return PendingInstallPlan(*known, PlanReason.NAMESPACE_DENIED, FORBIDDEN_TO_YOU)
    opinions = decide(observation, now).verdicts
    for one in opinions:
        if isinstance(one.verdict, ApprovePlan):
            return PendingInstallPlan(*known, APPROVES, one.verdict.reason, approver=one.approver.metadata.key)
    for one in opinions:
        if isinstance(wait := one.verdict, WaitForPlan):
            message = answer_of_gates(wait, one.approver, plan)
            return PendingInstallPlan(*known, wait.reason, message, wait.until, one.approver.metadata.key)
    return PendingInstallPlan(*known, UNCOVERED, NO_APPROVER)
