"""Whether a plan may start: approved by its hash, or requested by action Apply. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from virt_steward.apis.meta import MOST_APPROVERS
from virt_steward.apis.profiles import ProfileOptions
from virt_steward.apis.virtplatformconfig import VIRT_PLATFORM_CONFIG, PlanApproval, PlanApprover, PlanItem
from virt_steward.controllers.advisor.adoption import Adopted, has_offer
from virt_steward.controllers.advisor.annotation_keys import APPROVAL_COMMENT, APPROVED_BY
from virt_steward.controllers.advisor.conditions import ADOPTED
from virt_steward.controllers.advisor.integrity import Unrecorded
from virt_steward.controllers.advisor.steps import AwaitReview, Begin, MarkDrifted, NothingToDo, OfferPlan

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from virt_steward.controllers.advisor.observation import AdvisorObservation, VirtPlatformConfig
    from virt_steward.controllers.advisor.steps import StatusStep
    from virt_steward.objects.approvals import ApprovalCount

WAITING_FOR_APPROVALS = "WaitingForApprovals"
ADMISSION_POLICY = f"approved-by.{VIRT_PLATFORM_CONFIG.group}"
"""It holds approvals to the names of those who give them."""
PLAN_READY = "The plan is ready for review; set action to Apply to execute it"
ROLLBACK_READY = "The rollback plan is ready for review; it starts once exactly this plan is approved"
APPROVAL_VOID = "The approval names another plan; review this plan and approve it again"
PLAN_CHANGED = (
    "The cluster has changed since action Apply was set, so nobody has requested this plan; review and approve it,"
    " or set action to DryRun and then to Apply"
)


ADOPTED_PLAN = (
    "Another version of the advisor managed this profile. This plan is of this version, and nobody has requested it;"
    " review and approve it, or set action to DryRun and then to Apply"
)


def step_for_new_plan(
    observation: AdvisorObservation, items: Sequence[PlanItem], plan_hash: str, now: datetime
) -> StatusStep:
    """What a plan that was just drafted leads to."""
    if all(item.state == "Completed" for item in items):
        return NothingToDo()
    step = review(observation, plan_hash, observation.config.metadata.generation, now)
    is_requested = isinstance(step, Begin) or observation.config.spec.action != "Apply"
    return step if is_requested or not _keeps_completed(observation) else offer(observation, items) or step


def _keeps_completed(observation: AdvisorObservation) -> bool:
    """Whether a new plan is only offered, since another version has completed its own."""
    status = observation.config.status
    is_completed = status.phase in ("Completed", "CompletedWithUpgrade", "Drifted")
    return is_completed and (isinstance(observation.integrity, Adopted | Unrecorded) or has_offer(status))


def offer(observation: AdvisorObservation, items: Sequence[PlanItem]) -> MarkDrifted | OfferPlan | None:
    """How a plan is offered beside what another version has completed; None if it changes nothing."""
    if observation.changed_since_adoption:
        return MarkDrifted((), observation.changed_since_adoption)
    return OfferPlan() if any(item.state == "Pending" for item in items) else None


def review(observation: AdvisorObservation, plan_hash: str, plan_generation: int, now: datetime) -> AwaitReview | Begin:
    """Whether a plan may start: approved by its hash, or requested by action Apply while its inputs are unchanged."""
    config = observation.config
    approved = config.approved_plan
    if count := config.approval_count(plan_hash):
        return _review_by_people(observation, count, plan_hash, now)
    if config.spec.action == "DryRun":
        return AwaitReview("PlanReady", PLAN_READY)
    if approved and approved == plan_hash:
        return Begin(_approval(observation, plan_hash, now))
    if config.spec.action == "Rollback":
        return AwaitReview("RollbackReady", ROLLBACK_READY)
    if approved:
        return AwaitReview("ApprovalVoid", APPROVAL_VOID)
    return _held_back(observation, plan_hash, plan_generation) or Begin(_approval(observation, plan_hash, now))


def _review_by_people(
    observation: AdvisorObservation, count: ApprovalCount, plan_hash: str, now: datetime
) -> AwaitReview | Begin:
    """Whether enough people approved the plan. Neither action Apply nor a single approval starts it."""
    config = observation.config
    if config.spec.action == "DryRun":
        return AwaitReview("PlanReady", f"The plan is ready for review: {count}")
    if not count.approvals and config.rejected_plan == plan_hash:
        return AwaitReview("Rejected", rejected(config.rejected_by))
    if not count.is_complete:
        return AwaitReview(WAITING_FOR_APPROVALS, str(count))
    return Begin(_approval_by_people(count, plan_hash, now))


def _approval_by_people(count: ApprovalCount, plan_hash: str, now: datetime) -> PlanApproval:
    approvers = tuple(PlanApprover(one.user, one.at, one.comment) for one in count.approvals[:MOST_APPROVERS])
    comments = "; ".join(f"{one.by}: {one.comment}" for one in approvers if one.comment)
    return PlanApproval(plan_hash, now, ", ".join(one.by for one in approvers), comments[:1024], approvers)


def _held_back(observation: AdvisorObservation, plan_hash: str, plan_generation: int) -> AwaitReview | None:
    """Why action Apply alone is not enough; None if it is. Any later change of the spec accepts changed inputs."""
    config = observation.config
    if config.rejected_plan == plan_hash and not is_action_changed(config):
        return AwaitReview("Rejected", rejected(config.rejected_by))
    if changed := observation.changed_inputs:
        message = f"{'; '.join(changed)}; review the plan, then approve it or change the spec"
        is_accepted = config.metadata.generation > plan_generation
        return None if is_accepted else AwaitReview("InputChanged", message)
    if _is_requested(config, plan_hash):
        return None
    if isinstance(observation.integrity, Adopted) or config.is_true(ADOPTED):
        return AwaitReview("OtherAdvisor", ADOPTED_PLAN)
    return AwaitReview("PlanChanged", PLAN_CHANGED)


def rejected(by: str) -> str:
    return (
        f"{by or 'Somebody'} rejected this plan; approve it to execute it after all,"
        " or set action to DryRun for a new plan"
    )


def _is_requested(config: VirtPlatformConfig, plan_hash: str) -> bool:
    """Whether action Apply requests this plan.

    Each time that somebody sets action Apply, or sets other options under it, that requests one plan: the one in
    review if there is one, else the next. For example, after `DryRun → Apply` the plan that was shown is executed. If
    a target changes later and a new plan is drafted, nobody has requested that one, and it is reviewed first.
    """
    is_another = config.status.phase == "ReviewRequired" and plan_hash != config.status.plan_hash
    return has_other_options(config) or (is_action_changed(config) and not is_another)


def is_action_changed(config: VirtPlatformConfig) -> bool:
    """Whether the action was set since the plan was made, or started."""
    return config.spec.action != config.status.plan_action


def has_other_options(config: VirtPlatformConfig) -> bool:
    return config.options != (config.status.applied_options or ProfileOptions())


def _approval(observation: AdvisorObservation, plan_hash: str, now: datetime) -> PlanApproval:
    notes = observation.config.metadata.annotations
    if observation.config.approved_plan != plan_hash:
        return PlanApproval(plan_hash, now)
    return PlanApproval(plan_hash, now, notes.get(APPROVED_BY, "")[:253], notes.get(APPROVAL_COMMENT, "")[:1024])
