"""Manual approval of exactly the plan that a person has reviewed, with their name on it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from virt_steward.apis.virtplatformconfig import VIRT_PLATFORM_CONFIG
from virt_steward.controllers.advisor.annotation_keys import APPROVAL_COMMENT, APPROVED_BY, APPROVED_PLAN, UNREJECTED
from virt_steward.controllers.advisor.conditions import STALE
from virt_steward.controllers.advisor.observation import VirtPlatformConfig
from virt_steward.kube.errors import Conflict
from virt_steward.kube.whoami import name_of_caller
from virt_steward.objects.identity import Key, Ref
from virt_steward.ssa import managers

if TYPE_CHECKING:
    from virt_steward.apis.virtplatformconfig import Action
    from virt_steward.kube.client import Client

ATTEMPTS = 3
"""Tries to approve a plan while the status of its config changes."""
LONGEST_COMMENT = 1024


@dataclass(frozen=True, slots=True)
class PlanApproved:
    """A plan that a person has approved."""

    profile: str
    plan_hash: str
    action: Action
    """Rollback for a rollback plan, else Apply."""
    user: str
    """As the API server knows them."""
    comment: str


@dataclass(frozen=True, slots=True)
class PlanNotApproved:
    """Nothing was changed."""

    profile: str
    why: str


def config_ref(profile: str) -> Ref:
    return Ref(VIRT_PLATFORM_CONFIG, Key("", profile))


def reason_not_approvable(config: VirtPlatformConfig) -> str | None:
    """Why an approval would do nothing, or not what is expected; None if the plan waits for one."""
    status = config.status
    if status.phase != "ReviewRequired":
        return f"there is nothing to approve: {_instead(config)}"
    if config.is_touched:
        return "the spec has changed and its plan is not drafted yet; try again in a moment"
    if config.is_true(STALE) and not config.spec.bypass_optimistic_lock:
        message = next(one.message for one in status.conditions if one.type == STALE)
        return f"the plan is stale: {message}"
    return None


def _instead(config: VirtPlatformConfig) -> str:
    match config.status.phase:
        case None | "Pending" | "Drafting":
            return "the plan is being drafted; try again in a moment"
        case "Ignored":
            return "the profile is ignored; set spec.action to DryRun to get a plan"
        case "InProgress":
            return "the plan is being executed"
        case "Failed" | "CompletedWithErrors" | "CompletedWithUpgrade" | "Drifted" as phase:
            return f"it is in phase {phase}; set spec.action to DryRun to get a new plan"
        case phase:
            return f"it is already {phase}"


async def approve_plan(client: Client, profile: str, plan_hash: str, comment: str) -> PlanApproved | PlanNotApproved:
    """Approve exactly this plan: if another one has replaced it, nothing is written."""
    user = await name_of_caller(client)
    for _ in range(ATTEMPTS):
        config = await client.get(config_ref(profile), VirtPlatformConfig)
        if why := reason_not_approvable(config):
            return PlanNotApproved(profile, why)
        if config.status.plan_hash != plan_hash:
            return PlanNotApproved(
                profile, f"the plan has changed: it is now {config.status.plan_hash}; review it first"
            )
        approval = PlanApproved(profile, plan_hash, _action(config), user, comment[:LONGEST_COMMENT])
        try:
            await client.merge_patch(config_ref(profile), _patch(config, approval), manager=managers.APPROVAL.name)
        except Conflict:
            continue
        return approval
    return PlanNotApproved(profile, "it keeps changing; try again later")


def _action(config: VirtPlatformConfig) -> Action:
    return "Rollback" if config.spec.action == "Rollback" else "Apply"


def _patch(config: VirtPlatformConfig, approval: PlanApproved) -> dict[str, object]:
    """One write, so that an approval is never seen half written."""
    notes = {
        APPROVED_PLAN: approval.plan_hash,
        APPROVED_BY: approval.user,
        APPROVAL_COMMENT: approval.comment or None,  # that of an earlier approval goes
        **UNREJECTED,
    }
    return {
        "metadata": {"resourceVersion": config.metadata.resource_version, "annotations": notes},
        "spec": {"action": approval.action},
    }
