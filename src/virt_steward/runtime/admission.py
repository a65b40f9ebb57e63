"""Admission policies about who may write annotations. The API server enforces them, without any webhook of ours."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from virt_steward.objects.approvals import LONGEST_TEXT, MOST_LINES
from virt_steward.objects.identity import Kind

if TYPE_CHECKING:
    from collections.abc import Collection

    from virt_steward.objects.decision_record import DecisionKeys

OVERRIDE_FREEZE_VERB = "override-freeze"
"""The verb that lets a person override a freeze."""
_API = "admissionregistration.k8s.io/v1"
_ANNOTATIONS = "{0}.metadata.?annotations.orValue({{}})"
_SAME = "variables.now[?'{0}'] == variables.before[?'{0}']"


def unchanged(*keys: str) -> str:
    """The CEL expression for a request that leaves these annotations as they are."""
    return " && ".join(map(_SAME.format, keys))


def decided_by_caller(keys: DecisionKeys) -> dict[str, Any]:
    """Who changes the record of a decision signs it with their own name. Anybody may remove it, and nobody move it."""
    removed = " && ".join(f"!('{key}' in variables.now)" for key in keys)
    return {
        "expression": f"({unchanged(*keys)}) || ({removed}) || {names_caller(keys.by)}",
        "messageExpression": f"'{keys.by} may only name yourself: ' + request.userInfo.username",
        "reason": "Forbidden",
    }


def approvals_of_caller(key: str) -> dict[str, Any]:
    """Everybody may add lines of their own to an annotation of approvals (`objects/approvals.py`), and remove any line.

    That somebody removes the approval of another is allowed: it starts nothing, and who may write the object can stop
    it in other ways too. A changed line is a removed one and a new one, so nobody can move an approval to another plan.
    """
    lines = f"variables.{{0}}[?'{key}'].orValue('').split('\\n')"
    now, before = lines.format("now"), lines.format("before")
    is_own = "line.split(' ', 4).size() == 4 && line.split(' ', 4)[3] == request.userInfo.username"
    is_bounded = f"size(variables.now[?'{key}'].orValue('')) <= {LONGEST_TEXT} && size({now}) <= {MOST_LINES}"
    only_own = f"{now}.all(line, line == '' || line in {before} || ({is_own}))"
    return {
        "expression": f"({unchanged(key)}) || ({is_bounded} && {only_own})",
        "messageExpression": f"'{key} may only get approvals by yourself: ' + request.userInfo.username",
        "reason": "Forbidden",
    }


def names_caller(key: str) -> str:
    """The CEL expression for an annotation that names the user who makes the request."""
    return f"variables.now[?'{key}'].orValue('') == request.userInfo.username"


def freeze_override(kind: Kind, override: str, by: str, comment: str) -> tuple[dict[str, Any], ...]:
    """Validations for the annotations by which a person overrides a freeze: a right, their own name, and a comment.

    A request that leaves the override as it is, or removes it, needs none of them.
    """
    untouched = f"({unchanged(override, by, comment)}) || !('{override}' in variables.now)"
    right = (
        f"authorizer.group('{kind.group}').resource('{kind.plural}').namespace(object.metadata.?namespace.orValue(''))"
        f".name(object.metadata.name).check('{OVERRIDE_FREEZE_VERB}').allowed()"
    )
    return (
        {
            "expression": f"{untouched} || {right}",
            "message": f"to override a freeze, you need the verb {OVERRIDE_FREEZE_VERB} on {kind.plural}.{kind.group}",
            "reason": "Forbidden",
        },
        {
            "expression": f"{untouched} || {names_caller(by)}",
            "messageExpression": f"'{by} must be your own name: ' + request.userInfo.username",
            "reason": "Forbidden",
        },
        {
            "expression": f"{untouched} || variables.now[?'{comment}'].orValue('').trim() != ''",
            "message": f"{comment} must say why the freeze is overridden",
            "reason": "Invalid",
        },
    )


def annotation_policy(
    name: str, kinds: Kind | Collection[Kind], *validations: dict[str, Any]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """A policy for objects of a kind, or of several, and its binding.

    In the validations, `variables.now` and `variables.before` are the annotations after and before the request.
    """
    by_group: dict[str, set[str]] = {}
    for kind in (kinds,) if isinstance(kinds, Kind) else kinds:
        by_group.setdefault(kind.group, set()).add(kind.plural)
    rules = [
        {
            "apiGroups": [group],
            "apiVersions": ["*"],
            "resources": sorted(plurals),
            "operations": ["CREATE", "UPDATE"],
        }
        for group, plurals in sorted(by_group.items())
    ]
    before = f"oldObject == null ? {{}} : {_ANNOTATIONS.format('oldObject')}"
    spec = {
        "failurePolicy": "Fail",
        "matchConstraints": {"resourceRules": rules},
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
