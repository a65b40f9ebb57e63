"""The status of an approver: the approvals, counted exactly, and the pending plans with their reasons. Pure functions.

How approvals are counted exactly, although a process may be killed between any two requests:

1. The write that approves a plan also stamps it: the annotations `approved-by` (the approver's uid), `approved-at` and
   `approved-because`. An approval without a stamp, or a stamp without an approval, cannot exist.
2. `status.countedPlans` lists the uids of the plans that `status.approvedCount` includes. A status is computed from the
   stamped plans in the cache: those whose uid is not listed are added to the count and to the list, in one write.
3. That write carries the resourceVersion of the approver that it was computed from. If another process wrote a status
   meanwhile, the server answers 409, and the status is computed again from the newer one.

Example: the count is 7. Plan A is approved and stamped, and the process is killed before it writes the status. The next
process finds the stamp of A, whose uid is not listed: it writes count 8 and the list with A. Should it be killed after
that write, the process after it finds A listed, and leaves the count at 8.

A uid may leave the list only when its plan is deleted, or else the plan would be counted again. That a plan is missing
in the cache is no proof: the cache may be older than the status (see `_still_counted`). Nor is a plan in the cache that
is not listed always a new one: if the status is of another process, the plan may have been counted, deleted and removed
from the list before our watch reports that. So nothing is counted while the watch may be behind the status
(`StatusMemory.outdated`). Beyond its limit the list takes no more uids, and the count stops and says so (condition
`CountExact`): better so than to count the same plans again and again.
"""

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
from virt_steward.controllers.approver.conditions import conditions_of
from virt_steward.controllers.approver.observe import EVERYWHERE
from virt_steward.controllers.approver.scope import reaches
from virt_steward.controllers.approver.verdicts import NEED_NOBODY, PlanReason
from virt_steward.objects.identity import Key

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence
    from datetime import datetime

    from virt_steward.controllers.approver.conditions import ApproverEnvironment
    from virt_steward.controllers.approver.observation import Approver
    from virt_steward.controllers.approver.olm import InstallPlan
    from virt_steward.controllers.approver.pending import WaitingPlan
    from virt_steward.controllers.approver.verdicts import WaitForPlan

CSVS_SHOWN = 100
LONGEST_CSV = 253


def fold(
    approver: Approver,
    plans: Collection[InstallPlan],
    waiting: Collection[WaitingPlan],
    now: datetime,
    environment: ApproverEnvironment,
) -> InstallPlanApproverStatus:
    """The next status, from the present one and all `plans` in the cache; see above for how they are counted."""
    before = approver.status
    counted = _still_counted(approver, plans, environment)
    known = set(counted)
    fresh = _newest_first(
        plan
        for plan in plans
        if _was_approved_by(approver, plan, environment)  # few are, so this comes first
        and plan.metadata.uid not in known
        and environment.outdated.isdisjoint((EVERYWHERE, plan.metadata.namespace))
    )
    counted = _with_room(counted, len(fresh), environment)
    room = COUNTED_PLANS_KEPT - len(counted)
    fresh = fresh[:room]
    counted += [plan.metadata.uid for plan in reversed(fresh)]
    kept = (one for one in before.history if _may_name(approver, one.plan, environment))
    history = (*(_approval(plan, now) for plan in fresh[:HISTORY_KEPT]), *kept)[:HISTORY_KEPT]
    last_plan, last_time = (history[0].plan, history[0].time) if history else _last_before(approver, environment)
    return InstallPlanApproverStatus(
        observed_generation=approver.metadata.generation,
        approved_count=before.approved_count + len(fresh),
        last_approved_plan=last_plan,
        last_approved_time=last_time,
        pending_count=len(waiting),
        pending=_pending(waiting),
        history=history,
        counted_plans=tuple(counted),
        conditions=conditions_of(approver, environment, now, counted),
    )


def newly_counted(
    before: InstallPlanApproverStatus, after: InstallPlanApproverStatus, plans: Iterable[InstallPlan]
) -> list[InstallPlan]:
    """The plans that one status counts and the one before does not, oldest first."""
    fresh = set(after.counted_plans).difference(before.counted_plans)
    return _newest_first(plan for plan in plans if plan.metadata.uid in fresh)[::-1] if fresh else []


