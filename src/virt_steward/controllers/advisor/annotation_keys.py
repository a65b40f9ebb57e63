"""The annotations by which people approve or reject the plan of a VirtPlatformConfig."""

from __future__ import annotations

from virt_steward.objects.decision_record import DecisionKeys

APPROVED_PLAN = "advisor.kubevirt.io/approved-plan"
"""On a VirtPlatformConfig: the hash of the plan that a person has approved."""
APPROVED_BY = "advisor.kubevirt.io/approved-by"
"""On a VirtPlatformConfig: who approved it; an admission policy holds it to the caller."""
APPROVAL_COMMENT = "advisor.kubevirt.io/approval-comment"
"""On a VirtPlatformConfig: why it was approved."""
REJECTED_PLAN = "advisor.kubevirt.io/rejected-plan"
"""On a VirtPlatformConfig: the hash of the plan that a person has rejected."""
REJECTED_BY = "advisor.kubevirt.io/rejected-by"
"""On a VirtPlatformConfig: who rejected it."""
REJECTION_COMMENT = "advisor.kubevirt.io/rejection-comment"
"""On a VirtPlatformConfig: why it was rejected."""
REJECTED_GENERATION = "advisor.kubevirt.io/rejected-generation"
"""On a VirtPlatformConfig: the generation that was rejected; a later one is planned again."""
DECISION = DecisionKeys.under("advisor.kubevirt.io/")
"""On a VirtPlatformConfig: the last decision of a person, whatever it was."""
APPROVALS = "advisor.kubevirt.io/approvals"
"""On a VirtPlatformConfig: the approvals of people, one line each, where spec.approvals requires them."""
REQUESTED_BY = "advisor.kubevirt.io/requested-by"
"""On a VirtPlatformConfig: who asked for the plan."""

OVERRIDE_FREEZE = "advisor.kubevirt.io/override-freeze"
"""On a VirtPlatformConfig: the hash of a plan that goes on in spite of a freeze."""
OVERRIDE_FREEZE_BY = "advisor.kubevirt.io/override-freeze-by"
"""On a VirtPlatformConfig: who has overridden the freeze."""
OVERRIDE_FREEZE_COMMENT = "advisor.kubevirt.io/override-freeze-comment"
"""On a VirtPlatformConfig: why it was overridden."""

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
