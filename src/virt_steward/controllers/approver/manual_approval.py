"""What is recorded on an InstallPlan that a person has approved: who, when and why."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from virt_steward.objects.decision_record import DecisionKeys, read_decision

if TYPE_CHECKING:
    from collections.abc import Iterable

    from virt_steward.objects.decision_record import DecisionRecord

APPROVED_AT = "operators.bapu.cloud/approved-at"
"""On an InstallPlan: when a person approved it."""
APPROVED_BY_USER = "operators.bapu.cloud/approved-by-user"
"""On an InstallPlan: the person who approved it; an admission policy holds it to the caller."""
APPROVAL_COMMENT = "operators.bapu.cloud/approval-comment"
"""On an InstallPlan: why a person approved it."""
_KEYS = DecisionKeys("", APPROVED_BY_USER, APPROVED_AT, APPROVAL_COMMENT)
OVERRIDE_FREEZE = "operators.bapu.cloud/override-freeze"
"""On an InstallPlan: its uid, if a person has approved it in spite of a freeze."""
OVERRIDE_FREEZE_BY = "operators.bapu.cloud/override-freeze-by"
"""On an InstallPlan: who has overridden the freeze."""
OVERRIDE_FREEZE_COMMENT = "operators.bapu.cloud/override-freeze-comment"
"""On an InstallPlan: why it was overridden."""


class ManualApproval(msgspec.Struct, frozen=True, gc=False):
    """The annotations of a manual approval; all empty if there was none."""

    user: str = msgspec.field(default="", name=APPROVED_BY_USER)
    at: str = msgspec.field(default="", name=APPROVED_AT)
    comment: str = msgspec.field(default="", name=APPROVAL_COMMENT)

    def record(self, csvs: Iterable[str]) -> DecisionRecord | None:
        """The same in the form of all decisions; None if there was none."""
        annotations = {_KEYS.decision: f"approve {', '.join(csvs)}", **msgspec.to_builtins(self)}
        return read_decision(annotations, _KEYS)


NOT_SIGNED = ManualApproval()
