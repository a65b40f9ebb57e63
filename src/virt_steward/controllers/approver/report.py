"""An approver's status: what was approved, counted exactly, and what waits, with its reason."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from virt_steward.apis.installplanapprover import (
    COUNTED_PLANS_KEPT,
    HISTORY_KEPT,
    PENDING_SHOWN,
    Approval,
    InstallPlanApproverStatus,
    PendingPlan,
)
from virt_steward.apis.meta import Time
from virt_steward.controllers.approver.conditions import ABLE, conditions_of
from virt_steward.controllers.approver.verdicts import Reason

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence
    from datetime import datetime

    from virt_steward.controllers.approver.conditions import Abilities
    from virt_steward.controllers.approver.olm import Plan
    from virt_steward.controllers.approver.seen import Approver
    from virt_steward.controllers.approver.verdicts import Wait

CSVS_SHOWN = 100
LONGEST_CSV = 253


def fold(
    approver: Approver,
    plans: Collection[Plan],
    waiting: Sequence[tuple[Plan, Wait]],
    now: datetime,
    abilities: Abilities = ABLE,
) -> InstallPlanApproverStatus:
    """The status after all that is known now, of all `plans` that there are.

    A stamp is counted once: the uids that are counted already stand in the status itself, and the write that
    adds to them is refused if the status has changed since it was read.
    """
    before = approver.status
    # Plans of a namespace that is not looked at are not gone: forgotten now, they would be counted again.
    blind = abilities.denied or abilities.watched
    counted = set(before.counted_plans) if blind else _still_counted(approver, plans)
    room = COUNTED_PLANS_KEPT - len(counted)  # beyond it, a count that stops is better than one that runs away
    fresh = _newest_first(
        plan for plan in plans if plan.stamp.by == approver.metadata.uid and plan.metadata.uid not in counted
    )[:room]
    history = (*(_approval(plan, now) for plan in fresh[:HISTORY_KEPT]), *before.history)[:HISTORY_KEPT]
    return InstallPlanApproverStatus(
        observed_generation=approver.metadata.generation,
        approved_count=before.approved_count + len(fresh),
        last_approved_plan=history[0].plan if history else before.last_approved_plan,
        last_approved_time=history[0].time if history else before.last_approved_time,
        pending_count=len(waiting),
        pending=_pending(waiting, before.pending, now),
        history=history,
        counted_plans=tuple(sorted(counted.union(plan.metadata.uid for plan in fresh))),
        conditions=conditions_of(approver, abilities, now),
    )


def newly_counted(
    before: InstallPlanApproverStatus, after: InstallPlanApproverStatus, plans: Iterable[Plan]
) -> list[Plan]:
    """The plans by which one status is ahead of the other, oldest first."""
    fresh = set(after.counted_plans).difference(before.counted_plans)
    return _newest_first(plan for plan in plans if plan.metadata.uid in fresh)[::-1] if fresh else []


def _newest_first(plans: Iterable[Plan]) -> list[Plan]:
    return sorted(plans, key=lambda plan: (plan.stamp.at, plan.metadata.key), reverse=True)


def _still_counted(approver: Approver, plans: Collection[Plan]) -> set[str]:
    """The uids that must stay in the status, lest their plans be counted again.

    That a plan is gone can be told only from plans that were read after the status: a cache that is behind
    may not have heard yet of one that is counted.
    """
    counted = set(approver.status.counted_plans)
    newest = max((int(plan.metadata.resource_version) for plan in plans), default=0)
    if newest < int(approver.metadata.resource_version):
        return counted
    return counted.intersection(plan.metadata.uid for plan in plans)


def _approval(plan: Plan, now: datetime) -> Approval:
    try:
        time: datetime = msgspec.convert(plan.stamp.at, Time)
    except msgspec.ValidationError:  # somebody edited the annotation
        time = now
    return Approval(plan=str(plan.metadata.key), csvs=_shown(plan.csvs), time=time, reason=plan.stamp.because[:1024])


def _pending(
    waiting: Sequence[tuple[Plan, Wait]], before: Iterable[PendingPlan], now: datetime
) -> tuple[PendingPlan, ...]:
    since = {(one.plan, one.reason): one.since for one in before}
    shown = sorted(waiting, key=lambda item: (_urgency(item[1]), item[0].metadata.key))[:PENDING_SHOWN]
    return tuple(
        PendingPlan(
            plan=str(plan.metadata.key),
            csvs=_shown(plan.csvs),
            reason=wait.reason,
            message=wait.message[:1024],
            since=since.get((str(plan.metadata.key), wait.reason), now),
            until=wait.until,
        )
        for plan, wait in shown
    )


def _urgency(wait: Wait) -> int:
    """What needs a person comes first: outdated plans lie about by the dozen, and need nobody."""
    return {Reason.SUPERSEDED: 2, Reason.NOT_PINNED: 1}.get(wait.reason, 0)


def _shown(csvs: tuple[str, ...]) -> tuple[str, ...]:
    """As the schema of our status wants them: one odd plan must not keep all others from being reported."""
    return tuple(csv[:LONGEST_CSV] for csv in csvs if csv)[:CSVS_SHOWN]