def would_show(pending: Sequence[PendingPlan], plan: Key, wait: WaitForPlan) -> bool:
    """Whether a status with these pending plans had room for this one, or would have listed it before the last."""
    return len(pending) < PENDING_SHOWN or _rank(plan, wait) < _rank(Key.parse(pending[-1].plan), pending[-1])


def _was_approved_by(approver: Approver, plan: InstallPlan, environment: ApproverEnvironment) -> bool:
    """Whether this approver approved it. A stamp of an approver that does not cover the plan proves nothing."""
    is_stamped = plan.approved and plan.stamp.by == approver.metadata.uid
    return is_stamped and reaches(approver, plan.metadata.namespace, environment.policy_namespaces)


def _may_name(approver: Approver, plan: str, environment: ApproverEnvironment) -> bool:
    """A status names no plan outside of the approver's scope: who may read the one may not know of the other."""
    return reaches(approver, Key.parse(plan).namespace, environment.policy_namespaces)


def _last_before(approver: Approver, environment: ApproverEnvironment) -> tuple[str, datetime | None]:
    """The last approval of a status without a history, as another implementation writes it."""
    status = approver.status
    is_known = not status.history and status.last_approved_plan != ""
    is_kept = is_known and _may_name(approver, status.last_approved_plan, environment)
    return (status.last_approved_plan, status.last_approved_time) if is_kept else ("", None)


def _newest_first(plans: Iterable[InstallPlan]) -> list[InstallPlan]:
    return sorted(plans, key=lambda plan: (plan.stamp.at, plan.metadata.key), reverse=True)


def _still_counted(approver: Approver, plans: Collection[InstallPlan], environment: ApproverEnvironment) -> list[str]:
    """The uids that must stay in the list, or else their plans would be counted again; the oldest first.

    A plan that is missing in the cache is known to be deleted only if the cache is newer than the status, that is, if
    it holds a plan with a higher resourceVersion. Each watched namespace has a watch of its own, and any may be behind.
    So where not all namespaces are watched, the plan must also be known to be of a namespace whose watch is newer.
    """
    counted = approver.status.counted_plans
    missing = set(counted).difference(plan.metadata.uid for plan in plans)
    if not missing:
        return list(counted)
    newer = _newer_namespaces(approver, plans)
    if environment.watched or environment.denied:
        newer = set() if EVERYWHERE in environment.denied else newer.difference(environment.denied)
        namespace_of = environment.plan_namespaces.get
        return [uid for uid in counted if uid not in missing or namespace_of(uid) not in newer]
    return [uid for uid in counted if uid not in missing or not newer]


def _newer_namespaces(approver: Approver, plans: Collection[InstallPlan]) -> set[str]:
    """The namespaces with a plan that is newer than the approver's status."""
    status = int(approver.metadata.resource_version)
    return {plan.metadata.namespace for plan in plans if int(plan.metadata.resource_version) >= status}


def _with_room(counted: list[str], fresh: int, environment: ApproverEnvironment) -> list[str]:
    """If the list is full and not all namespaces are watched, drop the oldest plans that were never observed here."""
    excess = len(counted) + fresh - COUNTED_PLANS_KEPT
    if excess <= 0 or not environment.watched:
        return counted
    unobserved = [uid for uid in counted if uid not in environment.plan_namespaces]
    dropped = set(unobserved[:excess])
    return [uid for uid in counted if uid not in dropped]


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
    """Plans that need a person come first, and among them those that are blocked before those that are not pinned.

    Plans that only need time, and superseded plans, of which there may be dozens, come last.
    """
    if wait.reason == PlanReason.SUPERSEDED:
        return 3
    if wait.until or wait.reason in NEED_NOBODY:
        return 2
    return 1 if wait.reason == PlanReason.NOT_PINNED else 0


def _shown(csvs: tuple[str, ...]) -> tuple[str, ...]:
    """Within the limits of the schema: one odd plan must not make the whole status invalid."""
    return tuple(csv[:LONGEST_CSV] for csv in csvs if csv)[:CSVS_SHOWN]
