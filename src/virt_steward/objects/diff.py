"""What changes between two states of an object, for people: as unified YAML and as a list of changed values.

Both leave out what the server sets, and mask secrets.
"""

from __future__ import annotations

import difflib
import enum
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from virt_steward.objects.canonical import same
from virt_steward.objects.fieldpaths import Field, FieldPath, Indexed, Keyed, keyed, readable
from virt_steward.objects.identity import ref_of
from virt_steward.objects.masks import masked, masked_change
from virt_steward.objects.normalize import sanitized
from virt_steward.objects.paths import Pointer
from virt_steward.objects.yamltext import yaml_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_KEY_NAMES = ("name", "key", "type", "id")


class _Absent(enum.Enum):
    ABSENT = "absent"


ABSENT: Final = _Absent.ABSENT
"""Stands where there is no value; null is a value."""


@dataclass(frozen=True, slots=True)
class Change:
    """One value that is added, removed or replaced."""

    path: FieldPath
    before: Any
    after: Any
    pointer: Pointer
    """As ignore-fields takes it: an item of a list by its index in the live list, a new one after its end."""

    def __str__(self) -> str:
        return readable(self.path)


def unified(live: Mapping[str, Any] | None, planned: Mapping[str, Any] | None) -> str:
    """Return a unified diff, empty if nothing changes. None is an object that does not exist."""
    known = planned if live is None else live
    if known is None:
        return ""
    old, new = _shown(live, planned)
    lines = difflib.unified_diff(
        _lines(old),
        _lines(new),
        f"live {ref_of(known)}{' (absent)' if live is None else ''}",
        f"planned {ref_of(known)}{' (absent)' if planned is None else ''}",
        lineterm="",
    )
    return "".join(f"{line}\n" for line in lines)


def changes(live: Mapping[str, Any] | None, planned: Mapping[str, Any] | None) -> tuple[Change, ...]:
    """List the values that differ, in the order of the planned object; empty if and only if nothing shown differs."""
    old, new = _shown(live, planned)
    return tuple(_changes((), Pointer(), old, new))


def _shown(live: Mapping[str, Any] | None, planned: Mapping[str, Any] | None) -> tuple[Any, Any]:
    if live is not None and planned is not None:
        return masked_change(sanitized(live), sanitized(planned))
    return _alone(live), _alone(planned)


def _alone(obj: Mapping[str, Any] | None) -> Any:
    return ABSENT if obj is None else masked(sanitized(obj))


def _lines(obj: Any) -> list[str]:
    return [] if obj is ABSENT else yaml_text(obj).rstrip("\n").split("\n")  # splitlines() hides exotic separators


def _changes(path: FieldPath, pointer: Pointer, before: Any, after: Any) -> Iterator[Change]:
    match before, after:
        case (dict(), dict()):
            yield from _map_changes(path, pointer, before, after)
        case (list(), list()):
            yield from _list_changes(path, pointer, before, after)
        case (_Absent(), dict() | list()) if after:
            yield from _changes(path, pointer, type(after)(), after)
        case (dict() | list(), _Absent()) if before:
            yield from _changes(path, pointer, before, type(before)())
        case (_Absent(), _Absent()):
            return
        case _ if before is ABSENT or after is ABSENT or not same(before, after):
            yield Change(path, before, after, pointer)


def _map_changes(path: FieldPath, pointer: Pointer, before: dict[str, Any], after: dict[str, Any]) -> Iterator[Change]:
    for name in {**after, **before}:
        old, new = before.get(name, ABSENT), after.get(name, ABSENT)
        yield from _changes((*path, Field(name)), pointer / name, old, new)


def _list_changes(path: FieldPath, pointer: Pointer, before: list[Any], after: list[Any]) -> Iterator[Change]:
    old, new = _by_position(before), _by_position(after)
    for name in _KEY_NAMES:
        old_by_key, new_by_key = _by_key(before, name), _by_key(after, name)
        if old_by_key is not None and new_by_key is not None and _same_order(old_by_key, new_by_key):
            old, new = old_by_key, new_by_key
            break
    index_of = {step: index for index, step in enumerate({**old, **new})}  # new items come after those that are there
    for step in {**new, **old}:
        yield from _changes((*path, step), pointer / index_of[step], old.get(step, ABSENT), new.get(step, ABSENT))


def _by_position(items: list[Any]) -> dict[Keyed | Indexed, Any]:
    return {Indexed(index): item for index, item in enumerate(items)}


def _by_key(items: list[Any], name: str) -> dict[Keyed | Indexed, Any] | None:
    """Return the items by the key of this name, or None if that does not tell them apart."""
    found: dict[Keyed | Indexed, Any] = {}
    for item in items:
        if not isinstance(item, dict) or not isinstance(item.get(name), str):
            return None
        found[keyed(**{name: item[name]})] = item
    return found if len(found) == len(items) else None


def _same_order(old: dict[Keyed | Indexed, Any], new: dict[Keyed | Indexed, Any]) -> bool:
    """Tell whether the items that both have come in one order; if not, only positions show the difference."""
    return [step for step in old if step in new] == [step for step in new if step in old]
