"""Ownership of fields under server-side apply: how to stop managing a field without deleting its value. Pure.

An apply is the complete intent of its field manager. The server compares it with what this manager applied before, and
deletes each field that is missing now and that no other manager owns. So an intent cannot simply drop a field: that
would delete the value, although we only want to stop managing it.

Example. Version 1 of an asset sets `spec.replicas: 3` and `spec.image: a`; our manager owns both fields. Version 2 sets
only `spec.image: b`. Applied as it is, the server deletes `spec.replicas`. Therefore `carried` adds the fields that we
own *alone* and that the new intent lacks, with their live values: `{image: b, replicas: 3}` is sent, and `replicas`
stays at 3. When another manager, such as an autoscaler, also owns `spec.replicas`, we no longer own it alone. The next
apply leaves it out, and the server keeps the value, because it still has an owner.

Three details make this harder than a merge of two dicts:

- An atomic list or map has one owner as a whole: the wanted value or the live one is taken, never a mixture.
- The items of an associative list are matched by their keys, such as `name`, as the server does. An item that is only
  live stays behind its present neighbour, so that the order of the list does not change.
- Keys that the server set by default, such as `protocol` of a port, are not ours, so they are not sent.
"""

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
    """Whether an entry of managedFields is that of the manager's applies."""
    return (owner.manager, owner.operation, owner.subresource) == (manager.name, APPLY, manager.subresource)


def owned_alone(live: Object, manager: FieldManager) -> FieldSet:
    """The fields that no other manager owns: the server deletes them when the manager leaves them out."""
    others = (fields for owner, fields in owners(live).items() if not is_entry_of(owner, manager))
    return owned_by(live, manager.name, subresource=manager.subresource) - FieldSet.union(others)


def carried(intent: Object, live: Object, manager: FieldManager) -> Object:
    """The intent, with the live values of fields that it lacks and that only this manager owns."""
    return carried_within(intent, live, manager, owned_alone(live, manager))


def carried_within(intent: Object, live: Object, manager: FieldManager, fields: FieldSet) -> Object:
    """The intent, with the live values of these fields, which only this manager owns.

    The result depends on the live object, so it must be applied under a lock on that.
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
    if not everyone.below(step):  # atomic: one of the two as a whole
        return wanted.get(name, kept)
    nothing = type(kept)() if isinstance(kept, dict | list) else kept
    return _completed(wanted.get(name, nothing), kept, ours.below(step), everyone.below(step))


def _completed_list(wanted: list[Any], kept: list[Any], ours: FieldSet, everyone: FieldSet) -> list[Any]:
    """The wanted items, completed, and each other item behind its present predecessor."""
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
    """The item without the keys that the server set by default, such as a port's protocol: we did not send them."""
    if not isinstance(step, Keyed):
        return item
    defaulted = {name for name, _ in step.keys if Field(name) not in ours.below(step).members}
    if len(defaulted) == len(step.keys):
        return item
    return {name: value for name, value in item.items() if name not in defaulted}
