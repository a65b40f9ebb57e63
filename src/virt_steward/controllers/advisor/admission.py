"""An admission policy for decisions on plans: users can only sign them with their own name."""

from __future__ import annotations

from typing import Any

from virt_steward.apis.virtplatformconfig import VIRT_PLATFORM_CONFIG
from virt_steward.controllers.advisor.annotation_keys import (
    APPROVAL_COMMENT,
    APPROVED_BY,
    APPROVED_PLAN,
    DECISION,
    REJECTED_BY,
    REJECTED_GENERATION,
    REJECTED_PLAN,
    REJECTION_COMMENT,
)
from virt_steward.runtime.admission import annotation_policy, decided_by_caller, unchanged

NAME = f"approved-by.{VIRT_PLATFORM_CONFIG.group}"


def _signed_by_caller(plan: str, by: str, *besides: str) -> dict[str, Any]:
    """The name that signs a decision must be that of the caller, or empty.

    That is not asked of a request that leaves the decision as it is, or that only removes the plan from it. It is asked
    when another plan is put under an existing name: that would be a signature of somebody who has not seen the plan.
    """
    untouched = unchanged(plan, by, *besides)
    withdrawn = f"!('{plan}' in variables.now) && {unchanged(by)}"
    is_theirs = f"variables.now[?'{by}'].orValue('') in ['', request.userInfo.username]"
    return {
        "expression": f"({untouched}) || ({withdrawn}) || {is_theirs}",
        "messageExpression": f"'{by} may only name yourself: ' + request.userInfo.username",
        "reason": "Forbidden",
    }


POLICIES = annotation_policy(
    NAME,
    VIRT_PLATFORM_CONFIG,
    _signed_by_caller(APPROVED_PLAN, APPROVED_BY, APPROVAL_COMMENT),
    _signed_by_caller(REJECTED_PLAN, REJECTED_BY, REJECTION_COMMENT, REJECTED_GENERATION),
    decided_by_caller(DECISION),
)
