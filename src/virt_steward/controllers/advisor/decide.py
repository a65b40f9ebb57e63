"""From what was seen to the next step, without looking anywhere else."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from virt_steward.apis.virtplatformconfig import PlanApproval, PlanItem, ProfileOptions
from virt_steward.controllers.advisor.observation import (
    APPROVAL_COMMENT,
    APPROVED_BY,
    AdvisorObservation,
    InvalidWindow,
    differences,
)
from virt_steward.controllers.advisor.phases import SETTLED, STARTING
from virt_steward.controllers.advisor.steps import (
    Abort,
    AdoptVersion,
    ApplyItem,
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
    Redraft,
    Settle,
    Stay,
    Step,
)
from virt_steward.objects.durations import parse_duration
from virt_steward.objects.wallclock import rfc3339
from virt_steward.objects.windows import Closed
from virt_steward.platform.health import NotReady, Ready

if TYPE_CHECKING:
    from collections.abc import Sequence

    from virt_steward.controllers.advisor.observation import VirtPlatformConfig

INPUT_DRIFT = "InputDependencyDrift"
_REJECTED = "has rejected this plan; approve it to have it carried out after all, or set action to DryRun for another"
_UNASKED = (
    "Things have changed since action Apply was set, and nobody has asked for this plan; look at it, and approve it,"
    " or set action to DryRun and then to Apply"
)

Rule = Callable[[AdvisorObservation, datetime], Step | None]


def decide(seen: AdvisorObservation, now: datetime) -> Step:
    """The first rule that has something to say."""
    for rule in RULES:
        step = rule(seen, now)
        if step is not None:
            return step
    return Stay()


def hands_off(seen: AdvisorObservation, _: datetime) -> Step | None:
    return Ignore() if seen.config.spec.action == "Ignore" else None


def everything_was_seen(seen: AdvisorObservation, _: datetime) -> Step | None:
    return Settle(seen.unsettled) if seen.unsettled else None


def prerequisites_are_met(seen: AdvisorObservation, _: datetime) -> Step | None:
    return LackPrerequisites(seen.missing) if seen.missing else None


def there_is_a_plan(seen: AdvisorObservation, _: datetime) -> Step | None:
    return Redraft("there is no plan yet") if seen.config.status.phase in STARTING else None


def the_plan_is_for_this_spec(seen: AdvisorObservation, _: datetime) -> Step | None:
    config = seen.config
    if _has_other_options(config):
        return Redraft("the options have changed")
    if (config.spec.action == "Rollback") != (config.status.plan_action == "Rollback"):
        return Redraft(f"action {config.spec.action} needs another plan")
    return None


def a_failure_stands_until_somebody_acts(seen: AdvisorObservation, _: datetime) -> Step | None:
    if seen.config.status.phase != "Failed":
        return None
    return Redraft("the spec has changed since the failure") if seen.config.is_touched else Stay()


def a_review_is_of_the_plan_as_it_would_be_now(seen: AdvisorObservation, _: datetime) -> Step | None:
    """Unless a target was changed: then the plan stays as it is, and says so."""
    config = seen.config
    if config.status.phase != "ReviewRequired":
        return None
    if config.spec.action == "DryRun" and config.is_touched:
        return Redraft("a new plan was asked for")
    if seen.changed_targets:
        return None
    if seen.inputs != config.status.inputs:
        return Redraft("; ".join(differences(config.status.inputs, seen.inputs)))
    if seen.version != config.status.operator_version:
        return Redraft(f"version {seen.version} may plan otherwise")
    return None


def a_review_is_of_something_left_to_do(seen: AdvisorObservation, _: datetime) -> Step | None:
    """Where nothing is to be written, there may still be something to wait for."""
    if seen.config.status.phase != "ReviewRequired" or seen.changed_targets:
        return None
    is_over = all(_works(seen, item) for item in seen.config.status.items)
    return Redraft("all that was to be waited for works by now") if is_over else None


def a_review_ends_by_approval(seen: AdvisorObservation, now: datetime) -> Step | None:
    config = seen.config
    if config.status.phase != "ReviewRequired":
        return None
    stale = _stale(seen)
    match review(seen, config.status.plan_hash, config.status.plan_generation, now):
        case Begin() if stale and not config.spec.bypass_optimistic_lock:
            return FailStale(stale)
        case AwaitReview(reason, message):
            return AwaitReview(reason, message, stale)
        case step:
            return step


def a_plan_is_carried_out_item_by_item(seen: AdvisorObservation, now: datetime) -> Step | None:
    if seen.config.status.phase != "InProgress":
        return None
    if seen.config.spec.action == "DryRun":
        return Redraft("action DryRun ends the execution")
    items = seen.config.status.items
    current = next((item for item in items if item.state in ("Pending", "InProgress")), None)
    if current is None:
        return Finish(tuple(item.name for item in items if item.state == "Failed"))
    if current.state == "InProgress" or current.name in seen.written:
        return _await(seen, current, now)
    return _begin(seen, current)


def a_new_spec_needs_a_new_plan(seen: AdvisorObservation, _: datetime) -> Step | None:
    """Under Apply only if it asks for one, or something has failed: drift and upgrades stay on view."""
    config = seen.config
    phase = config.status.phase
    if phase not in SETTLED or not config.is_touched:
        return None
    if config.spec.action == "Apply" and phase != "CompletedWithErrors" and not _is_asked_anew(config):
        return None
    return Redraft("the spec has changed")


def what_was_undone_is_left_alone(seen: AdvisorObservation, _: datetime) -> Step | None:
    return Stay() if seen.config.status.plan_action == "Rollback" else None


def inputs_are_as_they_were(seen: AdvisorObservation, _: datetime) -> Step | None:
    changed = differences(seen.config.status.inputs, seen.inputs)
    return Redraft("; ".join(changed)) if changed else None


def nobody_has_aligned_it_by_hand(seen: AdvisorObservation, _: datetime) -> Step | None:
    if seen.logic is None or seen.logic.aligned is None:
        return None
    return AdoptVersion("ManuallyAligned", seen.logic.aligned)


def targets_are_as_planned(seen: AdvisorObservation, _: datetime) -> Step | None:
    config, drifted = seen.config, seen.drifted
    if drifted:
        if config.spec.action == "Apply" and config.spec.bypass_optimistic_lock:
            return Enforce(drifted)
        governed = {one.target_ref for one in config.status.governed}
        if config.spec.action == "Apply" or any(item.target_ref in governed for item in drifted):
            return MarkDrifted(drifted)
        return Redraft("a target has changed, and nothing was ever applied")
    if config.status.phase == "Drifted":
        return Recover(with_errors=any(item.state == "Failed" for item in config.status.items))
    return None


def the_logic_is_as_it_was(seen: AdvisorObservation, _: datetime) -> Step | None:
    """Asked last: an upgrade that is offered must not hide drift, nor one without news end it."""
    config = seen.config
    if seen.logic is not None and seen.logic.differs:
        return OfferUpgrade(seen.logic.differs)
    if seen.logic is not None or config.status.phase == "CompletedWithUpgrade":  # the version on offer may be gone
        return AdoptVersion("NoLogicChange", config.status.items)
    return None


RULES: tuple[Rule, ...] = (
    hands_off,
    everything_was_seen,
    prerequisites_are_met,
    there_is_a_plan,
    the_plan_is_for_this_spec,
    a_failure_stands_until_somebody_acts,
    a_review_is_of_the_plan_as_it_would_be_now,
    a_review_is_of_something_left_to_do,
    a_review_ends_by_approval,
    a_plan_is_carried_out_item_by_item,
    a_new_spec_needs_a_new_plan,
    what_was_undone_is_left_alone,
    inputs_are_as_they_were,
    nobody_has_aligned_it_by_hand,
    targets_are_as_planned,
    the_logic_is_as_it_was,
)
"""In this order: what comes first leaves nothing for the rest."""


def after_draft(
    seen: AdvisorObservation, items: Sequence[PlanItem], plan_hash: str, now: datetime
) -> NothingToDo | AwaitReview | Begin:
    """What a new plan leads to."""
    if all(item.state == "Completed" for item in items):
        return NothingToDo()
    return review(seen, plan_hash, seen.config.metadata.generation, now)


def review(seen: AdvisorObservation, plan_hash: str, plan_generation: int, now: datetime) -> AwaitReview | Begin:
    """Whether a plan may begin: approved by its hash, or asked for by action Apply while inputs are as they were."""
    config = seen.config
    approved = config.approved_plan
    if config.spec.action == "DryRun":
        return AwaitReview("PlanReady", "The plan is ready for review; set action to Apply to carry it out")
    if approved and approved == plan_hash:
        return Begin(_approval(seen, plan_hash, now))
    if config.spec.action == "Rollback":
        return AwaitReview("RollbackReady", "The way back is ready for review; it needs an approval of this very plan")
    if approved:
        return AwaitReview("ApprovalVoid", "The plan is not the one that was approved; look at it and approve it anew")
    return _held_back(seen, plan_hash, plan_generation) or Begin(_approval(seen, plan_hash, now))


def _held_back(seen: AdvisorObservation, plan_hash: str, plan_generation: int) -> AwaitReview | None:
    """Why action Apply by itself is not enough; None if it is. A change of inputs is agreed to by any later spec."""
    config = seen.config
    if config.rejected_plan == plan_hash and not _is_asked_anew(config):
        return AwaitReview("Rejected", f"{config.rejected_by or 'Somebody'} {_REJECTED}")
    if forced := forced_by(seen):
        is_agreed = config.metadata.generation > plan_generation
        message = f"{'; '.join(forced)}; look at the plan, and approve it or change the spec"
        return None if is_agreed else AwaitReview("InputChanged", message)
    return None if _is_asked_for(config, plan_hash) else AwaitReview("PlanChanged", _UNASKED)


def forced_by(seen: AdvisorObservation) -> tuple[str, ...]:
    """Inputs that are not those of what was carried out last: nobody has agreed to what follows from them.

    Which inputs there are depends on the options, and those are the admin's own: only another value counts.
    """
    before, now = seen.config.status.applied_inputs, seen.inputs
    shared = {one.name for one in before} & {one.name for one in now}
    return differences(*(tuple(one for one in inputs if one.name in shared) for inputs in (before, now)))


def _is_asked_for(config: VirtPlatformConfig, plan_hash: str) -> bool:
    """Whether action Apply speaks of this plan.

    Each time that somebody sets it, or sets other options under it, it asks for one plan: the one on view if that is in
    review, else the next. A plan that comes later, for whatever reason, is one that nobody has seen.
    """
    is_another = config.status.phase == "ReviewRequired" and plan_hash != config.status.plan_hash
    return _has_other_options(config) or (_is_asked_anew(config) and not is_another)


def _is_asked_anew(config: VirtPlatformConfig) -> bool:
    """Whether the action was set since the plan was made, or begun."""
    return config.spec.action != config.status.plan_action


def _has_other_options(config: VirtPlatformConfig) -> bool:
    return config.options != (config.status.applied_options or ProfileOptions())


def _works(seen: AdvisorObservation, item: PlanItem) -> bool:
    """Whether nothing is left to be done about an item, or waited for."""
    return item.state == "Completed" or (item.state == "InProgress" and isinstance(seen.health.get(item.name), Ready))


def _approval(seen: AdvisorObservation, plan_hash: str, now: datetime) -> PlanApproval:
    notes = seen.config.metadata.annotations
    if seen.config.approved_plan != plan_hash:
        return PlanApproval(plan_hash, now)
    return PlanApproval(plan_hash, now, notes.get(APPROVED_BY, "")[:253], notes.get(APPROVAL_COMMENT, "")[:1024])


def _stale(seen: AdvisorObservation) -> str:
    changed = seen.changed_targets
    named = ", ".join(f"{item.target_ref.kind} {item.target_ref.name}" for item in changed)
    return f"{named} changed since the plan was made; {_anew(seen)}" if changed else ""


def _anew(seen: AdvisorObservation) -> str:
    """How to get another plan: an action that is set already cannot be set."""
    match seen.config.spec.action:
        case "DryRun":
            return "for a new plan set action to Ignore, and then to DryRun again"
        case "Rollback":
            return "for a new way back set action to Ignore, and then to Rollback again"
    return "set action to DryRun for a new plan"


def _begin(seen: AdvisorObservation, item: PlanItem) -> Step:
    spec = seen.config.spec
    match seen.window:
        case InvalidWindow(why):
            return AwaitWindow("BadWindow", f"spec.window is none, so nothing begins: {why}", None)
        case Closed(until=None):
            return AwaitWindow("NeverOpen", "spec.window never opens, so nothing begins", None)
        case Closed(until=datetime() as until):
            return AwaitWindow("WindowClosed", f"{item.name} begins when the window opens at {rfc3339(until)}", until)
    if not spec.bypass_optimistic_lock and seen.hashes.get(item.name) != item.hash:
        target = f"{item.target_ref.kind} {item.target_ref.name}"
        return FailStale(f"{target} changed since the plan was made; {_anew(seen)}")
    return ApplyItem(item)


def _await(seen: AdvisorObservation, item: PlanItem, now: datetime) -> Step:
    spec = seen.config.spec
    health = seen.health.get(item.name, NotReady("Waiting"))
    if isinstance(health, Ready):
        return CompleteItem(item, health.message)
    timeout = parse_duration(spec.wait_timeout) if spec.wait_timeout else None
    since = item.last_transition_time if item.state == "InProgress" and item.last_transition_time else now
    if timeout is not None and now - since >= timeout:
        return failed(seen, item, f"Timed out after {_shown(timeout)}: {health.message}")
    return AwaitItem(item, health.message, since + timeout if timeout is not None else None)


def failed(seen: AdvisorObservation, item: PlanItem, why: str) -> FailItem | Abort:
    """What a failure means, by the policy."""
    return FailItem(item, why) if seen.config.spec.failure_policy == "Continue" else Abort(item, why)


def _shown(duration: timedelta) -> str:
    return f"{duration.total_seconds():g} s"
