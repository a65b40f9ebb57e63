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
APPROVE_VERB = "approve"
"""The verb that lets a person decide: approve, reject, roll back, release, choose a cluster."""
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


def may(verb: str, kind: Kind) -> str:
    """The CEL expression for a caller who has this verb on the object."""
    return (
        f"authorizer.group('{kind.group}').resource('{kind.plural}').namespace(object.metadata.?namespace.orValue(''))"
        f".name(object.metadata.name).check('{verb}').allowed()"
    )


def added(*keys: str) -> str:
    """The CEL expression for a request that sets one of these annotations, or changes it. Removing it is neither."""
    return " || ".join(f"('{key}' in variables.now && !({unchanged(key)}))" for key in keys)


def only_decides(kind: Kind, *keys: str, field: str = "") -> dict[str, Any]:
    """Who may approve objects of another project's kind, but not update them, changes nothing but these annotations.

    RBAC knows no annotations: the role of an approver needs `patch` on the whole object. This takes back what that
    grants besides. `field` is a field of the spec that belongs to the decision. Others are not concerned: they lack
    the verb approve, which only we define, or they have update as well.
    """
    decided = f"['{field}']" if field else "[]"
    spec = "{0}.?spec.orValue({{}})"
    new, old = spec.format("object"), spec.format("oldObject")
    expressions = (
        f"variables.now.all(key, key in {list(keys)} || variables.before[?key] == optional.of(variables.now[key]))",
        f"variables.before.all(key, key in {list(keys)} || key in variables.now)",
        f"{new}.all(key, key in {decided} || {old}[?key] == optional.of({new}[key]))",
        f"{old}.all(key, key in {decided} || key in {new})",
        *(
            f"object.metadata.?{part} == oldObject.metadata.?{part}"
            for part in ("labels", "finalizers", "ownerReferences")
        ),
    )
    is_decision = " && ".join(expressions)
    may_write = f"!{may(APPROVE_VERB, kind)} || {may('update', kind)}"
    resource = f"{kind.plural}.{kind.group}"
    return {
        "expression": f"oldObject == null || ({is_decision}) || {may_write}",
        "message": f"with {APPROVE_VERB} on {resource} and without update you may only decide,"
        f" which changes {', '.join((*([f'spec.{field}'] if field else []), *keys))}",
        "reason": "Forbidden",
    }


def freeze_override(kind: Kind, override: str, by: str, comment: str) -> tuple[dict[str, Any], ...]:
    """Validations for the annotations by which a person overrides a freeze: a right, their own name, and a comment.

    A request that leaves the override as it is, or removes it, needs none of them.
    """
    untouched = f"({unchanged(override, by, comment)}) || !('{override}' in variables.now)"
    right = may(OVERRIDE_FREEZE_VERB, kind)
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
