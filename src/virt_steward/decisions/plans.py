"""Approve or reject the plan of a profile: the very plan that the person has seen, or none."""

from __future__ import annotations

from typing import TYPE_CHECKING

from virt_steward.apis.virtplatformconfig import Action
from virt_steward.controllers.advisor.annotation_keys import (
    APPROVAL_COMMENT,
    APPROVALS,
    APPROVED_BY,
    APPROVED_PLAN,
    DECISION,
    OVERRIDE_FREEZE,
    OVERRIDE_FREEZE_BY,
    OVERRIDE_FREEZE_COMMENT,
    REJECTED_BY,
    REJECTED_GENERATION,
    REJECTED_PLAN,
    REJECTION_COMMENT,
    REQUESTED_BY,
    UNAPPROVED,
    UNREJECTED,
)
from virt_steward.controllers.advisor.conditions import FREEZE, STALE
from virt_steward.controllers.advisor.holds import NEVER_OPENS, invalid_window
from virt_steward.controllers.advisor.observation import InvalidWindow
from virt_steward.controllers.advisor.observe import freeze_of, window_of
from virt_steward.decisions.configs import (
    ATTEMPTS,
    config_ref,
    patch_config,
    plan_changed,
    read_config,
    retry_on_conflict,
)
from virt_steward.decisions.freezes import HOW_TO_OVERRIDE, NO_FREEZE, WITHOUT_COMMENT, FreezeTerms, OverrideKeys
from virt_steward.decisions.outcomes import Decided, NotApproved, NotDecided
from virt_steward.decisions.signatures import sign
from virt_steward.holds.freezes import Frozen
from virt_steward.kube.errors import Conflict
from virt_steward.objects.approvals import PersonalApproval, add_approval, already_approved, count_approvals
from virt_steward.objects.document import JsonDocument
from virt_steward.objects.wallclock import rfc3339
from virt_steward.objects.windows import Closed
from virt_steward.ssa import managers

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from virt_steward.controllers.advisor.observation import VirtPlatformConfig
    from virt_steward.decisions.signatures import Signature
    from virt_steward.kube.client import Client


class PlanApproved(JsonDocument, frozen=True):
    """A plan that a person has approved."""

    profile: str
    plan_hash: str
    action: Action
    """Rollback for a rollback plan, else Apply."""
    user: str
    """As the API server knows them."""
    comment: str
    start: str
    """When the advisor begins, as half a sentence."""
    missing: int = 0
    """How many more people must approve it, by spec.approvals."""


OVERRIDE = OverrideKeys(OVERRIDE_FREEZE, OVERRIDE_FREEZE_BY, OVERRIDE_FREEZE_COMMENT)
SHORT_HASH = 12
"""As many characters of a hash as the history shows."""


def is_hash_of(given: str, plan_hash: str) -> bool:
    """Whether the given hash, or the beginning of one, is that of the plan."""
    return given == plan_hash or (len(given) >= SHORT_HASH and plan_hash.startswith(given))


def start_of(config: VirtPlatformConfig, now: datetime, terms: FreezeTerms = NO_FREEZE) -> str:
    """When the advisor begins with an approved plan."""
    freeze = freeze_of(config, terms.freeze, now)
    if isinstance(freeze, Frozen) and not terms.overrides:
        return f"the advisor begins after the freeze: {freeze.message}; {HOW_TO_OVERRIDE}"
    match window_of(config, now):
        case InvalidWindow(why):
            return invalid_window(why)
        case Closed(until) if until:
            return f"the advisor begins when the maintenance window opens at {rfc3339(until)}"
        case Closed():
            return NEVER_OPENS
        case _:
            return "the advisor executes the plan now"


def reason_not_approvable(config: VirtPlatformConfig, *, overrides_freeze: bool = False) -> str | None:
    """Why an approval would do nothing, or not what is expected; None if the plan is ready for review."""
    status = config.status
    if overrides_freeze and status.phase == "InProgress" and config.is_true(FREEZE):
        return None
    if status.phase != "ReviewRequired":
        return _reason_by_phase(config)
    if config.is_touched:
        return "the spec has changed and its new plan is not ready yet; try again in a moment"
    if config.is_true(STALE) and not config.spec.bypass_optimistic_lock:
        message = next(one.message for one in status.conditions if one.type == STALE)
        return f"the plan is out of date: {message}"
    return None


