"""The rollback of an executed plan: drafted for review, and written item by item.

A value is restored if it is still as the plan set it and no other manager owns it; what others have changed since stays
as it is, and the plan says so. The fields that we own of a target are released.

What is restored of an object is of one moment (`preimage.py`). The plan says what keeps the object from being as it was
then: changes of others since, changes of others between our plans, and another controller that writes it, too.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from virt_steward.apis.virtplatformconfig import PlanItem
from virt_steward.kube.errors import Conflict, NotFound, NotServed, Refused
from virt_steward.objects.canonical import canonical
from virt_steward.objects.diff import unified
from virt_steward.objects.normalize import sanitized
from virt_steward.objects.ownership import Owner, owned_by, owners, who_owns
from virt_steward.objects.paths import NothingThere, Pointer, get, has, with_value, without
from virt_steward.plans.annotations import APPLIED_HASH, GOVERNED_BY, without_annotations
from virt_steward.plans.draft import LONGEST_MESSAGE, Drafted, DraftRejected, TargetsMoving, fitted
from virt_steward.plans.execute import ATTEMPTS, ItemOutdated, WriteRefused, Written
from virt_steward.plans.fields import only, pointer_to
from virt_steward.plans.fingerprint import fields_hash
from virt_steward.plans.intent import is_of, ref_to
from virt_steward.platform.machineconfigs import MACHINE_CONFIG
from virt_steward.ssa.managers import RELEASE
from virt_steward.ssa.ownership import is_entry_of
from virt_steward.ssa.preview import fetch
from virt_steward.ssa.release import disclaim, release_operations

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from virt_steward.apis.virtplatformconfig import Impact
    from virt_steward.kube.client import Client
    from virt_steward.objects.identity import Ref
    from virt_steward.plans.draft import Draft
    from virt_steward.plans.execute import Result
    from virt_steward.plans.intent import Object
    from virt_steward.plans.owner import PlanOwner
    from virt_steward.plans.preimage import PreImage, TargetPreImage
    from virt_steward.ssa.managers import FieldManager

Operation = dict[str, Any]

GONE = "Already deleted"
FOREIGN = "This version of the profile does not manage it; roll it back manually"
LONGEST_VALUE = 60
"""Characters of a value in a message."""
_STAY = frozenset({("spec",), ("metadata",), ("metadata", "annotations")})
"""Maps that stay even if they become empty."""


@dataclass(frozen=True, slots=True)
class AlreadyGone:
    """The object that we created is deleted."""


async def draft_rollback(
    client: Client, owner: PlanOwner, image: PreImage, targets: Mapping[Ref, Object | None], note: str = ""
) -> Draft:
    """Draft the rollback, last item first; each item is previewed by a dry run. Items that write get the note."""
    items: list[PlanItem] = []
    for kept in reversed(image.items):
        ref = ref_to(kept.target)
        live = targets.get(ref)
        item = drafted(kept, live, owner.manager) if ref in targets else _settled(kept, FOREIGN)
        if item.state == "Pending" and live is not None and not deletes(item):
            try:
                await client.json_patch(ref, operations(item, live, owner.manager), manager=RELEASE.name, dry_run=True)
            except NotServed:
                raise
            except (Conflict, NotFound) as moved:
                return TargetsMoving(f"{ref} changed while the plan was drafted: {moved}")
            except Refused as refusal:
                return DraftRejected(kept.name, str(refusal))
        is_noted = note and item.state == "Pending"
        items.append(replace(item, message=f"{item.message}; {note}"[:LONGEST_MESSAGE]) if is_noted else item)
    return Drafted(tuple(items))


def drafted(kept: TargetPreImage, live: Object | None, manager: FieldManager) -> PlanItem:
    """One item of the rollback. Pure."""
    if live is None:
        return _settled(kept, GONE) if kept.existed else _removed(kept)
    changed = tuple(field for field in kept.fields if _is_of_others(kept, live, field, manager))
    fields = tuple(field for field in kept.fields if field not in changed)
    left = f"; kept as others have changed it since: {', '.join(changed)}" if changed else ""
    left += _not_restored(kept)
    if not kept.existed and not changed and not (others := _others(live, manager)):
        return _deletion(kept, live)
    if not kept.existed:
        why = "the object stays" + (f", since others own fields of it: {', '.join(others)}" if not changed else "")
        rest = f"; the values of the plan stay, too: {', '.join(fields)}; remove those that you do not want"
        return _item(kept, live, (), f"Releases the fields that we own; {why}{left}{rest if fields else ''}")
    mixed = "; check that they fit together: the values have not been in force in this combination" if changed else ""
    item = _item(kept, live, fields, f"Restores the previous values{left}{mixed}")
    is_needed = item.diff or _has_a_part(live, manager)
    return item if is_needed else _settled(kept, f"There is nothing to roll back{left}")


def deletes(item: PlanItem) -> bool:
    """Whether the item removes its target as a whole."""
    return bool(item.planned_hash) and item.planned_hash == fields_hash(None, item.managed_fields)


def is_rolled_back(item: PlanItem, live: Mapping[str, Any] | None, manager: FieldManager) -> bool:
    """Whether the item was already written, by an earlier process."""
    if live is None:
        return deletes(item)
    return (
        not deletes(item)
        and not owned_by(live, manager.name)
        and fields_hash(live, item.managed_fields) == item.planned_hash
    )


async def write_rollback(client: Client, owner: PlanOwner, item: PlanItem) -> Result | AlreadyGone:
    """Write one item of the rollback, only if its target is as it was when the plan was made."""
    owner.reach("undo.before")
    try:
        result = await _written(client, owner, item)
    except NotServed:
        raise
    except Refused as refusal:
        return WriteRefused(str(refusal))
    owner.reach("undo.after")
    return result


def operations(item: PlanItem, live: Object, manager: FieldManager) -> list[Operation]:
    """The JSON patch that sets the item's values and releases what the manager owns, locked to what was read."""
    lock = {"op": "replace", "path": "/metadata/resourceVersion", "value": live["metadata"]["resourceVersion"]}
    given_up = release_operations(live, manager)[1:]  # without its lock, which is the same
    return [lock, *_edits(item, live), *given_up]


