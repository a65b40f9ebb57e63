"""Sets of fields written as a server writes them into managedFields: the way back of what we read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from virt_steward.objects.fieldpaths import Field, Indexed, Keyed, Valued, scalar

if TYPE_CHECKING:
    from virt_steward.objects.fieldpaths import Step
    from virt_steward.objects.fieldsets import FieldSet


def encode(fields: FieldSet) -> dict[str, Any]:
    encoded: dict[str, Any] = {encode_step(step): {} for step in fields.members}
    for step, below in fields.children.items():
        itself: dict[str, Any] = {".": {}} if step in fields.members else {}
        encoded[encode_step(step)] = itself | encode(below)
    return encoded


def encode_step(step: Step) -> str:
    match step:
        case Field(name):
            return f"f:{name}"
        case Keyed(keys):
            return f"k:{{{','.join(f'{scalar(name)}:{value}' for name, value in keys)}}}"
        case Valued(value):
            return f"v:{value}"
        case Indexed(index):
            return f"i:{index}"
