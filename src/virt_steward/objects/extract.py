"""Extract a set of fields from an object, such as those that only one manager owns."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from virt_steward.objects.fieldpaths import Field, Keyed, Step, item_steps
from virt_steward.objects.ownership import owned_by_anyone

if TYPE_CHECKING:
    from collections.abc import Mapping

    from virt_steward.objects.fieldsets import FieldSet

_NONE = object()


def extract(obj: Mapping[str, Any], fields: FieldSet) -> dict[str, Any]:
    """Return just these fields, in the order of the object, and the keys of the list items that hold them.

    A field with nothing below it in the set stands for its whole value. Not so where managers own parts of that value
    one by one: then it was applied as an empty map or list, which others have filled, and only its presence counts.
    """
    return _pick_fields(obj, fields, owned_by_anyone(obj))


def _pick_fields(value: Mapping[str, Any], fields: FieldSet, everyone: FieldSet) -> dict[str, Any]:
    parts = ((name, _part(held, Field(name), fields, everyone)) for name, held in value.items())
    return {name: part for name, part in parts if part is not _NONE}


def _pick_items(value: list[Any], fields: FieldSet, everyone: FieldSet) -> list[Any]:
    key_names = everyone.key_names() | fields.key_names()
    picked = []
    for index, item in enumerate(value):
        for step in item_steps(item, index, key_names):
            part = _part(item, step, fields, everyone)
            if part is not _NONE:
                picked.append(_with_keys(part, item, step))
                break
    return picked


def _part(value: Any, step: Step, fields: FieldSet, everyone: FieldSet) -> Any:
    owned, below = step in fields.members, fields.below(step)
    part: Any
    match value:
        case dict() if below:
            part = _pick_fields(value, below, everyone.below(step))
        case list() if below:
            part = _pick_items(value, below, everyone.below(step))
        case dict() | list() if everyone.below(step):  # its content belongs to others
            part = type(value)()
        case _:
            return value if owned else _NONE
    return part if part or owned else _NONE


def _with_keys(part: Any, item: Any, step: Step) -> Any:
    """Add the keys of a list item, which identify it."""
    if not isinstance(step, Keyed):
        return part
    wanted = part.keys() | {name for name, _ in step.keys}
    return {name: part.get(name, item[name]) for name in item if name in wanted}