def _reason_by_phase(config: VirtPlatformConfig) -> str:
    name = config.metadata.name
    match config.status.phase:
        case None | "Pending" | "Drafting":
            return "the plan is still being drafted; try again in a moment"
        case "Ignored":
            return f"{name} is inactive (action: Ignore); set spec.action to DryRun to get a plan"
        case "InProgress":
            return "the plan is already being executed"
        case "Completed":
            return f"{name} is already Completed"
        case "PrerequisiteFailed":
            return f"{name} is in phase PrerequisiteFailed; its plan is drafted once all prerequisites are met"
        case phase:
            return f"{name} is in phase {phase}; set spec.action to DryRun to get a new plan"


async def approve_plan(  # noqa: PLR0913, PLR0917 - what was seen, who decides, and under which terms
    client: Client, profile: str, plan_hash: str, comment: str, now: datetime, terms: FreezeTerms = NO_FREEZE
) -> PlanApproved | NotApproved:
    """Approve this plan and no other: if another takes its place meanwhile, nothing is written.

    A plan that was approved before, and that a freeze stops, goes on if the freeze is overridden.
    """
    signature = await sign(client, comment, now)
    for _ in range(ATTEMPTS):
        config = await read_config(client, profile)
        reason = reason_not_approvable(config, overrides_freeze=terms.overrides)
        if reason := WITHOUT_COMMENT if terms.overrides and not signature.comment.strip() else reason:
            return NotApproved(profile, reason)
        if config.status.plan_hash != plan_hash:
            return NotApproved(profile, plan_changed(config.status.plan_hash))
        is_started = config.status.phase == "InProgress"
        if not is_started and (reason := _reason_not_yours(config, signature.user)):
            return NotApproved(profile, reason)
        approval = _approval(config, signature, terms)
        if _has_approved(config, signature.user) and not terms.overrides:
            return approval
        try:
            override = OVERRIDE.annotations(plan_hash, signature.user, signature.comment) if terms.overrides else {}
            patch = _override_patch(config, override) if is_started else _approval_patch(config, signature, override)
            await client.merge_patch(config_ref(profile), patch, manager=managers.APPROVAL.name)
        except Conflict:
            continue
        return approval
    return NotApproved(profile, f"{profile} changed {ATTEMPTS} times while it was being approved; try again")


def _action(config: VirtPlatformConfig) -> Action:
    return "Rollback" if config.spec.action == "Rollback" else "Apply"


def _approval(config: VirtPlatformConfig, signature: Signature, terms: FreezeTerms) -> PlanApproved:
    """What comes of the approval by this person."""
    plan_hash, start, missing = config.status.plan_hash, start_of(config, signature.at, terms), 0
    if before := config.approval_count(plan_hash):
        after = count_approvals(_with_own(config, signature), plan_hash, before.required, before.requester)
        missing = after.missing
        is_repeated = signature.user in before.users
        start = already_approved(before) if is_repeated else f"{after}; {start}" if after.is_complete else str(after)
    return PlanApproved(
        config.metadata.name, plan_hash, _action(config), signature.user, signature.comment, start, missing
    )


def _with_own(config: VirtPlatformConfig, signature: Signature) -> str:
    own = PersonalApproval(config.status.plan_hash, signature.user, signature.at, signature.comment)
    return add_approval(config.metadata.annotations.get(APPROVALS, ""), own)


def _has_approved(config: VirtPlatformConfig, user: str) -> bool:
    count = config.approval_count(config.status.plan_hash)
    return count is not None and user in count.users


def _reason_not_yours(config: VirtPlatformConfig, user: str) -> str | None:
    """Why the approval of this person would not count; None if it would."""
    count = config.approval_count(config.status.plan_hash)
    if count is None or count.requester is None:
        return None
    if count.requester == user:
        return "you asked for this plan, and spec.approvals.excludeRequester is set: somebody else has to approve it"
    return None if count.requester else str(count)


