"""Why a plan is approved or not: what the approver would see now, and what each of its checks says."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from virt_steward.controllers.approver.checks import PlanCase
from virt_steward.controllers.approver.decide import decide, trace
from virt_steward.controllers.approver.manual_approval import manual_approval_of
from virt_steward.controllers.approver.observation import csvs_of
from virt_steward.controllers.approver.observe import ApproverStores, observe
from virt_steward.controllers.approver.verdicts import ApprovePlan, LeavePlan, WaitForPlan
from virt_steward.controllers.approver.watches import APPROVERS, CSVS, NAMESPACES, PLANS, SUBSCRIPTIONS
from virt_steward.insight.listing import listed, listed_if_served
from virt_steward.kube.client import Selection
from virt_steward.objects.errors import UserError
from virt_steward.objects.identity import Key
from virt_steward.objects.wallclock import rfc3339

if TYPE_CHECKING:
    from datetime import datetime

    from virt_steward.controllers.approver.decide import ApproverVerdict
    from virt_steward.controllers.approver.observation import ApproverObservation, PlanCsv
    from virt_steward.controllers.approver.verdicts import Verdict
    from virt_steward.kube.client import Reader
    from virt_steward.objects.checks import CheckResult


class NoAnswer(UserError):
    """The plan in question is not there, or cannot be read: one line that says which."""


@dataclass(frozen=True, slots=True)
class ApprovalRefusal:
    """What a check objects to."""

    reason: str
    message: str
    until: str | None
    """When time alone removes the objection, if it does."""


@dataclass(frozen=True, slots=True)
class ApprovalCheck:
    """One check, in words, and its objection if it has one."""

    check: str
    refusal: ApprovalRefusal | None


@dataclass(frozen=True, slots=True)
class Chain:
    """What one approver makes of the plan."""

    approver: str
    verdict: Literal["approves", "waits", "leaves it alone"]
    because: str
    steps: tuple[ApprovalCheck, ...]
    """Every check up to the one that decides."""
    checks: tuple[CheckResult, ...] = ()
    """The whole chain, with the checks that were not reached."""


@dataclass(frozen=True, slots=True)
class Csv:
    """One operator version that the plan installs."""

    name: str
    package: str | None
    pin: str | None
    installed: str | None
    is_new_dependency: bool


@dataclass(frozen=True, slots=True)
class Approved:
    """Who let the plan through."""

    by: str
    at: str | None
    because: str | None
    """As the approver put it, or the comment of a person."""


@dataclass(frozen=True, slots=True)
class ApprovalExplanation:
    """The whole answer."""

    plan: str
    phase: str
    approval: str
    approved: bool
    decision: Approved | None
    """None: nobody has approved it, or somebody who left no name."""
    csvs: tuple[Csv, ...]
    approvers: tuple[Chain, ...]
    """The oldest first: of those that approve, it acts."""


async def why(reader: Reader, plan: Key, now: datetime) -> ApprovalExplanation:
    """Ask the server for what the controller would see, and judge it as the controller would. Raises NoAnswer."""
    stores = await _stores(reader, plan.namespace)
    if problem := stores.plans.unreadable(plan):
        raise NoAnswer(f"InstallPlan {plan} cannot be read, so nobody approves it: {problem}")
    seen = observe(stores, plan)
    if seen is None:
        there = ", ".join(sorted(one.metadata.name for one in stores.plans)) or "none"
        raise NoAnswer(f"there is no InstallPlan {plan}; in that namespace there are: {there}")
    return explained(seen, await _decision(reader, seen), now)


async def _decision(reader: Reader, seen: ApproverObservation) -> Approved | None:
    plan, stamp = seen.plan, seen.plan.stamp
    if not plan.approved:
        return None
    if stamp.by:
        names = {one.metadata.uid: str(one.metadata.key) for one in seen.approvers}
        return Approved(f"InstallPlanApprover {names.get(stamp.by, 'that is gone')}", stamp.at or None, stamp.because)
    signature = await manual_approval_of(reader, plan.metadata.key)
    if not signature.user:
        return None
    return Approved(f"{signature.user}, by hand", signature.at or None, signature.comment or None)


def explained(seen: ApproverObservation, decision: Approved | None, now: datetime) -> ApprovalExplanation:
    """Judge what was seen as the controller would, whoever has seen it."""
    plan, items = seen.plan, csvs_of(seen)
    return ApprovalExplanation(
        plan=str(plan.metadata.key),
        phase=plan.phase,
        approval=plan.approval,
        approved=plan.approved,
        decision=decision,
        csvs=tuple(_csv(item) for item in items),
        approvers=tuple(
            _chain(opinion, PlanCase(seen, items, opinion.approver, now)) for opinion in decide(seen, now).verdicts
        ),
    )


def _csv(item: PlanCsv) -> Csv:
    return Csv(item.csv, item.package, item.pin or None, item.installed or None, item.is_new_dependency)


def _chain(opinion: ApproverVerdict, case: PlanCase) -> Chain:
    verdict, approver = opinion.verdict, str(opinion.approver.metadata.key)
    checks = trace(case)
    reached = (one for one in checks if one.result != "not reached")
    steps = tuple(ApprovalCheck(one.title, _refusal(verdict) if one.decided else None) for one in reached)
    match verdict:
        case ApprovePlan(because):
            return Chain(approver, "approves", because, steps, checks)
        case WaitForPlan(message=message):
            return Chain(approver, "waits", message, steps, checks)
        case LeavePlan(message=message):
            return Chain(approver, "leaves it alone", message, steps, checks)


def _refusal(answer: Verdict) -> ApprovalRefusal | None:
    if isinstance(answer, ApprovePlan):
        return None
    until = answer.until if isinstance(answer, WaitForPlan) else None
    return ApprovalRefusal(answer.reason, answer.message, rfc3339(until) if until else None)


async def _stores(reader: Reader, namespace: str) -> ApproverStores:
    """Fill what the approver reads, as far as it bears on one namespace."""
    here = Selection(namespace)
    plans = await listed(reader, PLANS, here)  # first and alone: without OLM there is nothing else to ask
    subscriptions, csvs, namespaces, approvers = await asyncio.gather(
        listed(reader, SUBSCRIPTIONS, here),
        listed(reader, CSVS, replace(CSVS.selection, namespace=namespace)),
        listed(reader, NAMESPACES, Selection.one(Key("", namespace), metadata_only=True)),
        listed_if_served(reader, APPROVERS),
    )
    return ApproverStores(plans, subscriptions, csvs, namespaces, approvers)
