"""A user's JSON patch (RFC 6902) on what an asset wants: applied as a whole, or refused with the reason."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

import msgspec

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
"""Of any API group: a user who may edit such an object could otherwise have us grant rights that the user lacks."""

_SET_BY_SERVER = (
    "creationTimestamp",
    "deletionTimestamp",
    "generateName",
    "generation",
    "managedFields",
    "name",
    "namespace",
    "resourceVersion",
    "selfLink",
    "uid",
)
PROTECTED = (
    *(Pointer((name,)) for name in ("apiVersion", "kind", "status")),
    *(Pointer(("metadata", name)) for name in _SET_BY_SERVER),
)
"""The identity of the object and what the server sets: no override applies to it."""
_LIFECYCLE = ("deletionGracePeriodSeconds", "finalizers", "ownerReferences")
FORBIDDEN = tuple(sorted((*PROTECTED, *(Pointer(("metadata", name)) for name in _LIFECYCLE))))
"""What no patch may change: PROTECTED, and what decides how long the object lives."""

_TEXTS = ("labels", "annotations")


@dataclass(frozen=True, slots=True)
class Patched:
    obj: Object
    operations: int


@dataclass(frozen=True, slots=True)
class PatchRefused:
    """The patch is not applied at all."""

    message: str


def patched(obj: Object, text: str) -> Patched | PatchRefused:
    """Apply the patch of the annotation. What was found before for the same text and object is not computed again."""
    if obj["kind"] in REFUSED_KINDS:
        return PatchRefused(f"a {obj['kind']} must not be patched: it grants rights")
    match patched_json(msgspec.json.encode(obj), text):
        case PatchRefused() as refused:
            return refused
        case raw, operations:
            return Patched(msgspec.json.decode(raw), operations)


@lru_cache(maxsize=32)
def patched_json(raw: bytes, text: str) -> tuple[bytes, int] | PatchRefused:
    """Apply the patch to an object as JSON. Its result is JSON too, whose size jsonpatch limits, and so the memory."""
    try:
        operations = jsonpatch.parse(text)
        if objection := _forbidden(operations):
            return PatchRefused(objection)
        result: Object = jsonpatch.apply(msgspec.json.decode(raw), operations)
    except jsonpatch.PatchError as error:
        return PatchRefused(str(error))
    if objection := _not_text(result["metadata"]):
        return PatchRefused(objection)
    return msgspec.json.encode(result), len(operations)


def _forbidden(operations: tuple[jsonpatch.Operation, ...]) -> str | None:
    for number, operation in enumerate(operations, start=1):
        for pointer in operation.pointers():
            for forbidden in FORBIDDEN:
                if _touches(pointer, forbidden):
                    return f"operation {number} ({operation}): {forbidden} must not be patched"
    return None


def _touches(pointer: Pointer, forbidden: Pointer) -> bool:
    """Whether one of them contains the other: to replace /metadata is to replace the name too."""
    shorter = min(len(pointer.tokens), len(forbidden.tokens))
    return pointer.tokens[:shorter] == forbidden.tokens[:shorter]


def _not_text(metadata: Mapping[str, object]) -> str | None:
    for name in _TEXTS:
        held = metadata.get(name, {})
        if not isinstance(held, dict) or not all(isinstance(value, str) for value in held.values()):
            return f"/metadata/{name} must hold strings only"
    return None
