"""InstallPlans: pending ones with the reason, approved ones, and one plan with the checks of each approver."""

from __future__ import annotations

from dataclasses import dataclass
from heapq import nlargest, nsmallest
from typing import TYPE_CHECKING

import msgspec

from virt_steward.apis.installplanapprover import INSTALL_PLAN_APPROVER
from virt_steward.console.page_context import REASON_HIDDEN, PageContent, matches, not_found
from virt_steward.controllers.approver.conditions import is_fault
from virt_steward.controllers.approver.observe import observe
from virt_steward.controllers.approver.olm import INSTALL_PLAN, SUBSCRIPTION
from virt_steward.insight.approvals import explain_observation
from virt_steward.objects.identity import Key, Ref

if TYPE_CHECKING:
    from virt_steward.console.live import Topic
    from virt_steward.console.page_context import PageContext
    from virt_steward.insight.approvals import PendingInstallPlan

SHOWN = 100
HISTORY = 50
TOPICS: frozenset[Topic] = frozenset({"approvals", "activity"})


async def page(context: PageContext) -> PageContent:
    search = context.search
    pending = [one for one in context.pending_plans if not search or matches(_text(context, one), search)]
    approved = [
        plan
        for plan in context.plans
        if plan.approved
        and plan.stamp.at
        and (not search or matches(f"{plan.metadata.key} {' '.join(plan.csvs)}", search))
    ]
    values = {
        "pending": [PendingRow(one, context.sees_reason(one)) for one in nsmallest(SHOWN, pending, key=_urgency)],
        "reason_hidden": REASON_HIDDEN,
        "more": max(len(pending) - SHOWN, 0),
        "all": len(context.pending_plans),
        "held": len(context.held_plans),
        "approved": nlargest(HISTORY, approved, key=lambda plan: (plan.stamp.at, plan.metadata.key)),
        "approved_more": max(len(approved) - HISTORY, 0),
        "is_fault": is_fault,
        "approvers": sorted(context.approvers, key=lambda one: one.metadata.key),
        "is_behind": context.cache.plans.pending.is_behind,
    }
    return PageContent("approvals.html", "Approvals", values, TOPICS, kinds=(INSTALL_PLAN, INSTALL_PLAN_APPROVER))


async def plan(context: PageContext) -> PageContent:
    key = Key(context.match["namespace"], context.match["name"])
    stores = context.cache.plans.stores
    observation = observe(stores, key, context.now) if context.scope.sees(INSTALL_PLAN, key.namespace) else None
    if observation is None:
        return not_found(f"InstallPlan {key}", INSTALL_PLAN)
    explanation = explain_observation(observation, context.now)
    visible = {str(one.metadata.key) for one in context.approvers}
    chains = [chain for chain in explanation.approvers if chain.approver in visible]
    sees_pins = context.scope.sees(SUBSCRIPTION, key.namespace) and not observation.is_denied
    pending = context.cache.plans.pending.get(key)
    values = {
        "plan": observation.plan,
        "csvs_shown": msgspec.json.encode(observation.plan.csvs).decode(),
        "pending": PendingRow(pending, context.sees_reason(pending)) if pending else None,
        "reason_hidden": REASON_HIDDEN,
        "is_denied": observation.is_denied,
        "csvs": explanation.csvs if sees_pins else (),
        "chains": [(chain, chain.checks) for chain in chains] if sees_pins else [],
        "hidden_chains": len(explanation.approvers) - len(chains),
        "sees_pins": sees_pins,
        "may_approve": await context.may("patch", INSTALL_PLAN, key.namespace),
        "events": context.events_about(str(Ref(INSTALL_PLAN, key))),
    }
    return PageContent("installplan.html", key.name, values, TOPICS)


def _urgency(plan: PendingInstallPlan) -> tuple[object, ...]:
    """What needs a person first, then the oldest."""
    return not plan.needs_a_person, plan.is_outdated, plan.since, plan.key


@dataclass(frozen=True, slots=True)
class PendingRow:
    plan: PendingInstallPlan
    sees_reason: bool
    """Whether the viewer may know why it is pending."""


def _text(context: PageContext, plan: PendingInstallPlan) -> str:
    """What the filter searches; a hidden reason must not be found."""
    return f"{plan.key} {' '.join(plan.csvs)} {plan.reason if context.sees_reason(plan) else ''}"
