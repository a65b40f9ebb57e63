"""Ignored fields (`ignore-fields`): whatever their live value is, our apply neither changes nor removes it.

In a server-side apply there are three ways to leave a value as it is, and which one is right depends on who owns it:

- Another manager owns it, alone or beside us: it is left out of the intent. We give up our share, and it stays.
- We alone own it: the server would delete what we no longer send, so its live value is sent. For example, we own
  `/spec/mode`, live has `Predictive` and the template wants `Automatic`. With the mask `/spec/mode` the intent carries
  `mode: Predictive`. As soon as a person edits the field, that person owns it, and we stop to send it.
- It is inside a list or map that has one owner as a whole, such as `/spec/profiles/0`: there is no way to own a part,
  so the whole is sent as wanted, with the live value in its place.

A pointer counts items by their index in the live list. Server-side apply knows list items by key or value, so a pointer
is first resolved to a path of such steps (`path_resolution.py`), and the list is sent in its live order, for otherwise
the same index would be another item the next time.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import partial, reduce
from typing import TYPE_CHECKING, Any

from virt_steward.controllers.autopilot.overrides.patch import PROTECTED
from virt_steward.controllers.autopilot.overrides.path_resolution import (
    GONE,
    AtomicValue,
    NoSuchItem,
    NotInManagedFields,
    PathFound,
    PathNotFound,
    View,
    cut,
    edited,
    overlaid,
    resolve_path,
)
from virt_steward.objects.fieldpaths import Field, FieldPath, Keyed, Step, Valued, readable
from virt_steward.objects.fieldsets import FieldSet
from virt_steward.objects.ownership import owners
from virt_steward.objects.paths import BadPointer, Pointer
from virt_steward.plans.fields import field_of, pointer_to
from virt_steward.ssa.ownership import carried_within, is_entry_of, owned_alone

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from virt_steward.ssa.locks import Object
    from virt_steward.ssa.managers import FieldManager

MOST_POINTERS = 300
LONGEST_POINTER = 1000
"""Characters. No object is that deep, and messages quote the pointer."""

_IDENTITY = ("name", "namespace")
_INDEX = re.compile(r"\[([0-9]{1,9})\]")


@dataclass(frozen=True, slots=True)
class BadMask:
    """One pointer that is not followed."""

    text: str
    message: str

    def __str__(self) -> str:
        return self.message


@dataclass(frozen=True, slots=True)
class Mask:
    pointers: tuple[Pointer, ...] = ()
    """None of them is inside another one."""
    bad: tuple[BadMask, ...] = ()


NO_MASK = Mask()


@dataclass(frozen=True, slots=True)
class Masked:
    """Derived from the live object, so it is applied under a lock on that."""

    intent: Object
    notes: tuple[str, ...] = ()
    """For each pointer, how its field is kept."""


def parse(text: str) -> Mask:
    """Read pointers that commas separate."""
    good: set[Pointer] = set()
    bad: list[BadMask] = []
    for part in dict.fromkeys(part.strip() for part in text.split(",")):
        if not part:
            continue
        if len(good) + len(bad) == MOST_POINTERS:
            bad.append(BadMask("", f"there are more than {MOST_POINTERS} pointers; the others have no effect"))
            break
        match _pointer(part):
            case BadMask() as problem:
                bad.append(problem)
            case pointer:
                good.add(pointer)
    return Mask(_outermost(good), tuple(bad))


def _pointer(text: str) -> Pointer | BadMask:
    if len(text) > LONGEST_POINTER:
        return BadMask(text, f"{text[:40]!r}… is longer than {LONGEST_POINTER} characters")
    try:
        pointer = _dotted(text) if text.startswith(".") else Pointer.parse(text)
    except BadPointer as error:
        return BadMask(text, str(error))
    if any(pointer.tokens[: len(never.tokens)] == never.tokens for never in PROTECTED):
        return BadMask(text, f"{text!r} is part of the identity or set by the server; it cannot be ignored")
    return pointer


def _dotted(text: str) -> Pointer:
    """Read a path as kubectl and diffs write it, such as `.spec.profiles[0]`. Raises BadPointer."""
    field = _INDEX.sub(r".\1", text).removeprefix(".")
    pointer = pointer_to(field)
    if not field or field_of(pointer) != field:
        raise BadPointer(text, 0, "write the path as /spec/field, or as .spec.field")
    return pointer


def _outermost(pointers: Iterable[Pointer]) -> tuple[Pointer, ...]:
    """Without those inside another one, which come right after that one in their order."""
    kept: list[Pointer] = []
    for pointer in sorted(pointers):
        if not kept or pointer.tokens[: len(kept[-1].tokens)] != kept[-1].tokens:
            kept.append(pointer)
    return tuple(kept)


def masked(intent: Object, live: Object | None, manager: FieldManager, mask: Mask) -> Masked:
    """Return the intent such that its apply leaves the masked values as they are, and later edits of them too.

    Masked fields are left out of the intent; those that the manager alone owns are sent with their live value, for
    the server would delete them otherwise. All other fields are sent exactly as wanted: one that the intent no longer
    has is not sent, so that the server deletes it unless somebody else owns it.
    """
    keeper = _Keeper(live or {}, manager)
    done = reduce(keeper.leave_out, mask.pointers, Masked(intent))
    kept = carried_within(done.intent, live or {}, manager, keeper.to_carry(done.intent, mask))
    kept = reduce(keeper.in_live_order, keeper.lists(mask), kept)
    return replace(done, intent=_identified(kept, intent))


class _Keeper:
    """Applies a mask, pointer by pointer, by what the live object shows of owners."""

    def __init__(self, live: Object, manager: FieldManager) -> None:
        everyone = owners(live)
        self._live = live
        self._view = View.of(live, manager)
        self._alone = owned_alone(live, manager)
        self._others = {owner: fields for owner, fields in everyone.items() if not is_entry_of(owner, manager)}
        versions = {owner.api_version for owner in everyone.keys() - self._others.keys()}
        self._names_differ = bool(versions - {"", live.get("apiVersion")})

    def leave_out(self, done: Masked, pointer: Pointer) -> Masked:
        """Mask one more field."""
        if self._names_differ:
            # What the server would delete is unknown, so too much is sent rather than too little.
            intent = overlaid(done.intent, self._live, _up_to_a_list(self._live, pointer.tokens))
            return _noted(
                done, pointer, intent, "our fields are recorded for another API version: the live value is sent"
            )
        match resolve_path(self._view, pointer):
            case PathFound(path):
                return _noted(done, pointer, self._without(done.intent, path), self._whose(path))
            case AtomicValue(path, rest):
                note = f"{readable(path)} has one owner as a whole: it is sent with the live part in it"
                return _noted(done, pointer, self._with_live_part(done.intent, path, rest), note)
            case NotInManagedFields(path, rest):
                return self._unrecorded(done, pointer, path, rest)
            case NoSuchItem(path, index):
                intent = edited(done.intent, self._view, path, partial(self._at(path).up_to, index))
                return _noted(
                    done, pointer, intent, "the live list has no such item, so no item is sent for that place"
                )
            case PathNotFound(path, rest):
                intent = edited(done.intent, self._view, path, lambda wanted: cut(wanted, rest))
                return _noted(done, pointer, intent, "the live object has no such value, so none is sent")

    def to_carry(self, intent: Object, mask: Mask) -> FieldSet:
        """Return the fields that the server would delete if they were not sent: the masked ones.

        Besides, items of a list before a masked one stay: without them its index would be that of another item. For
        example, with the mask `/spec/ports/1` and the live ports web and dns, to drop web would unmask dns. An item
        that holds a masked field stays, too, by its keys: if only we own the item, the server deletes it together with
        the fields of others in it. And a section of which nothing would be sent stays as it is: an apply without it is
        taken for a mistake.
        """
        found = [resolve_path(self._view, pointer) for pointer in mask.pointers]
        paths = [one.path for one in found if isinstance(one, PathFound | AtomicValue)]
        before = (item for path in paths for item in self._items_before(intent, path))
        keys = (key for path in paths for key in _keys_on(path))
        kept = FieldSet.union(_within(self._alone, path) for path in (*paths, *before, *keys))
        emptied = {one.path[:1] for one in found if one.path and not _has_section(intent, one.path[0])}
        sections = (path for path in emptied if not _reaches(kept, path))
        return FieldSet.union((kept, *(_within(self._alone, path) for path in sections)))

    def _items_before(self, intent: Object, path: FieldPath) -> Iterator[FieldPath]:
        """List the items that the intent lacks, in each list that the path leads through, before the path's own."""
        for depth, step in enumerate(path):
            if isinstance(step, Keyed | Valued):
                view, wanted = self._at(path[:depth]), self._wanted_items(intent, path[:depth])
                yield from ((*path[:depth], item) for item in view.items_before(step) if not view.has(item, wanted))

    def _wanted_items(self, intent: Object, path: FieldPath) -> list[Any]:
        found: list[Any] = []

        def collect(wanted: Any) -> Any:
            found.extend(wanted if isinstance(wanted, list) else ())
            return wanted

        edited(intent, self._view, path, collect)
        return found

    def lists(self, mask: Mask) -> list[FieldPath]:
        """Return the paths of the lists that the mask points into, the outer ones first."""
        paths = [resolve_path(self._view, pointer).path for pointer in mask.pointers]
        return sorted(
            {path[:at] for path in paths for at, step in enumerate(path) if not isinstance(step, Field)}, key=len
        )

    def in_live_order(self, intent: Object, path: FieldPath) -> Object:
        """Send the items of a list in their live order, or the same index would be another item the next time."""
        ordered: Object = edited(intent, self._view, path, self._at(path).ordered)
        return ordered

    def _unrecorded(self, done: Masked, pointer: Pointer, path: FieldPath, rest: tuple[str, ...]) -> Masked:
        nobody = f"nobody is recorded as the owner of {readable(path)}"
        whole = _up_to_a_list(self._at(path).value, rest)
        if whole == rest:
            intent = self._with_live_part(done.intent, path, rest)
            return _noted(done, pointer, intent, f"{nobody}: it is sent with the live part in it")
        intent = edited(done.intent, self._view, path, lambda wanted: cut(wanted, whole) if whole else GONE)
        return _noted(
            done, pointer, intent, f"{nobody}, so it is unknown how its items are identified: the list is not sent"
        )

    def _at(self, path: FieldPath) -> View:
        return reduce(View.below, path, self._view)

    def _without(self, intent: Object, path: FieldPath) -> Object:
        *_, holder, last = (None, *path)
        if isinstance(holder, Keyed) and isinstance(last, Field) and last.name in dict(holder.keys):
            return intent  # a key identifies the item: it cannot differ
        left: Object = edited(intent, self._view, path, lambda _: GONE)
        return left

    def _with_live_part(self, intent: Object, path: FieldPath, rest: tuple[str, ...]) -> Object:
        live = self._at(path).value
        sent: Object = edited(intent, self._view, path, lambda wanted: overlaid(wanted, live, rest))
        return sent

    def _whose(self, path: FieldPath) -> str:
        others = sorted({owner.manager for owner, fields in self._others.items() if _reaches(fields, path)})
        if not _reaches(self._alone, path):
            return f"left to {', '.join(others) or 'its last writer'}"
        return "the live value is sent" + (f", as far as it is not owned by {', '.join(others)}" if others else "")


