"""Who owns which fields of an object, from its managedFields."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import msgspec

from virt_steward.objects.fieldpaths import Field, Step, item_steps
from virt_steward.objects.fieldsets import FieldSet, decode
from virt_steward.objects.paths import NothingThere, Pointer, get

if TYPE_CHECKING:
    from collections.abc import Mapping

APPLY = "Apply"


@dataclass(frozen=True, slots=True, order=True)
class Owner:
    """One entry of managedFields. Its fields are named as in its own apiVersion, which may not be the object's."""

    manager: str
    operation: str
    subresource: str = ""
    api_version: str = ""


def owners(obj: Mapping[str, Any]) -> dict[Owner, FieldSet]:
    found: dict[Owner, FieldSet] = {}
    for entry in obj.get("metadata", {}).get("managedFields") or ():
        owner = Owner(
            manager=entry.get("manager", ""),
            operation=entry.get("operation", ""),
            subresource=entry.get("subresource", ""),
            api_version=entry.get("apiVersion", ""),
        )
        fields = fields_of(entry)
        found[owner] = found[owner] | fields if owner in found else fields
    return found


def fields_of(entry: Mapping[str, Any]) -> FieldSet:
    """The fields of one entry of managedFields. Raises BadFields."""
    return _decoded(msgspec.json.encode(entry.get("fieldsV1") or {}))


@lru_cache(maxsize=32)  # one reconcile asks many times, and decoding is expensive
def _decoded(fields: bytes) -> FieldSet:
    return decode(msgspec.json.decode(fields))


def owned_by(obj: Mapping[str, Any], manager: str, *, subresource: str = "") -> FieldSet:
    """The fields that the manager applied: its next apply must send them again, or releases them."""
    wanted = (manager, APPLY, subresource)
    return FieldSet.union(
        fields for owner, fields in owners(obj).items() if (owner.manager, owner.operation, owner.subresource) == wanted
    )


def owned_by_anyone(obj: Mapping[str, Any]) -> FieldSet:
    return FieldSet.union(owners(obj).values())


def who_owns(obj: Mapping[str, Any], pointer: Pointer) -> tuple[Owner, ...]:
    """All owners of the value, of a part of it, or of an atomic value that contains it."""
    everyone = owned_by_anyone(obj)
    return tuple(sorted(owner for owner, fields in owners(obj).items() if _reaches(fields, everyone, obj, pointer)))


def _reaches(fields: FieldSet, everyone: FieldSet, obj: Mapping[str, Any], pointer: Pointer) -> bool:
    parent = Pointer()
    for token in pointer.tokens:
        steps = _steps(obj, parent, token, everyone.key_names())
        step = next((step for step in steps if step in fields.members or step in fields.children), None)
        if step is None:
            return False
        if step not in fields.children and step not in everyone.children:  # an atomic value
            return True
        fields, everyone, parent = fields.below(step), everyone.below(step), parent / token
    return True


def _steps(obj: Mapping[str, Any], parent: Pointer, token: str, key_names: frozenset[str]) -> tuple[Step, ...]:
    try:
        if not isinstance(get(obj, parent), list):
            return (Field(token),)
        return item_steps(get(obj, parent / token), int(token), key_names)
    except NothingThere:  # owned, but without a value
        return (Field(token),)