async def _written(client: Client, owner: PlanOwner, item: PlanItem) -> Result | AlreadyGone:
    why = ""
    for _ in range(ATTEMPTS):
        live = await fetch(client, ref_to(item.target_ref))
        if live is None:
            return (
                AlreadyGone()
                if deletes(item)
                else ItemOutdated(f"{_named(item)} has been deleted since the plan was made")
            )
        if is_rolled_back(item, live, owner.manager):
            return Written(live)
        if fields_hash(live, item.managed_fields) != item.hash:
            return ItemOutdated(f"{_named(item)} has been changed since the plan was made")
        if others := _in_the_way(item, live, owner.manager):
            return ItemOutdated(f"{_named(item)} has new owners since the plan was made: {', '.join(others)}")
        try:
            return await _sent(client, owner, item, live)
        except Conflict as conflict:
            why = str(conflict)
    return ItemOutdated(f"the target keeps changing: {why}")


async def _sent(client: Client, owner: PlanOwner, item: PlanItem, live: Object) -> Result | AlreadyGone:
    ref, metadata = ref_to(item.target_ref), live["metadata"]
    if deletes(item):
        try:
            await client.delete(ref, uid=metadata["uid"], resource_version=metadata["resourceVersion"])
        except NotFound:
            return AlreadyGone()
        return AlreadyGone()
    written = await client.json_patch(ref, operations(item, live, owner.manager), manager=RELEASE.name)
    owner.reach("undo.written")
    await disclaim(client, written)
    return Written(written)


def _is_of_others(kept: TargetPreImage, live: Object, field: str, manager: FieldManager) -> bool:
    """Whether others have set the value since, even to the same value. What is as it was before needs nothing."""
    if kept.existed and kept.is_as_before(live, field):
        return False
    return not kept.is_as_applied(live, field) or (kept.existed and bool(_owners_of(live, pointer_to(field), manager)))


def _in_the_way(item: PlanItem, live: Object, manager: FieldManager) -> tuple[str, ...]:
    """Other managers that own what the item would remove or change."""
    if deletes(item):
        return _others(live, manager)
    changed = (Pointer.parse(edit["path"]) for edit in _edits(item, live) if not _holds(live, edit))
    return tuple(sorted({name for pointer in changed for name in _owners_of(live, pointer, manager)}))


def _holds(live: Object, edit: Operation) -> bool:
    pointer = Pointer.parse(edit["path"])
    return "value" in edit and has(live, pointer) and bool(get(live, pointer) == edit["value"])


def _has_a_part(live: Object, manager: FieldManager) -> bool:
    annotations = (live["metadata"].get("annotations") or {}).keys() & {GOVERNED_BY, APPLIED_HASH}
    return bool(annotations) or bool(owned_by(live, manager.name))


def _owners_of(live: Object, pointer: Pointer, manager: FieldManager) -> tuple[str, ...]:
    return tuple(owner.manager for owner in who_owns(live, pointer) if _is_another(owner, manager))


def _others(live: Object, manager: FieldManager) -> tuple[str, ...]:
    """All other managers that own fields of the object, except for its status."""
    found = (owner for owner, fields in owners(live).items() if fields and _is_another(owner, manager))
    return tuple(sorted({owner.manager for owner in found}))


def _is_another(owner: Owner, manager: FieldManager) -> bool:
    return not owner.subresource and owner.manager != RELEASE.name and not is_entry_of(owner, manager)


def _not_restored(kept: TargetPreImage) -> str:
    if not kept.replaced:
        return ""
    was = ", ".join(f"{field} (was {_short(value)})" for field, value in kept.replaced.items())
    return f"; not restored, as others set it between two plans: {was}"