def _has_section(intent: Object, step: Step) -> bool:
    """Whether the intent has fields in this section; metadata, which identifies the object, is always there."""
    return not isinstance(step, Field) or step.name == "metadata" or bool(intent.get(step.name))


def _noted(done: Masked, pointer: Pointer, intent: Object, note: str) -> Masked:
    return Masked(intent, (*done.notes, f"{pointer}: {note}"))


def _up_to_a_list(value: Any, tokens: tuple[str, ...]) -> tuple[str, ...]:
    """Return the tokens before the first list."""
    for at, token in enumerate(tokens):
        if not isinstance(value, dict):
            return tokens[:at] if isinstance(value, list) else tokens
        value = value.get(token)
    return tokens


def _reaches(fields: FieldSet, path: FieldPath) -> bool:
    """Whether the set has this path, or one below it."""
    holder = reduce(FieldSet.below, path[:-1], fields)
    return path[-1] in holder.members or path[-1] in holder.children


def _keys_on(path: FieldPath) -> Iterator[FieldPath]:
    """List the keys of the list items that the path leads through."""
    for depth, step in enumerate(path[:-1], start=1):
        if isinstance(step, Keyed):
            yield from ((*path[:depth], Field(name)) for name, _ in step.keys)


def _within(fields: FieldSet, path: FieldPath) -> FieldSet:
    """Return the part of the set that is at this path, or below it."""
    step, rest = path[0], path[1:]
    below = _within(fields.below(step), rest) if rest else fields.below(step)
    members = frozenset() if rest else fields.members & {step}
    return FieldSet(members, {step: below} if below else {})


def _identified(intent: Object, original: Object) -> Object:
    """Put back name and namespace, after a mask of all metadata."""
    identity = {name: original["metadata"][name] for name in _IDENTITY if name in original["metadata"]}
    return {**intent, "metadata": {**intent.get("metadata", {}), **identity}}
