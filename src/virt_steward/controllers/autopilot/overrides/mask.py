"""Fields that a person keeps for themselves: whatever their live value is, it neither changes nor vanishes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial, reduce
from typing import TYPE_CHECKING, Any

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
from virt_steward.controllers.autopilot.overrides.protected import PROTECTED
from virt_steward.objects.fieldpaths import Field, FieldPath, Keyed, readable
from virt_steward.objects.fieldsets import FieldSet
from virt_steward.objects.ownership import owners
from virt_steward.objects.paths import BadPointer, Pointer
from virt_steward.ssa.ownership import carried_within, is_entry_of, owned_alone

if TYPE_CHECKING:
    from virt_steward.ssa.locks import Object
    from virt_steward.ssa.managers import FieldManager

MOST_POINTERS = 300
LONGEST_POINTER = 1000
"""Characters. Objects are not that deep, and messages quote it."""

_IDENTITY = ("name", "namespace")


@dataclass(frozen=True, slots=True)
class BadMask:
    """One pointer that does not count."""

    text: str
    why: str

    def __str__(self) -> str:
        return self.why


@dataclass(frozen=True, slots=True)
class Mask:
    pointers: tuple[Pointer, ...] = ()
    """None of them leads to what another one covers."""
    bad: tuple[BadMask, ...] = ()


NO_MASK = Mask()


@dataclass(frozen=True, slots=True)
class Masked:
    """Derived from the live object, so it is applied under a lock on that."""

    intent: Object
    notes: tuple[str, ...] = ()
    """For each pointer, what becomes of its field."""


def parse(text: str) -> Mask:
    """Read pointers that commas separate."""
    good: set[Pointer] = set()
    bad: list[BadMask] = []
    for part in dict.fromkeys(part.strip() for part in text.split(",")):
        if not part:
            continue
        if len(good) + len(bad) == MOST_POINTERS:
            bad.append(BadMask("", f"there are more than {MOST_POINTERS} pointers: those after do not count"))
            break
        match _pointer(part):
            case BadMask() as why:
                bad.append(why)
            case pointer:
                good.add(pointer)
    covering = (
        pointer for pointer in good if not any(Pointer(resolve_path) in good for resolve_path in _towards(pointer))
    )
    return Mask(tuple(sorted(covering)), tuple(bad))


def _pointer(text: str) -> Pointer | BadMask:
    if len(text) > LONGEST_POINTER:
        return BadMask(text, f"{text[:40]!r}… is longer than {LONGEST_POINTER} characters")
    try:
        pointer = Pointer.parse(text)
    except BadPointer as error:
        return BadMask(text, str(error))
    if any(pointer.tokens[: len(never.tokens)] == never.tokens for never in PROTECTED):
        return BadMask(text, f"{text!r} is never set by the autopilot, or says which object it is")
    return pointer


def _towards(pointer: Pointer) -> list[tuple[str, ...]]:
    return [pointer.tokens[:length] for length in range(1, len(pointer.tokens))]


def masked(intent: Object, live: Object | None, manager: FieldManager, mask: Mask) -> Masked:
    """Return the intent such that its apply leaves the masked values as they are, and later edits of them too.

    Masked fields are left out of the intent; those that the manager alone owns are sent with their live value, for
    the server would delete them otherwise. All other fields are sent exactly as wanted: one that the intent no longer
    has is not sent, so that the server deletes it unless somebody else owns it.
    """
    keeper = _Keeper(live or {}, manager)
    done = reduce(keeper.leave_out, mask.pointers, Masked(intent))
    kept = carried_within(done.intent, live or {}, manager, keeper.owned_alone(mask))
    kept = reduce(keeper.in_live_order, keeper.lists(mask), kept)
    return replace(done, intent=_identified(kept, intent))


class _Keeper:
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
            # Too much rather than too little, while it cannot be told what the server would delete.
            intent = overlaid(done.intent, self._live, _up_to_a_list(self._live, pointer.tokens))
            return _noted(done, pointer, intent, "what we own is recorded for another version: the live value is sent")
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
                    done, pointer, intent, "the live list has no such item, so none is sent that would stand there"
                )
            case PathNotFound(path, rest):
                intent = edited(done.intent, self._view, path, lambda wanted: cut(wanted, rest))
                return _noted(done, pointer, intent, "the live object has no such value, so none is sent")

    def owned_alone(self, mask: Mask) -> FieldSet:
        """Return the masked fields that the server would delete if they were not sent."""
        found = (resolve_path(self._view, pointer) for pointer in mask.pointers)
        return FieldSet.union(
            _within(self._alone, one.path) for one in found if isinstance(one, PathFound | AtomicValue)
        )

    def lists(self, mask: Mask) -> list[FieldPath]:
        """Return the lists that the mask leads into, whose items do not go by index."""
        paths = [resolve_path(self._view, pointer).path for pointer in mask.pointers]
        return sorted(
            {path[:at] for path in paths for at, step in enumerate(path) if not isinstance(step, Field)}, key=len
        )

    def in_live_order(self, intent: Object, path: FieldPath) -> Object:
        """Send the items of a list as they stand, or the next index would be that of another item."""
        ordered: Object = edited(intent, self._view, path, self._at(path).ordered)
        return ordered

    def _unrecorded(self, done: Masked, pointer: Pointer, path: FieldPath, rest: tuple[str, ...]) -> Masked:
        nobody = f"nobody is recorded as the owner of {readable(path)}"
        whole = _up_to_a_list(self._at(path).value, rest)
        if whole == rest:
            intent = self._with_live_part(done.intent, path, rest)
            return _noted(done, pointer, intent, f"{nobody}: it is sent with the live part in it")
        intent = edited(done.intent, self._view, path, lambda wanted: cut(wanted, whole) if whole else GONE)
        return _noted(done, pointer, intent, f"{nobody}, so it is unknown what items go by: the list is left out")

    def _at(self, path: FieldPath) -> View:
        return reduce(View.below, path, self._view)

    def _without(self, intent: Object, path: FieldPath) -> Object:
        *_, holder, last = (None, *path)
        if isinstance(holder, Keyed) and isinstance(last, Field) and last.name in dict(holder.keys):
            return intent  # a key is what the item goes by: it cannot differ
        left: Object = edited(intent, self._view, path, lambda _: GONE)
        return left

    def _with_live_part(self, intent: Object, path: FieldPath, rest: tuple[str, ...]) -> Object:
        live = self._at(path).value
        sent: Object = edited(intent, self._view, path, lambda wanted: overlaid(wanted, live, rest))
        return sent

    def _whose(self, path: FieldPath) -> str:
        others = sorted({owner.manager for owner, fields in self._others.items() if _reaches(fields, path)})
        if not _reaches(self._alone, path):
            return f"left to {', '.join(others) or 'whoever set it'}"
        return "the live value is sent" + (f", as far as it is not owned by {', '.join(others)}" if others else "")


def _noted(done: Masked, pointer: Pointer, intent: Object, note: str) -> Masked:
    return Masked(intent, (*done.notes, f"{pointer}: {note}"))


def _up_to_a_list(value: Any, tokens: tuple[str, ...]) -> tuple[str, ...]:
    """Return as much of the way as leads into no list."""
    for at, token in enumerate(tokens):
        if not isinstance(value, dict):
            return tokens[:at] if isinstance(value, list) else tokens
        value = value.get(token)
    return tokens


def _reaches(fields: FieldSet, path: FieldPath) -> bool:
    """Tell whether the set has this path, or one below it."""
    holder = reduce(FieldSet.below, path[:-1], fields)
    return path[-1] in holder.members or path[-1] in holder.children


def _within(fields: FieldSet, path: FieldPath) -> FieldSet:
    """Return the part of the set that is at this path, or below it."""
    step, rest = path[0], path[1:]
    below = _within(fields.below(step), rest) if rest else fields.below(step)
    members = frozenset() if rest else fields.members & {step}
    return FieldSet(members, {step: below} if below else {})


def _identified(intent: Object, original: Object) -> Object:
    """Put back what says which object it is, after a mask of all metadata."""
    identity = {name: original["metadata"][name] for name in _IDENTITY if name in original["metadata"]}
    return {**intent, "metadata": {**intent.get("metadata", {}), **identity}}