def _short(value: Any) -> str:
    text = canonical(value).decode()
    return text if len(text) <= LONGEST_VALUE else f"{text[:LONGEST_VALUE]}…"


def _settled(kept: TargetPreImage, message: str) -> PlanItem:
    return PlanItem(kept.name, kept.target, "Low", state="Completed", message=message)


def _removed(kept: TargetPreImage) -> PlanItem:
    """It was created by us and is deleted; nodes may still have to reboot without it."""
    absent = fields_hash(None, kept.fields)
    target = {"apiVersion": kept.target.api_version, "kind": kept.target.kind, "metadata": {"name": kept.target.name}}
    return PlanItem(
        kept.name,
        kept.target,
        "Low",
        state="Completed",
        message=GONE,
        desired_state=_identity(kept, target),
        managed_fields=kept.fields,
        hash=absent,
        planned_hash=absent,
    )


def _deletion(kept: TargetPreImage, live: Object) -> PlanItem:
    shown = only(sanitized(live), [pointer_to(field) for field in kept.fields])
    return PlanItem(
        kept.name,
        kept.target,
        _impact(kept),
        message="Deletes the object that the plan created",
        diff=fitted(unified(without_annotations(shown), None)),
        desired_state=_identity(kept, live),
        managed_fields=kept.fields,
        hash=fields_hash(live, kept.fields),
        planned_hash=fields_hash(None, kept.fields),
    )


def _item(kept: TargetPreImage, live: Object, fields: tuple[str, ...], message: str) -> PlanItem:
    desired = _identity(kept, live)
    for field in fields:
        pointer = pointer_to(field)
        if field in kept.before:
            desired = with_value(desired, pointer, kept.before[field])
        elif has(desired, pointer):  # a label of ours
            desired = without(desired, pointer)
    item = PlanItem(
        kept.name,
        kept.target,
        _impact(kept) if fields else "Low",
        message=message[:LONGEST_MESSAGE],
        desired_state=desired,
        managed_fields=fields,
        hash=fields_hash(live, fields),
    )
    after = _after(item, live)
    pointers = [pointer_to(field) for field in fields]
    before, planned = (without_annotations(only(sanitized(obj), pointers)) for obj in (live, after))
    return _complete(item, fitted(unified(before, planned)), fields_hash(after, fields))


def _complete(item: PlanItem, diff: str, planned_hash: str) -> PlanItem:
    return PlanItem(
        item.name,
        item.target_ref,
        item.impact_severity,
        message=item.message,
        diff=diff,
        desired_state=item.desired_state,
        managed_fields=item.managed_fields,
        hash=item.hash,
        planned_hash=planned_hash,
    )


def _identity(kept: TargetPreImage, live: Object) -> Object:
    metadata = {name: live["metadata"][name] for name in ("name", "namespace") if name in live["metadata"]}
    labels = {"labels": kept.labels} if kept.labels else {}
    return {"apiVersion": live["apiVersion"], "kind": live["kind"], "metadata": {**metadata, **labels}}


def _edits(item: PlanItem, live: Object) -> Iterator[Operation]:
    """Set what was set before, remove what was not, and with it the maps that become empty."""
    rest = live
    for field in item.managed_fields:
        pointer = pointer_to(field)
        if has(item.desired_state, pointer):
            value = get(item.desired_state, pointer)
            yield {"op": "add", "path": str(pointer), "value": value}
            rest = with_value(rest, pointer, value)
        elif has(rest, pointer):
            for gone in _emptied(rest, pointer):
                yield {"op": "remove", "path": str(gone)}
                rest = without(rest, gone)
    for mark in (GOVERNED_BY, APPLIED_HASH):
        pointer = Pointer(("metadata", "annotations", mark))
        if has(rest, pointer):
            yield {"op": "remove", "path": str(pointer)}
            rest = without(rest, pointer)


def _emptied(obj: Object, pointer: Pointer) -> Iterable[Pointer]:
    """The value, or the outermost map that would be empty without it."""
    outermost = pointer
    while len(outermost.tokens) > 1:
        parent = Pointer(outermost.tokens[:-1])
        if parent.tokens in _STAY or len(get(obj, parent)) > 1:
            break
        outermost = parent
    return (outermost,)


def _after(item: PlanItem, live: Object) -> Object:
    """The object as the edits leave it."""
    result = live
    for edit in _edits(item, live):
        pointer = Pointer.parse(edit["path"])
        try:
            result = with_value(result, pointer, edit["value"]) if "value" in edit else without(result, pointer)
        except NothingThere:
            continue
    return result


def _impact(kept: TargetPreImage) -> Impact:
    return "High" if is_of(kept.target, MACHINE_CONFIG) else "Medium"


def _named(item: PlanItem) -> str:
    return f"{item.target_ref.kind} {item.target_ref.name}"
