"""An admission policy for approvals and rejections: users can only sign them with their own name.

The API server enforces it, without any webhook of ours.
"""

from __future__ import annotations

from typing import Any

from virt_steward.apis.virtplatformconfig import VIRT_PLATFORM_CONFIG
from virt_steward.controllers.advisor.annotation_keys import (
    APPROVAL_COMMENT,
    APPROVED_BY,
    APPROVED_PLAN,
    REJECTED_BY,
    REJECTED_GENERATION,
    REJECTED_PLAN,
    REJECTION_COMMENT,
)

NAME = f"approved-by.{VIRT_PLATFORM_CONFIG.group}"
_API = "admissionregistration.k8s.io/v1"
_NOTES = "{0}.metadata.?annotations.orValue({{}})"
_SAME = "variables.now[?'{0}'] == variables.before[?'{0}']"


def _signed_by_caller(plan: str, by: str, *besides: str) -> dict[str, Any]:
    """The name that signs a decision must be that of the caller, or empty.

    That is not asked of a request that leaves the decision as it is, or that only removes the plan from it. It is asked
    when another plan is put under an existing name: that would be a signature of somebody who has not seen the plan.
    """
    untouched = " && ".join(_SAME.format(key) for key in (plan, by, *besides))
    withdrawn = f"!('{plan}' in variables.now) && {_SAME.format(by)}"
    is_theirs = f"variables.now[?'{by}'].orValue('') in ['', request.userInfo.username]"
    return {
        "expression": f"({untouched}) || ({withdrawn}) || {is_theirs}",
        "messageExpression": f"'{by} may only name yourself: ' + request.userInfo.username",
        "reason": "Forbidden",
    }


_POLICY: dict[str, Any] = {
    "apiVersion": _API,
    "kind": "ValidatingAdmissionPolicy",
    "metadata": {"name": NAME},
    "spec": {
        "failurePolicy": "Fail",
        "matchConstraints": {
            "resourceRules": [
                {
                    "apiGroups": [VIRT_PLATFORM_CONFIG.group],
                    "apiVersions": ["*"],
                    "resources": [VIRT_PLATFORM_CONFIG.plural],
                    "operations": ["CREATE", "UPDATE"],
                }
            ]
        },
        "variables": [
            {"name": "now", "expression": _NOTES.format("object")},
            {"name": "before", "expression": f"oldObject == null ? {{}} : {_NOTES.format('oldObject')}"},
        ],
        "validations": [
            _signed_by_caller(APPROVED_PLAN, APPROVED_BY, APPROVAL_COMMENT),
            _signed_by_caller(REJECTED_PLAN, REJECTED_BY, REJECTION_COMMENT, REJECTED_GENERATION),
        ],
    },
}

_BINDING: dict[str, Any] = {
    "apiVersion": _API,
    "kind": "ValidatingAdmissionPolicyBinding",
    "metadata": {"name": NAME},
    "spec": {"policyName": NAME, "validationActions": ["Deny"]},
}

POLICIES = (_POLICY, _BINDING)
