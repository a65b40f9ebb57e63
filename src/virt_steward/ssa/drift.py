"""Drift: which live values differ from the desired ones, and who set them. For events and plans."""

from __future__ import annotations

from typing import TYPE_CHECKING

from virt_steward.objects.diff import changes
from virt_steward.objects.fieldpaths import Field, FieldPath, Indexed, item_steps
from virt_steward.objects.fieldsets import FieldSet
from virt_steward.objects.ownership import who_owns
from virt_steward.objects.paths import NothingThere, Pointer, get
from virt_steward.ssa.drift_entries import FieldDrift, drift_entry
from virt_steward.ssa.preview import Changes, Conflicts

if TYPE_CHECKING:
    from virt_steward.objects.diff import Change
    from virt_steward.objects.fieldpaths import Step
    from virt_steward.ssa.locks import Object
    from virt_steward.ssa.managers import FieldManager
    from virt_steward.ssa.preview import Preview

DETAILED = 20
"""For so many fields of an object values and authors are reported: others decide how many they change."""
_NOWHERE = "-"
"""In a pointer: an item that the live list does not have."""


def drifts(preview: Preview, manager: FieldManager) -> tuple[FieldDrift, ...]:
    """What an apply would correct, in the order of the object."""
    match preview:
        case Changes(live, planned) | Conflicts(live, planned):
            found = enumerate(changes(live, planned))
            return tuple(_drift(live, change, manager, detailed=index < DETAILED) for index, change in found)
    return ()


def _drift(live: Object, change: Change, manager: FieldManager, *, detailed: bool) -> FieldDrift:
    pointer = _pointer(live, change.path)
    names = {owner.manager for owner in who_owns(live, pointer)}
    entry = drift_entry(live, pointer, change.before, change.after, manager) if detailed else None
    return FieldDrift(str(pointer), tuple(sorted(names - {manager.name})), manager.name in names, entry)


def _pointer(live: Object, path: FieldPath) -> Pointer:
    pointer = Pointer()
    for step in path:
        pointer /= _token(live, pointer, step)
    return pointer


def _token(live: Object, parent: Pointer, step: Step) -> str | int:
    match step:
        case Field(name):
            return name
        case Indexed(index):
            return index
    try:
        items = get(live, parent)
    except NothingThere:
        return _NOWHERE
    names = FieldSet.of((step,)).key_names()
    found = (index for index, item in enumerate(items) if step in item_steps(item, index, names))
    return next(found, _NOWHERE)