def _override_patch(config: VirtPlatformConfig, override: Mapping[str, str]) -> dict[str, object]:
    return {"metadata": {"resourceVersion": config.metadata.resource_version, "annotations": dict(override)}}


def _approval_patch(config: VirtPlatformConfig, signature: Signature, override: Mapping[str, str]) -> dict[str, object]:
    """Make one write of it, so that the controller never sees half of an approval."""
    plan_hash = config.status.plan_hash
    alone = {
        APPROVED_PLAN: plan_hash,
        APPROVED_BY: signature.user,
        APPROVAL_COMMENT: signature.comment or None,  # removes the comment of an earlier approval
    }
    annotations = {
        **override,
        **({APPROVALS: _with_own(config, signature)} if config.spec.approvals else alone),
        **UNREJECTED,
        **signature.record(DECISION, "approve", named_plan(plan_hash)),
    }
    return {
        "metadata": {"resourceVersion": config.metadata.resource_version, "annotations": annotations},
        "spec": {"action": _action(config)},
    }


def named_plan(plan_hash: str) -> str:
    """As the record of a decision names it."""
    return f"plan {plan_hash[:SHORT_HASH]}"


async def reject_plan(client: Client, profile: str, plan_hash: str, signature: Signature) -> Decided | NotDecided:
    """Reject this plan and no other. Applied changes stay; the rejection is recorded with its reason."""

    async def attempt() -> Decided | NotDecided:
        config = await read_config(client, profile)
        if reason := _reason_not_rejectable(config, plan_hash):
            return NotDecided("Not rejected", reason)
        action = action_after_rejection(config)
        annotations = {
            REJECTED_PLAN: plan_hash,
            REJECTED_GENERATION: str(config.status.plan_generation),
            REJECTED_BY: signature.user,
            REJECTION_COMMENT: signature.comment or None,
            **signature.record(DECISION, "reject", named_plan(plan_hash)),
        }
        if action != "Apply":  # with action Apply, the approval of an earlier plan is what holds this one back
            annotations |= UNAPPROVED
        if config.spec.approvals:
            annotations[APPROVALS] = None
        if action not in ("Ignore", config.spec.action):
            annotations[REQUESTED_BY] = signature.user
        await patch_config(client, config, annotations, {"action": action})
        return Decided(_rejection_message(config, action))

    return await retry_on_conflict(attempt)


def _reason_not_rejectable(config: VirtPlatformConfig, plan_hash: str) -> str | None:
    if config.status.plan_hash != plan_hash or config.status.phase != "ReviewRequired" or config.is_touched:
        return "The plan has changed since you opened it, so nothing was rejected. Review the current plan."
    if config.spec.approvals:  # a rejection removes the approvals in the same write
        return None
    if config.spec.action == "Apply" and config.approved_plan == plan_hash:
        return "Somebody has already approved this plan, and it is being executed. Nothing was rejected."
    return None


def action_after_rejection(config: VirtPlatformConfig) -> Action:
    """The action that a config gets when its plan is rejected.

    A profile that never applied anything becomes inactive (Ignore). One that has applied changes must stay active:
    with Ignore, nobody would watch them for drift. So Apply stays Apply, and a rejected rollback becomes DryRun, which
    watches over the applied changes as Apply does and writes nothing by itself.
    """
    if config.spec.action == "Rollback":
        return "DryRun"
    was_active = config.status.governed or config.status.applied_inputs
    return config.spec.action if config.spec.action == "Apply" or was_active else "Ignore"


def _rejection_message(config: VirtPlatformConfig, action: Action) -> str:
    name = config.metadata.name
    if config.spec.action == "Rollback":
        return f"You rejected the rollback of {name}. {still_managed(name)}"
    if action == "Ignore":
        return f"You rejected this plan of {name}. Nothing was changed; the profile is now inactive (action: Ignore)."
    return f"You rejected this plan of {name}. It is not applied; the profile stays active."


def still_managed(name: str) -> str:
    return (
        f"Applied changes stay, and {name} is managed again with action DryRun."
        " If anything differs from the profile, a new plan is drafted for review."
    )
