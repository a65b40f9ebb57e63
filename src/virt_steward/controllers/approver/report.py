"""An approver's status: what was approved, counted exactly, and what waits, with its reason."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from virt_steward.apis.installplanapprover import (
    COUNTED_PLANS_KEPT,
    HISTORY_KEPT,
    PENDING_SHOWN,
    ApprovalRecord,
    InstallPlanApproverStatus,
    PendingPlan,
)
from virt_steward.apis.meta import Time
from virt_steward.controllers.approver.conditions import ABLE, conditions_of
from virt_steward.controllers.approver.observe import EVERYWHERE
from virt_steward.controllers.approver.verdicts import NEED_NOBODY, PlanReason
from virt_steward.objects.identity import Key

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence
    from datetime import datetime

    from virt_steward.controllers.approver.conditions import Abilities
    from virt_steward.controllers.approver.memory import WaitingPlan
    from virt_steward.controllers.approver.observation import Approver
    from virt_steward.controllers.approver.olm import InstallPlan
    from virt_steward.controllers.approver.verdicts import WaitForPlan

CSVS_SHOWN = 100
LONGEST_CSV = 253


def fold(
    approver: Approver,
    plans: Collection[InstallPlan],
    waiting: Collection[WaitingPlan],
    now: datetime,
    abilities: Abilities = ABLE,
) -> InstallPlanApproverStatus:
    """The status after all that is known now, of all `plans` that there are.

    A stamp is counted once: the uids that are counted already stand in the status itself, and the write that
    adds to them is refused if the status has changed since it was read.
    """
    before = approver.status
    counted = _still_counted(approver, plans, abilities)
    known = set(counted)
    fresh = _newest_first(
        plan for plan in plans if plan.stamp.by == approver.metadata.uid and plan.metadata.uid not in known
    )
    counted = _with_room(counted, len(fresh), abilities)
    room = COUNTED_PLANS_KEPT - len(counted)  # beyond it, a count that stops is better than one that runs away
    fresh = fresh[:room]
    counted += [plan.metadata.uid for plan in reversed(fresh)]
    history = (*(_approval(plan, now) for plan in fresh[:HISTORY_KEPT]), *before.history)[:HISTORY_KEPT]
    return InstallPlanApproverStatus(
        observed_generation=approver.metadata.generation,
        approved_count=before.approved_count + len(fresh),
        last_approved_plan=history[0].plan if history else before.last_approved_plan,
        last_approved_time=history[0].time if history else before.last_approved_time,
        pending_count=len(waiting),
        pending=_pending(waiting),
        history=history,
        counted_plans=tuple(counted),
        conditions=conditions_of(approver, abilities, now, counted),
    )


def newly_counted(
    before: InstallPlanApproverStatus, after: InstallPlanApproverStatus, plans: Iterable[InstallPlan]
) -> list[InstallPlan]:
    """The plans by which one status is ahead of the other, oldest first."""
    fresh = set(after.counted_plans).difference(before.counted_plans)
    return _newest_first(plan for plan in plans if plan.metadata.uid in fresh)[::-1] if fresh else []


def would_show(pending: Sequence[PendingPlan], plan: Key, wait: WaitForPlan) -> bool:
    """Whether a status that shows these had room for a plan that waits so, or would have shown it before the last."""
    return len(pending) < PENDING_SHOWN or _rank(plan, wait) < _rank(Key.parse(pending[-1].plan), pending[-1])


def _newest_first(plans: Iterable[InstallPlan]) -> list[InstallPlan]:
    return sorted(plans, key=lambda plan: (plan.stamp.at, plan.metadata.key), reverse=True)


def _still_counted(approver: Approver, plans: Collection[InstallPlan], abilities: Abilities) -> list[str]:
    """The uids that must stay in the status, lest their plans be counted again; the oldest first.

    That a plan is gone can be told only from plans that were read after the status: a cache that is behind
    may not have heard yet of one that is counted. Where not all namespaces are looked at, it must also be known
    that the plan was in one of those that are: each of them has a watch of its own.
    """
    there = {plan.metadata.uid for plan in plans}
    ahead = _seen_after(approver, plans)
    if abilities.watched or abilities.denied:
        ahead = set() if EVERYWHERE in abilities.denied else ahead.difference(abilities.denied)
        return [uid for uid in approver.status.counted_plans if uid in there or abilities.places.get(uid) not in ahead]
    return [uid for uid in approver.status.counted_plans if uid in there or not ahead]


def _seen_after(approver: Approver, plans: Collection[InstallPlan]) -> set[str]:
    """Namespaces of which something was read that is newer than the approver's status."""
    status = int(approver.metadata.resource_version)
    return {plan.metadata.namespace for plan in plans if int(plan.metadata.resource_version) >= status}


def _with_room(counted: list[str], fresh: int, abilities: Abilities) -> list[str]:
    """Where some namespaces are not looked at, the oldest plans that were never seen here give way to new ones."""
    excess = len(counted) + fresh - COUNTED_PLANS_KEPT
    if excess <= 0 or not abilities.watched:
        return counted
    unseen = [uid for uid in counted if uid not in abilities.places]
    given_up = set(unseen[:excess])
    return [uid for uid in counted if uid not in given_up]


def _approval(plan: InstallPlan, now: datetime) -> ApprovalRecord:
    try:
        time: datetime = msgspec.convert(plan.stamp.at, Time)
    except msgspec.ValidationError:  # somebody edited the annotation
        time = now
    return ApprovalRecord(
        plan=str(plan.metadata.key), csvs=_shown(plan.csvs), time=time, reason=plan.stamp.because[:1024]
    )


def _pending(waiting: Collection[WaitingPlan]) -> tuple[PendingPlan, ...]:
    shown = sorted(waiting, key=lambda one: _rank(one.plan.metadata.key, one.wait))[:PENDING_SHOWN]
    return tuple(
        PendingPlan(
            plan=str(one.plan.metadata.key),
            csvs=_shown(one.plan.csvs),
            reason=one.wait.reason,
            message=one.wait.message[:1024],
            since=one.since,
            until=one.wait.until,
        )
        for one in shown
    )


def _rank(plan: Key, wait: WaitForPlan | PendingPlan) -> tuple[int, Key]:
    return _urgency(wait), plan


def _urgency(wait: WaitForPlan | PendingPlan) -> int:
    """What needs a person comes first, an upgrade that nobody has pinned yet after what is blocked.

    What time settles, and what OLM left behind, which may be dozens, comes last.
    """
    if wait.reason == PlanReason.SUPERSEDED:
        return 3
    if wait.until or wait.reason in NEED_NOBODY:
        return 2
    return 1 if wait.reason == PlanReason.NOT_PINNED else 0


def _shown(csvs: tuple[str, ...]) -> tuple[str, ...]:
    """As the schema of our status wants them: one odd plan must not keep all others from being reported."""
    return tuple(csv[:LONGEST_CSV] for csv in csvs if csv)[:CSVS_SHOWN]
