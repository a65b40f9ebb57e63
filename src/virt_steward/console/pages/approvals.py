"""InstallPlans: what waits and why, what was approved, and one plan with all that each approver says of it."""

from __future__ import annotations

from dataclasses import dataclass
from heapq import nlargest, nsmallest
from typing import TYPE_CHECKING

from virt_steward.apis.installplanapprover import INSTALL_PLAN_APPROVER
from virt_steward.console.page_context import UNTOLD, PageContent, holds, not_there
from virt_steward.controllers.approver.observe import observe
from virt_steward.controllers.approver.olm import INSTALL_PLAN, SUBSCRIPTION
from virt_steward.insight.approvals import explained
from virt_steward.objects.identity import Key, Ref

if TYPE_CHECKING:
    from virt_steward.console.hub import Topic
    from virt_steward.console.page_context import PageContext
    from virt_steward.insight.approvals import PendingInstallPlan

SHOWN = 100
HISTORY = 50
TOPICS: frozenset[Topic] = frozenset({"approvals", "activity"})


async def page(visit: PageContext) -> PageContent:
    words = visit.words
    found = [one for one in visit.waiting if not words or holds(_text(visit, one), words)]
    stamped = [
        plan
        for plan in visit.plans
        if plan.stamp.at and (not words or holds(f"{plan.metadata.key} {' '.join(plan.csvs)}", words))
    ]
    values = {
        "waiting": [ApprovalRow(one, visit.is_told(one)) for one in nsmallest(SHOWN, found, key=_urgency)],
        "untold": UNTOLD,
        "more": max(len(found) - SHOWN, 0),
        "all": len(visit.waiting),
        "people": len(visit.held),
        "approved": nlargest(HISTORY, stamped, key=lambda plan: (plan.stamp.at, plan.metadata.key)),
        "approved_more": max(len(stamped) - HISTORY, 0),
        "approvers": sorted(visit.approvers, key=lambda one: one.metadata.key),
        "still": visit.cache.plans.waiting.is_behind,
    }
    return PageContent("approvals.html", "Approvals", values, TOPICS, missing=(INSTALL_PLAN, INSTALL_PLAN_APPROVER))


async def plan(visit: PageContext) -> PageContent:
    key = Key(visit.match["namespace"], visit.match["name"])
    stores = visit.cache.plans.stores
    seen = observe(stores, key) if visit.sight.sees(INSTALL_PLAN, key.namespace) else None
    if seen is None:
        return not_there(f"InstallPlan {key}", INSTALL_PLAN)
    why = explained(seen, None, visit.now)
    visible = {str(one.metadata.key) for one in visit.approvers}
    sees_pins = visit.sight.sees(SUBSCRIPTION, key.namespace) and not seen.is_denied
    waiting = visit.cache.plans.waiting.get(key)
    values = {
        "plan": seen.plan,
        "waiting": ApprovalRow(waiting, visit.is_told(waiting)) if waiting else None,
        "untold": UNTOLD,
        "is_denied": seen.is_denied,
        "csvs": why.csvs if sees_pins else (),
        "chains": [chain for chain in why.approvers if chain.approver in visible] if sees_pins else [],
        "hidden_chains": len(why.approvers) - len([one for one in why.approvers if one.approver in visible]),
        "sees_pins": sees_pins,
        "may_approve": await visit.may("patch", INSTALL_PLAN, key.namespace),
        "told": visit.told_of(str(Ref(INSTALL_PLAN, key))),
    }
    return PageContent("installplan.html", key.name, values, TOPICS)


def _urgency(one: PendingInstallPlan) -> tuple[object, ...]:
    """What needs a person first, then the oldest."""
    return not one.needs_a_person, one.is_outdated, one.since, one.key


@dataclass(frozen=True, slots=True)
class ApprovalRow:
    waiting: PendingInstallPlan
    is_told: bool
    """Whether the viewer may know why it waits."""


def _text(visit: PageContext, one: PendingInstallPlan) -> str:
    """What a filter looks through, which must not find what is not told."""
    return f"{one.key} {' '.join(one.csvs)} {one.reason if visit.is_told(one) else ''}"
