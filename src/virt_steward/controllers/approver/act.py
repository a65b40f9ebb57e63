"""The writes of the approver: on a plan its approval, or how many people must approve it, and its own status."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from virt_steward.apis.installplanapprover import INSTALL_PLAN_APPROVER, InstallPlanApproverStatus
from virt_steward.controllers.approver.manual_approval import APPROVED_AT
from virt_steward.controllers.approver.olm import APPROVED_BECAUSE, APPROVED_BY, INSTALL_PLAN, REQUIRED_APPROVALS
from virt_steward.kube import faults
from virt_steward.objects.identity import Ref
from virt_steward.objects.wallclock import rfc3339
from virt_steward.ssa import managers

if TYPE_CHECKING:
    from datetime import datetime

    from virt_steward.controllers.approver.decide import ApprovalDecision
    from virt_steward.controllers.approver.observation import Approver
    from virt_steward.controllers.approver.olm import InstallPlan
    from virt_steward.kube.client import Client


async def approve(client: Client, plan: InstallPlan, approval: ApprovalDecision, now: datetime) -> None:
    """Approve exactly the observed version of the plan: if it has changed since, the server answers 409."""
    stamp = {
        APPROVED_BY: approval.approver.metadata.uid,
        APPROVED_AT: rfc3339(now),
        APPROVED_BECAUSE: approval.reason,
    }
    faults.reach("approver.approve.before")
    await client.merge_patch(
        Ref(INSTALL_PLAN, plan.metadata.key),
        {
            "metadata": {"resourceVersion": plan.metadata.resource_version, "annotations": stamp},
            "spec": {"approved": True},
        },
        manager=managers.APPROVAL.name,
        brief=True,
    )
    faults.reach("approver.approve.after")


async def require_approvals(client: Client, plan: InstallPlan, required: int) -> None:
    """Note on the plan how many people must approve it: they read it there, and the admission policy enforces it."""
    annotations = {REQUIRED_APPROVALS: str(required) if required else None}
    await client.merge_patch(
        Ref(INSTALL_PLAN, plan.metadata.key),
        {"metadata": {"resourceVersion": plan.metadata.resource_version, "annotations": annotations}},
        manager=managers.APPROVAL.name,
        brief=True,
    )


async def write_status(client: Client, approver: Approver, status: InstallPlanApproverStatus) -> None:
    """Replace the whole status on the observed version of the approver: nothing is counted twice (see `report.py`).

    An apply would keep what others have added to it.
    """
    metadata = approver.metadata
    faults.reach("approver.status.before")
    await client.json_patch(
        Ref(INSTALL_PLAN_APPROVER, metadata.key),
        [
            {"op": "replace", "path": "/metadata/resourceVersion", "value": metadata.resource_version},
            {"op": "add", "path": "/status", "value": msgspec.to_builtins(status)},
        ],
        manager=managers.APPROVER_STATUS.name,
        subresource="status",
    )
    faults.reach("approver.status.after")
