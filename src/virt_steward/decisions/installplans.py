"""Approve an InstallPlan manually as it was shown, whatever is pinned, and record on it who did so and why."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import msgspec

from virt_steward.controllers.approver.manual_approval import (
    APPROVAL_COMMENT,
    APPROVED_AT,
    APPROVED_BY_USER,
    OVERRIDE_FREEZE,
    OVERRIDE_FREEZE_BY,
    OVERRIDE_FREEZE_COMMENT,
)
from virt_steward.controllers.approver.olm import APPROVALS, INSTALL_PLAN, REQUIRES_APPROVAL, decode_plan
from virt_steward.decisions.freezes import HOW_TO_OVERRIDE, NO_FREEZE, WITHOUT_COMMENT, FreezeTerms, OverrideKeys
from virt_steward.decisions.outcomes import NotApproved
from virt_steward.decisions.signatures import sign
from virt_steward.holds.freezes import Frozen
from virt_steward.objects.approvals import PersonalApproval, add_approval, already_approved, count_approvals
from virt_steward.objects.document import JsonDocument
from virt_steward.objects.identity import Ref
from virt_steward.objects.wallclock import rfc3339
from virt_steward.ssa import managers

if TYPE_CHECKING:
    from datetime import datetime

    from virt_steward.controllers.approver.olm import InstallPlan
    from virt_steward.decisions.signatures import Signature
    from virt_steward.kube.client import Client
    from virt_steward.objects.identity import Key

OVERRIDE = OverrideKeys(OVERRIDE_FREEZE, OVERRIDE_FREEZE_BY, OVERRIDE_FREEZE_COMMENT)


class InstallPlanApproved(JsonDocument, frozen=True):
    """An InstallPlan that a person has approved."""

    plan: str
    csvs: tuple[str, ...]
    user: str
    """As the API server knows them."""
    comment: str
    missing: int = 0
    """How many more people must approve it before the approver does."""
    next: str = "OLM installs it now"
    """What follows, as half a sentence."""


@dataclass(frozen=True, slots=True)
class ReviewedPlan:
    """The InstallPlan that a person saw. OLM, or anybody who may write plans, can put another in its place."""

    uid: str | None
    """None: whichever has the name."""
    csvs: tuple[str, ...] | None
    """None: whatever it installs."""

    def difference(self, plan: InstallPlan) -> str | None:
        """What is different now; None if it is the plan that was seen."""
        now = ", ".join(plan.csvs) or "no operators"
        if self.uid not in (None, plan.metadata.uid):
            return f"it was replaced since it was reviewed: another InstallPlan has its name now, with {now}"
        if self.csvs is not None and sorted(self.csvs) != sorted(plan.csvs):
            before = ", ".join(self.csvs) or "no operators"
            return f"it was changed since it was reviewed: it installs {now} now, not {before}"
        return None


async def read_plan(client: Client, key: Key) -> InstallPlan:
    return decode_plan(bytes(await client.get(Ref(INSTALL_PLAN, key), msgspec.Raw)))


async def approve_manually(  # noqa: PLR0913, PLR0917 - what was seen, who decides, and under which terms
    client: Client, key: Key, reviewed: ReviewedPlan, comment: str, now: datetime, terms: FreezeTerms = NO_FREEZE
) -> InstallPlanApproved | NotApproved:
    """Approve the plan that was reviewed, or nothing: if it changes meanwhile, the server answers with a Conflict."""
    plan = await read_plan(client, key)
    if difference := reviewed.difference(plan):
        return NotApproved(str(key), f"{difference}. Review it again before you approve it")
    return await approve_as_read(client, plan, comment, now, terms)


async def approve_as_read(
    client: Client, plan: InstallPlan, comment: str, now: datetime, terms: FreezeTerms = NO_FREEZE
) -> InstallPlanApproved | NotApproved:
    """Approve exactly this version of a plan. OLM installs it at once, so a freeze refuses it unless overridden."""
    key = plan.metadata.key
    if reason := reason_not_approvable(plan):
        return NotApproved(str(key), reason)
    if reason := _reason_by_freeze(plan, comment, terms):
        return NotApproved(str(key), reason)
    signature = await sign(client, comment, now)
    if plan.metadata.required_approvals:
        return await _add_approval(client, plan, signature)
    annotations = {
        APPROVED_BY_USER: signature.user,
        APPROVED_AT: rfc3339(now),
        APPROVAL_COMMENT: signature.comment or None,
        **(OVERRIDE.annotations(plan.metadata.uid, signature.user, signature.comment) if terms.overrides else {}),
    }
    await client.merge_patch(
        Ref(INSTALL_PLAN, key),
        {
            "metadata": {"resourceVersion": plan.metadata.resource_version, "annotations": annotations},
            "spec": {"approved": True},
        },
        manager=managers.APPROVAL.name,
    )
    return InstallPlanApproved(str(key), plan.csvs, signature.user, signature.comment)


def _reason_by_freeze(plan: InstallPlan, comment: str, terms: FreezeTerms) -> str | None:
    """Why nothing is approved now. Where several people approve, the approver does so in the end, after the freeze."""
    if plan.metadata.required_approvals:
        return "it needs the approvals of several people, which override no freeze" if terms.overrides else None
    if terms.overrides:
        return None if comment.strip() else WITHOUT_COMMENT
    return f"{terms.freeze.message}; {HOW_TO_OVERRIDE}" if isinstance(terms.freeze, Frozen) else None


async def _add_approval(client: Client, plan: InstallPlan, signature: Signature) -> InstallPlanApproved:
    """Add the approval of one person to those of others. The approver approves the plan once there are enough."""
    metadata = plan.metadata
    count = partial(count_approvals, plan=plan.fingerprint, required=metadata.required_approvals)
    if signature.user in count(metadata.approvals).users:
        done = count(metadata.approvals)
        return InstallPlanApproved(
            str(metadata.key), plan.csvs, signature.user, "", done.missing, already_approved(done)
        )
    own = PersonalApproval(plan.fingerprint, signature.user, signature.at, signature.comment)
    approvals = add_approval(metadata.approvals, own)
    patch = {"metadata": {"resourceVersion": metadata.resource_version, "annotations": {APPROVALS: approvals}}}
    await client.merge_patch(Ref(INSTALL_PLAN, metadata.key), patch, manager=managers.APPROVAL.name)
    done = count(approvals)
    what_next = str(done) if done.missing else f"{done}; the InstallPlanApprover approves it now"
    return InstallPlanApproved(str(metadata.key), plan.csvs, signature.user, signature.comment, done.missing, what_next)


def reason_not_approvable(plan: InstallPlan) -> str | None:
    """Why an approval would do nothing, or harm; None if the plan requires one."""
    phase = plan.phase or "none yet"
    if plan.approved:
        return f"it is already approved (phase {phase})"
    if plan.approval != "Manual":
        return f"its approval is {plan.approval or 'not set'}, not Manual; OLM installs it without an approval"
    if plan.phase != REQUIRES_APPROVAL:
        return (
            f"it is in phase {phase}, not {REQUIRES_APPROVAL}; if it were approved now, OLM would create one plan"
            f" after another instead of installing it. Try again when it is in phase {REQUIRES_APPROVAL}"
        )
    return None
