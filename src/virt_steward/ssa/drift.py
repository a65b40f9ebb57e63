"""Drift: which live values differ from the desired ones, and who set them. For events and plans."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from virt_steward.objects.diff import changes
from virt_steward.objects.fieldpaths import Field, FieldPath, Indexed, item_steps, readable
from virt_steward.objects.fieldsets import FieldSet
from virt_steward.objects.ownership import who_owns
from virt_steward.objects.paths import NothingThere, Pointer, get
from virt_steward.ssa.preview import Changes, Conflicts

if TYPE_CHECKING:
    from virt_steward.objects.fieldpaths import Step
    from virt_steward.ssa.locks import Object
    from virt_steward.ssa.managers import FieldManager
    from virt_steward.ssa.preview import Preview

_NOWHERE = "-"


@dataclass(frozen=True, slots=True)
class FieldDrift:
    """One live value that differs from the desired one."""

    path: str
    by: tuple[str, ...]
    """Other field managers that own it; none if the value was removed or only the intent has changed."""
    is_own: bool = False
    """Whether the manager itself owns the live value."""

    @property
    def is_foreign(self) -> bool:
        """Whether others caused it; otherwise only the intent has changed."""
        return bool(self.by) or not self.is_own

    def __str__(self) -> str:
        return f"{self.path} (set by {', '.join(self.by)})" if self.by else self.path


def drifts(preview: Preview, manager: FieldManager) -> tuple[FieldDrift, ...]:
    """What an apply would correct, in the order of the object."""
    match preview:
        case Changes(live, planned) | Conflicts(live, planned):
            return tuple(_drift(live, change.path, manager) for change in changes(live, planned))
    return ()


def _drift(live: Object, path: FieldPath, manager: FieldManager) -> FieldDrift:
    names = {owner.manager for owner in who_owns(live, _pointer(live, path))}
    return FieldDrift(readable(path), tuple(sorted(names - {manager.name})), manager.name in names)


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
