"""Keeps approvals honest: whoever signs one may only sign with their own name. Enforced by the API server alone."""

from __future__ import annotations

from typing import Any

from virt_steward.apis.virtplatformconfig import VIRT_PLATFORM_CONFIG
from virt_steward.controllers.advisor.seen import APPROVAL_COMMENT, APPROVED_BY, APPROVED_PLAN

NAME = f"approved-by.{VIRT_PLATFORM_CONFIG.group}"
_API = "admissionregistration.k8s.io/v1"
_NOTES = "{0}.metadata.?annotations.orValue({{}})"
_SAME = "variables.now[?'{0}'] == variables.before[?'{0}']"
_SIGNED = (APPROVED_PLAN, APPROVED_BY, APPROVAL_COMMENT)

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
            {
                # an old name under a new plan would be a lie too
                "name": "untouched",
                "expression": " && ".join(_SAME.format(key) for key in _SIGNED),
            },
            {
                # a name without a plan approves nothing; whoever adds the plan is asked again
                "name": "withdrawn",
                "expression": f"!('{APPROVED_PLAN}' in variables.now) && {_SAME.format(APPROVED_BY)}",
            },
        ],
        "validations": [
            {
                "expression": "variables.untouched || variables.withdrawn"
                f" || variables.now[?'{APPROVED_BY}'].orValue('') in ['', request.userInfo.username]",
                "messageExpression": f"'{APPROVED_BY} may only name yourself: ' + request.userInfo.username",
                "reason": "Forbidden",
            }
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
