"""The status after a step. Pure: the same step on the same status says the same, so that nothing is written twice."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from virt_steward.apis.virtplatformconfig import HISTORY_KEPT, Execution, PlanItem
from virt_steward.controllers.advisor.conditions import Fact, conditions_of, with_notices
from virt_steward.controllers.advisor.phases import after
from virt_steward.controllers.advisor.steps import (
    Abort,
    AdoptVersion,
    AwaitItem,
    AwaitReview,
    AwaitWindow,
    Begin,
    CompleteItem,
    Enforce,
    FailItem,
    FailStale,
    Finish,
    Ignore,
    LackPrerequisites,
    MarkDrifted,
    NothingToDo,
    OfferUpgrade,
    Recover,
    RedraftLater,
    RejectPlan,
    Settle,
    Stay,
)
from virt_steward.plans.fingerprint import snapshot_hash
from virt_steward.plans.governed import governing, without
from virt_steward.plans.intent import worst
from virt_steward.plans.preimage import record_name

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from datetime import datetime

    from virt_steward.apis.virtplatformconfig import ItemState, Outcome, VirtPlatformConfigStatus
    from virt_steward.controllers.advisor.observation import AdvisorObservation
    from virt_steward.controllers.advisor.steps import Said

LONGEST_MESSAGE = 2048
DRIFTED = "Others have changed it since it was applied"
REPAIRED = "As planned again"
_IN_PLACE = ("InDesiredState", "Everything is as this profile wants it; there was nothing to apply")
_NOTHING = {"Rollback": ("RolledBack", "There is nothing left to take back")}
_ENDS = {"Rollback": ("RolledBack", "What this profile had changed is taken back")}


def with_plan(seen: AdvisorObservation, items: Sequence[PlanItem], plan_hash: str) -> VirtPlatformConfigStatus:
    """The status with a new plan in the place of the old one, before anything is said about it."""
    config = seen.config
    approval = config.status.approval
    return msgspec.structs.replace(
        config.status,
        items=tuple(items),
        plan_hash=plan_hash,
        plan_action=config.spec.action,
        plan_generation=config.metadata.generation,
        source_snapshot_hash=snapshot_hash(items),
        operator_version=seen.version,
        applied_options=config.options,
        inputs=seen.inputs,
        approval=approval if approval and approval.plan_hash == plan_hash else None,
    )


def fold(
    seen: AdvisorObservation, status: VirtPlatformConfigStatus, step: Said, now: datetime
) -> VirtPlatformConfigStatus:
    """The status after a step."""
    if isinstance(step, Stay):
        return msgspec.structs.replace(
            status, observed_generation=seen.config.metadata.generation, conditions=with_notices(seen, status, now)
        )
    phase = after(status.phase, step.on)
    changed = msgspec.structs.replace(
        status,
        phase=phase,
        observed_generation=seen.config.metadata.generation,
        **_changes(seen, status, step, now),
    )
    if _is_interrupted(seen.config.status, changed, step):
        changed = msgspec.structs.replace(changed, history=_history(seen.config.status, "Interrupted", now))
    impact = seen.impact if phase == "Ignored" else worst(item.impact_severity for item in changed.items)
    said = Fact(phase, True, *_words(changed, step))
    return msgspec.structs.replace(
        changed, impact_severity=impact, conditions=conditions_of(seen, changed, step, said, now)
    )


def _changes(  # noqa: PLR0911 - a table by step
    seen: AdvisorObservation, status: VirtPlatformConfigStatus, step: Said, now: datetime
) -> dict[str, Any]:
    """What a step changes besides phase and conditions."""
    match step:
        case Ignore():
            return {"applied_inputs": (), "plan_action": None}
        case Begin(approval):
            return {"approval": approval, "plan_action": seen.config.spec.action}
        case NothingToDo():
            return {"applied_inputs": status.inputs, **_after_undoing(status)}
        case AwaitItem(item, message):
            return _written(seen, status, item, _moved(item, "InProgress", message, now))
        case CompleteItem(item, message):
            return _written(seen, status, item, _moved(item, "Completed", message, now))
        case FailItem(item, message):
            return {"items": _replaced(status.items, _moved(item, "Failed", message, now))}
        case Abort(item, message):
            items = _replaced(status.items, _moved(item, "Failed", message, now))
            return {"items": items, "history": _history(status, "Failed", now)}
        case FailStale():
            executed = {"history": _history(status, "Failed", now)} if status.phase == "InProgress" else {}
            return {"plan_action": seen.config.spec.action, **executed}
        case Finish(failed):
            outcome: Outcome = "CompletedWithErrors" if failed else "Completed"
            ended = {"applied_inputs": status.inputs, "history": _history(status, outcome, now)}
            return ended | _after_undoing(status)
    return _watched(seen, status, step, now)


def _watched(seen: AdvisorObservation, status: VirtPlatformConfigStatus, step: Said, now: datetime) -> dict[str, Any]:
    """The same for what happens after a plan was carried out."""
    match step:
        case MarkDrifted(items):
            names = {item.name for item in items}
            return {"items": tuple(_noted(item, drifted=item.name in names) for item in status.items)}
        case Recover():
            return {"items": tuple(_noted(item, drifted=False) for item in status.items)}
        case Enforce(items):
            again = [_moved(item, "Pending", "Others changed it: applied again", now) for item in items]
            return {"items": _replaced(status.items, *again)}
        case AdoptVersion(_, items):
            return {"items": items, "operator_version": seen.version, "applied_inputs": status.inputs}
    return {}


def _written(
    seen: AdvisorObservation, status: VirtPlatformConfigStatus, item: PlanItem, moved: PlanItem
) -> dict[str, Any]:
    """An item was written: what is there is ours, and the record of this plan is the one to go back to."""
    changed = {"items": _replaced(status.items, moved)}
    if item.state != "Pending":  # that was said when it was written, be it by an earlier plan
        return changed
    if status.plan_action == "Rollback":
        return changed | {"governed": without(status.governed, item)}
    record = record_name(seen.config.metadata.name, status.plan_hash)
    return changed | {"governed": governing(status.governed, item), "pre_image": record}


def _after_undoing(status: VirtPlatformConfigStatus) -> dict[str, Any]:
    """On the way back, what was gone already is given up too; where something failed, the record is still needed."""
    if status.plan_action != "Rollback":
        return {}
    left = {item.target_ref for item in status.items if item.state == "Failed"}
    ended = {item.target_ref for item in status.items} - left
    governed = tuple(one for one in status.governed if one.target_ref not in ended)
    if left:
        return {"governed": governed}
    return {"governed": governed, "pre_image": "", "applied_inputs": ()}


def _moved(item: PlanItem, state: ItemState, message: str, now: datetime) -> PlanItem:
    """The item in a state; the time moves only when the state does."""
    since = item.last_transition_time if item.state == state and item.last_transition_time else now
    return msgspec.structs.replace(item, state=state, message=message[:LONGEST_MESSAGE], last_transition_time=since)


def _noted(item: PlanItem, *, drifted: bool) -> PlanItem:
    if drifted:
        return msgspec.structs.replace(item, message=DRIFTED)
    return msgspec.structs.replace(item, message=REPAIRED) if item.message == DRIFTED else item


def _replaced(items: Iterable[PlanItem], *changed: PlanItem) -> tuple[PlanItem, ...]:
    by_name = {item.name: item for item in changed}
    return tuple(by_name.get(item.name, item) for item in items)


def _is_interrupted(before: VirtPlatformConfigStatus, after_it: VirtPlatformConfigStatus, step: Said) -> bool:
    """Whether the plan that was being carried out is so no longer, though it has not come to its end."""
    if before.phase != "InProgress" or isinstance(step, Finish | Abort | FailStale):
        return False
    return (after_it.phase, after_it.plan_hash) != ("InProgress", before.plan_hash)


def _history(status: VirtPlatformConfigStatus, outcome: Outcome, now: datetime) -> tuple[Execution, ...]:
    approval = status.approval
    ended = Execution(
        plan_hash=status.plan_hash,
        at=now,
        outcome=outcome,
        by=approval.by if approval else "",
        comment=approval.comment if approval else "",
        version=status.operator_version,
    )
    is_again = any(msgspec.structs.replace(ended, at=one.at) == one for one in status.history[:1])  # by bypass mode
    earlier = status.history[1:] if is_again else status.history
    return (ended, *earlier)[:HISTORY_KEPT]


def _words(status: VirtPlatformConfigStatus, step: Said) -> tuple[str, str]:  # noqa: PLR0911 - a table by step
    """Reason and message of the phase."""
    match step:
        case Ignore():
            return "Ignored", "Nothing is planned, watched or changed; what was applied before stays as it is"
        case Settle(why):
            return "NotReady", why
        case LackPrerequisites(missing):
            return "PrerequisitesFailed", "Missing: " + "; ".join(missing)
        case RedraftLater(why):
            return "TargetsMoving", why
        case RejectPlan(item, why):
            return "PlanRejected", f"{item} cannot be planned: {why}"
        case AwaitReview(reason, message):
            return reason, message
        case FailStale(why):
            return "PlanStale", why
        case Abort(item, why):
            return "ItemFailed", f"{item.name} failed, and nothing after it was begun: {why}"
        case NothingToDo():
            return _NOTHING.get(status.plan_action or "", _IN_PLACE)
    return _progress(status, step)


def _progress(status: VirtPlatformConfigStatus, step: Said) -> tuple[str, str]:  # noqa: PLR0911 - a table by step
    done = sum(item.state in ("Completed", "Failed") for item in status.items)
    so_far = f"{done} of {len(status.items)} items are done"
    match step:
        case Begin(approval):
            by = approval.by or "action Apply"
            return "Executing", f"Approved by {by}; {so_far}"
        case AwaitWindow(reason, message):
            return reason, message
        case AwaitItem(item) | CompleteItem(item) | FailItem(item):
            return "Executing", f"{so_far}; the last to move was {item.name}"
        case Finish(failed) if failed:
            return "CompletedWithErrors", f"All items were tried; failed: {', '.join(failed)}"
        case MarkDrifted(items):
            return "DriftDetected", f"No longer as applied: {', '.join(item.name for item in items)}"
        case Enforce(items):
            return "Enforcing", f"Applied again, by bypassOptimisticLock: {', '.join(item.name for item in items)}"
        case OfferUpgrade(items):
            return "LogicChanged", f"A newer version would change: {', '.join(items)}"
        case Recover():
            return "DriftCorrected", "What had drifted is as planned again"
        case AdoptVersion(reason):
            return reason, f"Version {status.operator_version} wants what is there"
    return _ENDS.get(status.plan_action or "", ("Applied", "All items are applied and work"))
