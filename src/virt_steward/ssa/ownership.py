"""Giving fields up without deleting their values: they are carried along until somebody else owns them. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from virt_steward.objects.extract import extract
from virt_steward.objects.fieldpaths import Field, Keyed, Step, item_steps
from virt_steward.objects.fieldsets import FieldSet
from virt_steward.objects.ownership import APPLY, Owner, owned_by, owned_by_anyone, owners

if TYPE_CHECKING:
    from virt_steward.ssa.locks import Object
    from virt_steward.ssa.managers import FieldManager


def is_entry_of(owner: Owner, manager: FieldManager) -> bool:
    return (owner.manager, owner.operation, owner.subresource) == (manager.name, APPLY, manager.subresource)


def owned_alone(live: Object, manager: FieldManager) -> FieldSet:
    """Return the fields that nobody else owns: those which the server deletes when the manager leaves them out."""
    others = (fields for owner, fields in owners(live).items() if not is_entry_of(owner, manager))
    return owned_by(live, manager.name, subresource=manager.subresource) - FieldSet.union(others)


def carried(intent: Object, live: Object, manager: FieldManager) -> Object:
    """Complete the intent by the live values of fields that fell away from it and that nobody else owns yet."""
    return carried_within(intent, live, manager, owned_alone(live, manager))


def carried_within(intent: Object, live: Object, manager: FieldManager, fields: FieldSet) -> Object:
    """Complete the intent by the live values of these fields, which the manager alone owns.

    The result is derived from live content, so it is applied under a lock on that.
    """
    kept = extract(live, fields)
    ours = owned_by(live, manager.name, subresource=manager.subresource)
    completed: Object = _completed(intent, kept, ours, owned_by_anyone(live))
    return completed


def _completed(wanted: Any, kept: Any, ours: FieldSet, everyone: FieldSet) -> Any:
    match wanted, kept:
        case dict(), dict():
            return {**wanted, **{name: _chosen(wanted, name, kept[name], ours, everyone) for name in kept}}
        case list(), list():
            return _completed_list(wanted, kept, ours, everyone)
    return wanted


def _chosen(wanted: Object, name: str, kept: Any, ours: FieldSet, everyone: FieldSet) -> Any:
    step = Field(name)
    if not everyone.below(step):  # undivided: one of the two, whole
        return wanted.get(name, kept)
    nothing = type(kept)() if isinstance(kept, dict | list) else kept
    return _completed(wanted.get(name, nothing), kept, ours.below(step), everyone.below(step))


def _completed_list(wanted: list[Any], kept: list[Any], ours: FieldSet, everyone: FieldSet) -> list[Any]:
    """Complete the wanted items, and put each of the others behind the one that it follows now."""
    names = everyone.key_names()
    completed = {item_steps(item, index, names)[0]: item for index, item in enumerate(wanted)}
    order = [*completed]
    place = 0
    for index, item in enumerate(kept):
        step = item_steps(item, index, names)[0]
        sent = _as_sent(item, step, ours)
        spelled = item_steps(sent, index, names)[0]
        if spelled in completed:
            completed[spelled] = _completed(completed[spelled], sent, ours.below(step), everyone.below(step))
            place = order.index(spelled) + 1
        else:
            completed[spelled] = sent
            order.insert(place, spelled)
            place += 1
    return [completed[step] for step in order]


def _as_sent(item: Any, step: Step, ours: FieldSet) -> Any:
    """Leave out the keys that the server has set by default, such as a port's protocol, for we did not send them."""
    if not isinstance(step, Keyed):
        return item
    defaulted = {name for name, _ in step.keys if Field(name) not in ours.below(step).members}
    if len(defaulted) == len(step.keys):
        return item
    return {name: value for name, value in item.items() if name not in defaulted}
