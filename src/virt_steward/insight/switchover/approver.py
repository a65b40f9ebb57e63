"""The approver's part: which plans would no longer be approved, and which approvers would cover less."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING

from virt_steward.controllers.approver.observe import ApproverStores, observe
from virt_steward.controllers.approver.scope import asks_for_more
from virt_steward.controllers.approver.watches import APPROVERS, CSVS, NAMESPACES, PLANS, SUBSCRIPTIONS
from virt_steward.insight.approvals import APPROVES, pending_install_plan
from virt_steward.insight.reading import listed_if_served
from virt_steward.insight.switchover.findings import Effect, SwitchFinding, unknown
from virt_steward.kube.errors import Forbidden

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from virt_steward.controllers.approver.observation import Approver
    from virt_steward.controllers.approver.olm import Subscription
    from virt_steward.controllers.approver.options import ApproverOptions
    from virt_steward.insight.approvals import PendingInstallPlan
    from virt_steward.kube.client import Reader

SHOWN = 5


@dataclass(frozen=True, slots=True)
class ApproverSeen:
    approvers: tuple[Approver, ...] = ()
    subscriptions: tuple[Subscription, ...] = ()
    pending: tuple[PendingInstallPlan, ...] = ()
    """What ours makes of every InstallPlan that waits."""
    unreadable: tuple[str, ...] = ()
    """InstallPlanApprovers and Subscriptions that ours cannot decode."""
    problem: str = ""

    @property
    def traces(self) -> tuple[str, ...]:
        return (f"InstallPlanApprovers: {len(self.approvers)}",) if self.approvers or self.unreadable else ()


async def observe_approver(reader: Reader, options: ApproverOptions, now: datetime) -> ApproverSeen:
    sources = (PLANS, SUBSCRIPTIONS, CSVS, NAMESPACES, APPROVERS)
    try:
        plans, subscriptions, csvs, namespaces, approvers = await asyncio.gather(
            *(listed_if_served(reader, source) for source in sources)
        )
    except Forbidden as error:
        return ApproverSeen(problem=str(error))
    stores = ApproverStores(
        plans, subscriptions, csvs, namespaces, approvers, policy_namespaces=options.policy_namespaces
    )
    observed = (observe(stores, plan.metadata.key, now) for plan in plans)
    pending = (pending_install_plan(one, now) for one in observed if one)
    broken = [
        f"{kind} {key} cannot be read: {store.unreadable(key)}"
        for kind, store in (("InstallPlanApprover", approvers), ("Subscription", subscriptions))
        for key in store.unreadables()
    ]
    return ApproverSeen(
        tuple(sorted(approvers, key=lambda one: one.metadata.key)),
        tuple(sorted(subscriptions, key=lambda one: one.metadata.key)),
        tuple(one for one in pending if one),
        tuple(broken),
    )


def approver_findings(seen: ApproverSeen, options: ApproverOptions) -> Iterator[SwitchFinding]:
    if seen.problem:
        yield unknown("InstallPlans", seen.problem)
        return
    for problem in seen.unreadable:
        yield unknown("what the approver reads", problem)
    for approver in seen.approvers:
        if asks_for_more(approver, options.policy_namespaces):
            yield _limited(approver)
    active = [one for one in seen.approvers if one.spec.auto_approve]
    for subscription in seen.subscriptions:
        covering = [one for one in active if _covered_by_go(one, subscription)]
        if covering and _is_unpinned(subscription):
            yield _unpinned(subscription, covering[0])
    for plan in seen.pending:
        if plan.reason == APPROVES:
            yield SwitchFinding(Effect.CHANGE, f"InstallPlan {plan.key}", f"would be approved: {plan.message}")


def _limited(approver: Approver) -> SwitchFinding:
    key, targets = approver.metadata.key, sorted(set(approver.spec.target_namespaces))
    named = ", ".join(targets[:SHOWN]) + (f" and {len(targets) - SHOWN} more" if len(targets) > SHOWN else "")
    covers = "nothing" if targets and key.namespace not in targets else f"{key.namespace} alone"
    message = (
        f"covers {named or 'all namespaces'} now, and would cover {covers}: an approver decides for other namespaces "
        f"only from a policy namespace. Run virt-steward with --policy-namespaces {key.namespace}, or move it"
    )
    return SwitchFinding(Effect.CHANGE, f"InstallPlanApprover {key}", message)


def _is_unpinned(subscription: Subscription) -> bool:
    spec = subscription.spec
    return spec.approval == "Manual" and not spec.starting_csv and not subscription.is_generated


def _unpinned(subscription: Subscription, approver: Approver) -> SwitchFinding:
    installed = subscription.status.installed_csv
    pin = f"pin it (startingCSV: {installed})" if installed else "pin it by startingCSV"
    message = (
        f"has no startingCSV. InstallPlanApprover {approver.metadata.key} approves any version of it now; virt-steward "
        f"approves none. To stay at a version, {pin}; to follow the channel, set installPlanApproval: Automatic"
    )
    return SwitchFinding(Effect.CHANGE, f"Subscription {subscription.metadata.key}", message)


def _covered_by_go(approver: Approver, subscription: Subscription) -> bool:
    """By the rules of the Go approver: names of namespaces, and how the names of CSVs begin."""
    targets, names = approver.spec.target_namespaces, approver.spec.operator_names
    if targets and subscription.metadata.namespace not in targets:
        return False
    status = subscription.status
    known = [name for name in (status.current_csv, status.installed_csv, subscription.spec.package) if name]
    return not names or any(csv.startswith(name) for name in names for csv in known)
