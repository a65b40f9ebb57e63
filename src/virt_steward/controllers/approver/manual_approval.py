"""A person's approval: their own decision on any plan that waits, with their name on it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec

from virt_steward.controllers.approver.olm import APPROVED_AT, INSTALL_PLAN, REQUIRES_APPROVAL, decode_plan
from virt_steward.kube.whoami import name_of_caller
from virt_steward.objects.identity import Ref
from virt_steward.objects.wallclock import rfc3339
from virt_steward.ssa import managers

if TYPE_CHECKING:
    from datetime import datetime

    from virt_steward.controllers.approver.olm import InstallPlan
    from virt_steward.kube.client import Client, Reader
    from virt_steward.objects.identity import Key

APPROVED_BY_USER = "operators.bapu.cloud/approved-by-user"
APPROVAL_COMMENT = "operators.bapu.cloud/approval-comment"


@dataclass(frozen=True, slots=True)
class InstallPlanApproved:
    """A plan that a person has approved."""

    plan: str
    csvs: tuple[str, ...]
    user: str
    """As the API server knows them."""
    comment: str


@dataclass(frozen=True, slots=True)
class InstallPlanNotApproved:
    """The plan was left as it is."""

    plan: str
    why: str


class ManualApproval(msgspec.Struct, frozen=True):
    """What a person leaves on a plan that they approve."""

    user: str = msgspec.field(default="", name=APPROVED_BY_USER)
    at: str = msgspec.field(default="", name=APPROVED_AT)
    comment: str = msgspec.field(default="", name=APPROVAL_COMMENT)


class _SignedMeta(msgspec.Struct):
    annotations: ManualApproval = ManualApproval()


class _Signed(msgspec.Struct):
    metadata: _SignedMeta


async def manual_approval_of(reader: Reader, key: Key) -> ManualApproval:
    """Asked of the server: few plans have one, so no cache keeps it."""
    return (await reader.get(Ref(INSTALL_PLAN, key), _Signed)).metadata.annotations


async def approve_manually(
    client: Client, key: Key, comment: str, now: datetime
) -> InstallPlanApproved | InstallPlanNotApproved:
    """Approve exactly the plan that is there now: if it changes meanwhile, the server refuses with a Conflict."""
    plan = decode_plan(bytes(await client.get(Ref(INSTALL_PLAN, key), msgspec.Raw)))
    if objection := _objection(plan):
        return InstallPlanNotApproved(str(key), objection)
    user = await name_of_caller(client)
    annotations = {APPROVED_BY_USER: user, APPROVED_AT: rfc3339(now)}
    if comment:
        annotations[APPROVAL_COMMENT] = comment
    await client.merge_patch(
        Ref(INSTALL_PLAN, key),
        {
            "metadata": {"resourceVersion": plan.metadata.resource_version, "annotations": annotations},
            "spec": {"approved": True},
        },
        manager=managers.APPROVAL.name,
    )
    return InstallPlanApproved(str(key), plan.csvs, user, comment)


def _objection(plan: InstallPlan) -> str | None:
    """Why an approval would do nothing, or harm; None if the plan waits for one."""
    if plan.approved:
        return f"it is already approved, in phase {plan.phase or 'not set'}"
    if plan.approval != "Manual":
        return f"its approval is {plan.approval or 'not set'}, not Manual: OLM needs no approval"
    if plan.phase != REQUIRES_APPROVAL:
        return (
            f"it is in phase {plan.phase or 'not set'}, not {REQUIRES_APPROVAL}: approved now, OLM would not run it "
            "but create new plans; try again when it requires approval"
        )
    return None
