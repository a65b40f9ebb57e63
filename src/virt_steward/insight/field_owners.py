"""Who owns which field of an object, by its managedFields. Pure.

Those who may write an object choose the name of the manager, and can fill managedFields up to the size of an object. So
what is read is bounded, and a manager that is named like a command is only probably a person.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import msgspec

from virt_steward.objects.fieldpaths import BadFields, readable
from virt_steward.objects.fieldsets import FieldSet, decode
from virt_steward.ssa import managers

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from virt_steward.objects.fieldpaths import FieldPath

OwnerRole = Literal["advisor", "autopilot", "virt-steward", "admin", "other"]

ROLES: tuple[OwnerRole, ...] = ("advisor", "autopilot", "virt-steward", "admin", "other")
_BY_NAME: dict[str, OwnerRole] = {managers.ADVISOR.name: "advisor", managers.AUTOPILOT.name: "autopilot"}
_OURS = "virt-steward-"
_COMMANDS = ("kubectl", "oc", managers.CONSOLE.name, "Mozilla")
"""The start of the managers of people: kubectl, oc, our own console, and consoles that send the browser's name."""

MOST_ENTRIES = 100
LARGEST_ENTRY = 32 * 1024
"""Bytes of the fields of one entry that are decoded; a larger entry is named without its fields."""
LARGEST_OBJECT = 64 * 1024
"""Bytes of the fields of all entries that are decoded."""
OWNERS_SHOWN = 20
FIELDS_SHOWN = 40
LONGEST_TEXT = 200


class ManagedFieldsRecord(msgspec.Struct, frozen=True, rename="camel"):
    """An entry of managedFields, whose fields are not decoded yet."""

    manager: str = ""
    operation: str = ""
    subresource: str = ""
    time: str | None = None
    fields_v1: msgspec.Raw = msgspec.field(name="fieldsV1", default_factory=lambda: msgspec.Raw(b"{}"))


class OwnedMetadata(msgspec.Struct, frozen=True, rename="camel"):
    managed_fields: tuple[ManagedFieldsRecord, ...] = ()


class OwnedObject(msgspec.Struct, frozen=True):
    """An object, of which only managedFields are read."""

    metadata: OwnedMetadata = OwnedMetadata()


@dataclass(frozen=True, slots=True)
class OwnerOfFields:
    """A manager, and the fields that it owns."""

    manager: str
    role: OwnerRole
    operations: tuple[str, ...]
    time: str
    """When it wrote last; empty if it does not say."""
    fields: tuple[str, ...]
    """The first of them, sorted."""
    count: int
    shared: int
    """How many of them other managers own, too."""
    is_complete: bool
    """Whether all of its entries could be read."""

    @property
    def more(self) -> int:
        return self.count - len(self.fields)


@dataclass(frozen=True, slots=True)
class FieldOwners:
    """All managers of an object: ours first, then the others by the number of their fields."""

    owners: tuple[OwnerOfFields, ...]
    more: int
    """Managers that are not listed."""

    @property
    def total(self) -> int:
        return sum(one.count for one in self.owners)

    @property
    def shares(self) -> tuple[tuple[OwnerRole, int], ...]:
        """The number of fields by role; only those that occur."""
        counts = {role: sum(one.count for one in self.owners if one.role == role) for role in ROLES}
        return tuple((role, count) for role, count in counts.items() if count)


def role_of(manager: str) -> OwnerRole:
    if manager in _BY_NAME:
        return _BY_NAME[manager]
    if any(manager == name or manager.startswith((f"{name}-", f"{name}/")) for name in _COMMANDS):
        return "admin"
    return "virt-steward" if manager.startswith(_OURS) else "other"


def field_owners(entries: Iterable[ManagedFieldsRecord]) -> FieldOwners:
    """The owners of all fields but the status, which controllers write for themselves."""
    known = [entry for entry in entries if not entry.subresource][:MOST_ENTRIES]
    decoded = _decoded(known)
    fields: dict[str, FieldSet] = {}
    for entry, found in zip(known, decoded, strict=True):
        fields[entry.manager] = fields.get(entry.manager, FieldSet()) | (found or FieldSet())
    paths = {manager: frozenset(_leaves(found)) for manager, found in fields.items()}
    unread = {entry.manager for entry, found in zip(known, decoded, strict=True) if found is None}
    owners = sorted(
        (_owner(manager, known, paths, is_complete=manager not in unread) for manager in paths),
        key=lambda one: (ROLES.index(one.role), -one.count, one.manager),
    )
    return FieldOwners(tuple(owners[:OWNERS_SHOWN]), max(len(owners) - OWNERS_SHOWN, 0))


def _owner(
    manager: str, entries: list[ManagedFieldsRecord], paths: dict[str, frozenset[FieldPath]], *, is_complete: bool
) -> OwnerOfFields:
    mine = [entry for entry in entries if entry.manager == manager]
    others = frozenset[object]().union(*(found for name, found in paths.items() if name != manager))
    names = sorted(readable(path)[:LONGEST_TEXT] for path in paths[manager])
    return OwnerOfFields(
        manager[:LONGEST_TEXT] or "(without a name)",
        role_of(manager),
        tuple(sorted({entry.operation for entry in mine})),
        max((entry.time or "" for entry in mine), default="")[:LONGEST_TEXT],
        tuple(names[:FIELDS_SHOWN]),
        len(names),
        len(paths[manager] & others),
        is_complete,
    )


def _decoded(entries: list[ManagedFieldsRecord]) -> list[FieldSet | None]:
    """None for an entry that is too large, or is not in the format."""
    left, found = LARGEST_OBJECT, []
    for entry in entries:
        size = len(bytes(entry.fields_v1))
        left -= size
        found.append(_fields(entry) if size <= LARGEST_ENTRY and left >= 0 else None)
    return found


def _fields(entry: ManagedFieldsRecord) -> FieldSet | None:
    try:
        return decode(msgspec.json.decode(entry.fields_v1, type=dict))
    except (BadFields, msgspec.MsgspecError, RecursionError):
        return None


def _leaves(fields: FieldSet, parent: FieldPath = ()) -> Iterator[FieldPath]:
    """The owned fields without those that only hold others: `.spec` of `.spec.mode` is no field of its own."""
    for step in fields.members:
        if step not in fields.children:
            yield (*parent, step)
    for step, below in fields.children.items():
        yield from _leaves(below, (*parent, step))
