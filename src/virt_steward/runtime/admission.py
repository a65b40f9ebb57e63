"""Admission policies about who may write annotations. The API server enforces them, without any webhook of ours."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from virt_steward.objects.identity import Kind

_API = "admissionregistration.k8s.io/v1"
_ANNOTATIONS = "{0}.metadata.?annotations.orValue({{}})"
_SAME = "variables.now[?'{0}'] == variables.before[?'{0}']"


def unchanged(*keys: str) -> str:
    """The CEL expression for a request that leaves these annotations as they are."""
    return " && ".join(map(_SAME.format, keys))


def annotation_policy(name: str, kind: Kind, *validations: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """A policy for objects of a kind, and its binding.

    In the validations, `variables.now` and `variables.before` are the annotations after and before the request.
    """
    rule = {
        "apiGroups": [kind.group],
        "apiVersions": ["*"],
        "resources": [kind.plural],
        "operations": ["CREATE", "UPDATE"],
    }
    before = f"oldObject == null ? {{}} : {_ANNOTATIONS.format('oldObject')}"
    spec = {
        "failurePolicy": "Fail",
        "matchConstraints": {"resourceRules": [rule]},
        "variables": [
            {"name": "now", "expression": _ANNOTATIONS.format("object")},
            {"name": "before", "expression": before},
        ],
        "validations": list(validations),
    }
    head = {"apiVersion": _API, "metadata": {"name": name}}
    binding = {"policyName": name, "validationActions": ["Deny"]}
    return (
        {**head, "kind": "ValidatingAdmissionPolicy", "spec": spec},
        {**head, "kind": "ValidatingAdmissionPolicyBinding", "spec": binding},
    )
