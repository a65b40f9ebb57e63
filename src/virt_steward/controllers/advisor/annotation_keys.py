"""The annotations by which people approve or reject the plan of a VirtPlatformConfig."""

from __future__ import annotations

from virt_steward.objects.decision_record import DecisionKeys

APPROVED_PLAN = "advisor.kubevirt.io/approved-plan"
APPROVED_BY = "advisor.kubevirt.io/approved-by"
APPROVAL_COMMENT = "advisor.kubevirt.io/approval-comment"
REJECTED_PLAN = "advisor.kubevirt.io/rejected-plan"
REJECTED_BY = "advisor.kubevirt.io/rejected-by"
REJECTION_COMMENT = "advisor.kubevirt.io/rejection-comment"
REJECTED_GENERATION = "advisor.kubevirt.io/rejected-generation"
DECISION = DecisionKeys.under("advisor.kubevirt.io/")
"""The last decision of a person, whatever it was."""
APPROVALS = "advisor.kubevirt.io/approvals"
"""Where spec.approvals requires them: one line for each person (`objects/approvals.py`)."""
REQUESTED_BY = "advisor.kubevirt.io/requested-by"
"""Who asked for the plan."""

OVERRIDE_FREEZE = "advisor.kubevirt.io/override-freeze"
"""The hash of a plan that goes on in spite of a freeze."""
OVERRIDE_FREEZE_BY = "advisor.kubevirt.io/override-freeze-by"
OVERRIDE_FREEZE_COMMENT = "advisor.kubevirt.io/override-freeze-comment"

UNAPPROVED = dict.fromkeys(
    (
        APPROVED_PLAN,
        APPROVED_BY,
        APPROVAL_COMMENT,
        APPROVALS,
        OVERRIDE_FREEZE,
        OVERRIDE_FREEZE_BY,
        OVERRIDE_FREEZE_COMMENT,
    )
)
"""In a merge patch: removes an approval."""
UNREJECTED = dict.fromkeys((REJECTED_PLAN, REJECTED_BY, REJECTION_COMMENT, REJECTED_GENERATION))
"""In a merge patch: removes a rejection."""
