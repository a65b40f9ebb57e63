"""A person's JSON patch on what an asset wants: all of it, or nothing of it and the reason."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from virt_steward.controllers.autopilot.overrides.protected import PROTECTED
from virt_steward.objects import jsonpatch
from virt_steward.objects.paths import Pointer

if TYPE_CHECKING:
    from collections.abc import Mapping

    from virt_steward.ssa.locks import Object

REFUSED_KINDS = frozenset(
    (
        "ClusterRole",
        "ClusterRoleBinding",
        "MutatingWebhookConfiguration",
        "PodSecurityPolicy",
        "Role",
        "RoleBinding",
        "SecurityContextConstraints",
        "ServiceAccount",
        "ValidatingWebhookConfiguration",
    )
)
"""Whatever their group: who may edit such an object could otherwise have us grant rights that they lack."""

_LIFE = ("deletionGracePeriodSeconds", "finalizers", "ownerReferences")
FORBIDDEN = tuple(sorted((*PROTECTED, *(Pointer(("metadata", name)) for name in _LIFE))))
"""What says which object it is, what the server sets, and what decides how long it lives."""

_TEXTS = ("labels", "annotations")


@dataclass(frozen=True, slots=True)
class Patched:
    obj: Object
    operations: int


@dataclass(frozen=True, slots=True)
class PatchRefused:
    """Nothing of the patch counts."""

    why: str


def patched(obj: Object, text: str) -> Patched | PatchRefused:
    """Apply the patch that an annotation holds."""
    if obj["kind"] in REFUSED_KINDS:
        return PatchRefused(f"a {obj['kind']} may not be patched: it grants rights")
    try:
        operations = jsonpatch.parse(text)
        if objection := _forbidden(operations):
            return PatchRefused(objection)
        result: Object = jsonpatch.apply(obj, operations)
    except jsonpatch.PatchError as error:
        return PatchRefused(str(error))
    if objection := _not_text(result["metadata"]):
        return PatchRefused(objection)
    return Patched(result, len(operations))


def _forbidden(operations: tuple[jsonpatch.Operation, ...]) -> str | None:
    for number, operation in enumerate(operations, start=1):
        for pointer in operation.pointers():
            for forbidden in FORBIDDEN:
                if _touches(pointer, forbidden):
                    return f"operation {number} ({operation}): {forbidden} may not be patched"
    return None


def _touches(pointer: Pointer, forbidden: Pointer) -> bool:
    """Tell whether one of them leads to the other; whoever replaces /metadata replaces the name too."""
    shorter = min(len(pointer.tokens), len(forbidden.tokens))
    return pointer.tokens[:shorter] == forbidden.tokens[:shorter]


def _not_text(metadata: Mapping[str, object]) -> str | None:
    for name in _TEXTS:
        held = metadata.get(name, {})
        if not isinstance(held, dict) or not all(isinstance(value, str) for value in held.values()):
            return f"it would leave something in /metadata/{name} that is no text"
    return None
