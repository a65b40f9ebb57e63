"""From an observation to the next step. Pure: an ordered chain of checks, the first that returns a step decides."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from virt_steward.controllers.advisor.adoption import Adopted, has_offer
from virt_steward.controllers.advisor.approval import has_other_options, is_action_changed, offer, review
from virt_steward.controllers.advisor.holds import freeze_is_over, window_is_open
from virt_steward.controllers.advisor.integrity import Altered, Behind, Unrecorded
from virt_steward.controllers.advisor.observation import AdvisorObservation, differences
from virt_steward.controllers.advisor.phases import ANY, EXECUTING, IN_REVIEW, SETTLED, STARTING
from virt_steward.controllers.advisor.steps import (
    AdoptVersion,
    ApplyItem,
    AwaitGates,
    AwaitItem,
    AwaitReview,
    Begin,
    CompleteItem,
    Enforce,
    EvaluateGates,
    FailStale,
    FailTampered,
    Finish,
    Ignore,
    KeepFailed,
    LackPrerequisites,
    MarkDrifted,
    OfferUpgrade,
    Recover,
    Redraft,
    RestoreStatus,
    Settle,
    Stay,
    Step,
    failed_item,
)
from virt_steward.controllers.advisor.steps.integrity import restored
from virt_steward.holds.gates import GATE_CLOSED, NotEvaluated, closed_gates
from virt_steward.holds.order import HoldKind, in_order
from virt_steward.objects.checks import CheckResult
from virt_steward.objects.durations import parse_duration
from virt_steward.platform.health import NotReady, Ready

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from virt_steward.apis.virtplatformconfig import Phase, PlanItem
    from virt_steward.objects.checks import Result

Rule = Callable[[AdvisorObservation, datetime], Step | None]


@dataclass(frozen=True, slots=True)
class AdvisorCheck:
    """A rule with its title for users. The rule returns None to let the next one decide."""

    title: str
    rule: Rule
    passed: str = ""
    """What an explanation says of it when it passes."""
    phases: frozenset[Phase | None] = ANY
    """It is asked only in these."""


def decide(observation: AdvisorObservation, now: datetime) -> Step:
    """The step of the first check that returns one."""
    phase = observation.config.status.phase
    steps = (check.rule(observation, now) for check in CHECKS if phase in check.phases)
    return next((step for step in steps if step is not None), Stay())


def trace(observation: AdvisorObservation, now: datetime) -> tuple[CheckResult, ...]:
    """Every check with its result, for explanations. If none decided, there is nothing to do."""
    return tuple(_traced(observation, now))


def _traced(observation: AdvisorObservation, now: datetime) -> Iterator[CheckResult]:
    phase, is_decided = observation.config.status.phase, False
    for check in CHECKS:
        if is_decided:
            yield CheckResult(check.title, "not reached")
        elif phase not in check.phases:
            yield CheckResult(check.title, "not reached", f"does not apply in phase {phase or 'none'}")
        elif (step := check.rule(observation, now)) is None:
            yield CheckResult(check.title, "pass", check.passed)
        else:
            is_decided = True
            result: Result = "pass" if step.is_success() else "fail"
            yield CheckResult(check.title, result, step.summary(observation), decided=True)


def action_is_not_ignore(observation: AdvisorObservation, _: datetime) -> Step | None:
    return Ignore() if observation.config.spec.action == "Ignore" else None


def status_is_ours(observation: AdvisorObservation, now: datetime) -> Step | None:
    """A status that others have changed is restored. A plan that runs, or that would start now, fails instead.

    One that would start may have been approved by somebody who was shown something else.
    """
    match observation.integrity:
        case Behind():
            return RestoreStatus("the last write of the status failed; it is repeated")
        case Altered(is_started=is_started) as altered:
            is_next = is_started or observation.config.status.phase == "InProgress" or _would_begin(observation, now)
            return FailTampered(str(altered)) if is_next else RestoreStatus(restored(str(altered)))
    return None


def _would_begin(observation: AdvisorObservation, now: datetime) -> bool:
    return observation.config.status.phase in IN_REVIEW and isinstance(execution_may_start(observation, now), Begin)


def inputs_are_read(observation: AdvisorObservation, _: datetime) -> Step | None:
    return Settle(observation.unsettled) if observation.unsettled else None


def prerequisites_are_met(observation: AdvisorObservation, _: datetime) -> Step | None:
    return LackPrerequisites(observation.missing) if observation.missing else None


def plan_exists(observation: AdvisorObservation, _: datetime) -> Step | None:
    return Redraft("there is no plan yet") if observation.config.status.phase in STARTING else None


def plan_matches_spec(observation: AdvisorObservation, _: datetime) -> Step | None:
    config = observation.config
    if has_other_options(config):
        return Redraft("the options have changed")
    if (config.spec.action == "Rollback") != (config.status.plan_action == "Rollback"):
        return Redraft(f"action {config.spec.action} needs another plan")
    return None


def failure_is_resolved(observation: AdvisorObservation, _: datetime) -> Step | None:
    """A failure stays until somebody changes the spec."""
    if observation.config.status.phase != "Failed":
        return None
    if observation.config.is_touched:
        return Redraft("the spec has changed since the failure")
    if isinstance(observation.integrity, Adopted):
        return KeepFailed(str(observation.integrity))
    return Stay("the plan failed; fix the cause and set action to DryRun for a new plan")


def plan_is_recorded(observation: AdvisorObservation, _: datetime) -> Step | None:
    """What is not recorded is not executed. After a rollback nothing is."""
    status = observation.config.status
    if isinstance(observation.integrity, Adopted) and status.phase != "InProgress":
        return Redraft(f"the status was written by {observation.integrity}, and nothing of that plan is executed")
    is_over = status.phase in SETTLED and status.plan_action == "Rollback"
    if is_over or not isinstance(observation.integrity, Unrecorded):
        return None
    return Redraft("there is no record of the plan, as after an upgrade from version 0.1")


def review_is_current(observation: AdvisorObservation, _: datetime) -> Step | None:
    """Whether a plan made now would be the same. If a target was changed, the plan is kept and reported as stale."""
    config = observation.config
    if config.spec.action == "DryRun" and config.is_touched:
        return Redraft("action DryRun was requested again")
    if observation.changed_targets:
        return None
    if observation.inputs != config.status.inputs:
        return Redraft("; ".join(differences(config.status.inputs, observation.inputs)))
    if observation.version != config.status.operator_version:
        return Redraft(f"version {observation.version} may plan it differently")
    return None


def review_has_pending_work(observation: AdvisorObservation, _: datetime) -> Step | None:
    """A plan that writes nothing may still wait for targets; once all of them are ready, there is nothing to review."""
    if observation.changed_targets:
        return None
    is_over = all(_is_done(observation, item) for item in observation.config.status.items)
    return Redraft("all targets are ready by now") if is_over else None


def plan_is_approved(observation: AdvisorObservation, now: datetime) -> Step | None:
    status = observation.config.status
    step = review(observation, status.plan_hash, status.plan_generation, now)
    return AwaitReview(step.reason, step.message, _stale(observation)) if isinstance(step, AwaitReview) else None


def execution_is_wanted(observation: AdvisorObservation, _: datetime) -> Step | None:
    return Redraft("action DryRun ends the execution") if observation.config.spec.action == "DryRun" else None


def items_remain(observation: AdvisorObservation, _: datetime) -> Step | None:
    item = observation.current_item
    if not observation.config.status.plan_hash and (item is None or item.state == "Pending"):
        return Redraft("what another version of the advisor has applied is ready")
    if item is not None:
        return None
    return Finish(tuple(item.name for item in observation.config.status.items if item.state == "Failed"))


def current_item_is_ready(observation: AdvisorObservation, now: datetime) -> Step | None:
    """An item that was written holds the next one back until its target is ready, or it has timed out."""
    item = observation.current_item
    if item is None or not (item.state == "InProgress" or item.name in observation.written):
        return None
    spec = observation.config.spec
    health = observation.health.get(item.name, NotReady("Waiting"))
    if isinstance(health, Ready):
        return CompleteItem(item, health.message)
    timeout = parse_duration(spec.wait_timeout) if spec.wait_timeout else None
    since = item.last_transition_time if item.state == "InProgress" and item.last_transition_time else now
    if timeout is not None and now - since >= timeout:
        return failed_item(observation, item, f"Timed out after {timeout.total_seconds():g} s: {health.message}")
    return AwaitItem(item, health.message, since + timeout if timeout is not None else None)


def gates_are_open(observation: AdvisorObservation, now: datetime) -> Step | None:
    """Asked for an item that would start now; one whose target has changed fails without asking."""
    item, closed = observation.current_item, closed_gates(observation.gates_wanted, observation.gates)
    if item is None or closed is None or targets_are_unchanged(observation, now):
        return None
    if isinstance(closed, NotEvaluated):
        return EvaluateGates(closed)
    return AwaitGates(GATE_CLOSED, f"{item.name} does not start: {closed.message}", now + observation.gates_poll)


def targets_are_unchanged(observation: AdvisorObservation, _: datetime) -> Step | None:
    """In review all targets count, during the execution that of the next item."""
    config, item = observation.config, observation.current_item
    if config.spec.bypass_optimistic_lock:
        return None
    if config.status.phase == "ReviewRequired":
        stale = _stale(observation)
        return FailStale(stale) if stale else None
    if item is None or observation.hashes.get(item.name) == item.hash:
        return None
    return FailStale(_changed_since(observation, (item,)))


def execution_may_start(observation: AdvisorObservation, now: datetime) -> Step | None:
    status = observation.config.status
    return review(observation, status.plan_hash, status.plan_generation, now)


def item_may_be_applied(observation: AdvisorObservation, _: datetime) -> Step | None:
    item = observation.current_item
    return ApplyItem(item) if item else None


def spec_is_unchanged(observation: AdvisorObservation, _: datetime) -> Step | None:
    """Under Apply another spec alone is no reason for a new plan, unless it asks for one or something has failed.

    So drift and upgrades stay on view.
    """
    config = observation.config
    if not config.is_touched:
        return None
    has_failed = config.status.phase == "CompletedWithErrors"
    if config.spec.action == "Apply" and not has_failed and not is_action_changed(config):
        return None
    return Redraft("the spec has changed")


def plan_is_no_rollback(observation: AdvisorObservation, _: datetime) -> Step | None:
    is_rollback = observation.config.status.plan_action == "Rollback"
    return Stay("the profile is rolled back; its targets are not watched") if is_rollback else None


def inputs_are_unchanged(observation: AdvisorObservation, _: datetime) -> Step | None:
    changed = differences(observation.config.status.inputs, observation.inputs)
    return Redraft("; ".join(changed)) if changed else None


def offered_plan_is_shown(observation: AdvisorObservation, _: datetime) -> Step | None:
    """A plan that nobody asked for, beside what another version has completed, is kept up to date."""
    status = observation.config.status
    if not has_offer(status):
        return None
    if observation.changed_targets:
        return Redraft("a target of the plan on offer has changed")
    if observation.version != status.operator_version:
        return Redraft(f"version {observation.version} may plan it differently")
    step = offer(observation, status.items)
    is_shown = step is None or step.to == status.phase
    return Stay("the plan of this version is on offer; set action to DryRun to review it") if is_shown else step


def version_is_not_aligned_manually(observation: AdvisorObservation, _: datetime) -> Step | None:
    if observation.logic is None or observation.logic.aligned is None:
        return None
    return AdoptVersion("ManuallyAligned", observation.logic.aligned)


def targets_are_as_planned(observation: AdvisorObservation, _: datetime) -> Step | None:
    config, drifted = observation.config, observation.drifted
    if drifted:
        if config.spec.action == "Apply" and config.spec.bypass_optimistic_lock:
            return Enforce(drifted)
        governed = {one.target_ref for one in config.status.governed}
        if config.spec.action == "Apply" or any(item.target_ref in governed for item in drifted):
            return MarkDrifted(drifted, observation.drift_details)
        return Redraft("a target has changed, and nothing was ever applied")
    if config.status.phase == "Drifted":
        return Recover(with_errors=any(item.state == "Failed" for item in config.status.items))
    return None


def version_plans_the_same(observation: AdvisorObservation, _: datetime) -> Step | None:
    """Asked last: an upgrade that is offered must not hide drift, and one that changes nothing must not end it."""
    config = observation.config
    if observation.logic is not None and observation.logic.differs:
        return OfferUpgrade(observation.logic.differs)
    # The version whose upgrade was offered may have been replaced by the one that executed the plan.
    if observation.logic is not None or config.status.phase == "CompletedWithUpgrade":
        return AdoptVersion("NoLogicChange", config.status.items)
    return None


CHECKS: tuple[AdvisorCheck, ...] = (
    AdvisorCheck("Action", action_is_not_ignore, "not Ignore"),
    AdvisorCheck("Status", status_is_ours, "the advisor compares it with its own record"),
    AdvisorCheck("Inputs", inputs_are_read, "all read"),
    AdvisorCheck("Prerequisites", prerequisites_are_met, "all met"),
    AdvisorCheck("Plan drafted", plan_exists),
    AdvisorCheck("Plan matches the spec", plan_matches_spec),
    AdvisorCheck("No failed plan", failure_is_resolved),
    AdvisorCheck("Plan recorded", plan_is_recorded, phases=IN_REVIEW | EXECUTING | SETTLED),
    AdvisorCheck("Plan up to date", review_is_current, phases=IN_REVIEW),
    AdvisorCheck("Pending work", review_has_pending_work, "there is some", phases=IN_REVIEW),
    AdvisorCheck("Execution not stopped", execution_is_wanted, phases=EXECUTING),
    AdvisorCheck("Items", items_remain, "some are left", phases=EXECUTING),
    AdvisorCheck("Current item", current_item_is_ready, "none is waited for", phases=EXECUTING),
    *in_order(
        {
            HoldKind.APPROVALS: AdvisorCheck("Approved", plan_is_approved, phases=IN_REVIEW),
            HoldKind.FREEZE: AdvisorCheck("No freeze", freeze_is_over, phases=EXECUTING),
            HoldKind.WINDOW: AdvisorCheck("Inside the maintenance window", window_is_open, phases=EXECUTING),
            HoldKind.GATES: AdvisorCheck("Gates open", gates_are_open, phases=EXECUTING),
        }
    ),
    AdvisorCheck("Targets unchanged", targets_are_unchanged, phases=IN_REVIEW | EXECUTING),
    AdvisorCheck("Start", execution_may_start, phases=IN_REVIEW),
    AdvisorCheck("Next item", item_may_be_applied, phases=EXECUTING),
    AdvisorCheck("Spec unchanged", spec_is_unchanged, phases=SETTLED),
    AdvisorCheck("Not rolled back", plan_is_no_rollback, phases=SETTLED),
    AdvisorCheck("Inputs unchanged", inputs_are_unchanged, phases=SETTLED),
    AdvisorCheck("No plan on offer", offered_plan_is_shown, phases=SETTLED),
    AdvisorCheck("Manual alignment with this version", version_is_not_aligned_manually, "none", phases=SETTLED),
    AdvisorCheck("Targets as planned", targets_are_as_planned, phases=SETTLED),
    AdvisorCheck("Plan of this version", version_plans_the_same, "the same", phases=SETTLED),
)
"""In this order: the first that returns a step decides, and the others are not asked."""


def _is_done(observation: AdvisorObservation, item: PlanItem) -> bool:
    """Whether nothing is left to be written for an item, or waited for."""
    is_ready = isinstance(observation.health.get(item.name), Ready)
    return item.state == "Completed" or (item.state == "InProgress" and is_ready)


def _stale(observation: AdvisorObservation) -> str:
    changed = observation.changed_targets
    return _changed_since(observation, changed) if changed else ""


def _changed_since(observation: AdvisorObservation, items: Sequence[PlanItem]) -> str:
    named = ", ".join(f"{item.target_ref.kind} {item.target_ref.name}" for item in items)
    return f"{named} changed since the plan was made; {_how_to_redraft(observation)}"


def _how_to_redraft(observation: AdvisorObservation) -> str:
    """An action that is already set cannot be set again, so it has to be Ignore in between."""
    match observation.config.spec.action:
        case "DryRun":
            return "for a new plan set action to Ignore, and then to DryRun again"
        case "Rollback":
            return "for a new rollback plan set action to Ignore, and then to Rollback again"
    return "set action to DryRun for a new plan"
