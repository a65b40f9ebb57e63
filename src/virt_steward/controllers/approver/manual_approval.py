"""What is recorded on an InstallPlan that a person has approved: who, when and why."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from virt_steward.controllers.approver.olm import APPROVED_AT, INSTALL_PLAN, NO_FIELDS, is_our_stamp
from virt_steward.objects.identity import Ref

if TYPE_CHECKING:
    from virt_steward.kube.client import Reader
    from virt_steward.objects.identity import Key

APPROVED_BY_USER = "operators.bapu.cloud/approved-by-user"
APPROVAL_COMMENT = "operators.bapu.cloud/approval-comment"


class ManualApproval(msgspec.Struct, frozen=True):
    """The annotations of a manual approval; all empty if there was none."""

    user: str = msgspec.field(default="", name=APPROVED_BY_USER)
    at: str = msgspec.field(default="", name=APPROVED_AT)
    comment: str = msgspec.field(default="", name=APPROVAL_COMMENT)


class _ApprovedPlanMeta(msgspec.Struct, rename="camel"):
    annotations: ManualApproval = ManualApproval()
    managed_fields: msgspec.Raw = NO_FIELDS


class _ApprovedPlan(msgspec.Struct):
    metadata: _ApprovedPlanMeta


async def manual_approval_of(reader: Reader, key: Key) -> ManualApproval:
    """Ask the API server: few plans have one, so no cache keeps it. Annotations that others wrote do not count."""
    metadata = (await reader.get(Ref(INSTALL_PLAN, key), _ApprovedPlan)).metadata
    return metadata.annotations if is_our_stamp(metadata.annotations, metadata.managed_fields) else ManualApproval()
