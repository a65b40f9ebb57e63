"""How a pointer leads through a live object, and where the same place is in an intent for it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from virt_steward.objects.fieldpaths import Field, FieldPath, Indexed, Keyed, Step, item_steps
from virt_steward.objects.ownership import owned_by, owned_by_anyone
from virt_steward.objects.paths import NothingThere, Pointer, get

if TYPE_CHECKING:
    from collections.abc import Callable

    from virt_steward.objects.fieldsets import FieldSet
    from virt_steward.ssa.locks import Object
    from virt_steward.ssa.managers import FieldManager

GONE: Any = object()
"""In place of a value: there is none."""


@dataclass(frozen=True, slots=True)
class PathFound:
    """Live has the value, as a part of its own."""

    path: FieldPath


@dataclass(frozen=True, slots=True)
class AtomicValue:
    """The value is inside a list or map that has one owner as a whole."""

    path: FieldPath
    """Of the whole."""
    rest: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class NotInManagedFields:
    """The value is inside a list or map of which nobody is recorded as owner: whether it has parts is unknown."""

    path: FieldPath
    rest: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class NoSuchItem:
    """A list whose items go by key or value has none at this index."""

    path: FieldPath
    index: int


@dataclass(frozen=True, slots=True)
class PathNotFound:
    """Live has no such value."""

    path: FieldPath
    """As far as live goes."""
    rest: tuple[str, ...]


PathResolution = PathFound | AtomicValue | NotInManagedFields | NoSuchItem | PathNotFound


@dataclass(frozen=True)  # without slots, so that what is looked up often can be kept
class View:
    """A live value, and who owns which parts of it."""

    value: Any
    ours: FieldSet
    everyone: FieldSet

    @classmethod
    def of(cls, live: Object, manager: FieldManager) -> View:
        return cls(live, owned_by(live, manager.name, subresource=manager.subresource), owned_by_anyone(live))

    @cached_property
    def names(self) -> frozenset[str]:
        """The keys that the items of this list go by."""
        return self.everyone.key_names()

    def step(self, token: str) -> Step | None:
        """Return what the token of a pointer stands for here; None if there is nothing."""
        try:
            held = get(self.value, Pointer((token,)))
        except NothingThere:
            return None
        if isinstance(self.value, dict):
            return Field(token)
        steps = item_steps(held, int(token), self.names)
        return next(
            (step for step in steps if step in self.everyone.members or step in self.everyone.children), steps[0]
        )

    def below(self, step: Step) -> View:
        if step not in self._below:
            self._below[step] = View(self._held(step), self.ours.below(step), self.everyone.below(step))
        return self._below[step]

    def is_item(self, step: Step, item: Any, index: int) -> bool:
        """Tell whether an item of an intent's list becomes the live one that the step leads to."""
        spelled = item_steps(item, index, self.names)
        if step in spelled:
            return True
        if not isinstance(step, Keyed) or not isinstance(spelled[0], Keyed):
            return False
        keys = {*spelled[0].keys}
        if not keys <= {*step.keys}:
            return False
        alike = [known for known in self._places if isinstance(known, Keyed) and keys <= {*known.keys}]
        sent = [known for known in alike if keys == {*self._sent(known)}]
        return step in (sent or alike)  # an intent may leave keys to the server's defaults

    def ordered(self, wanted: Any) -> Any:
        """Return an intent's list in the order of the live one, what is new last."""
        if not isinstance(wanted, list):
            return wanted
        places = [self._place(item, index) for index, item in enumerate(wanted)]
        return [wanted[index] for index in sorted(range(len(wanted)), key=places.__getitem__)]

    def up_to(self, length: int, wanted: Any) -> Any:
        """Return an intent's list with only so many new items as leave the live one no longer than this."""
        if not isinstance(wanted, list):
            return wanted
        new = [index for index, item in enumerate(wanted) if self._place(item, index) == len(self.value)]
        too_many = {*new[max(0, length - len(self.value)) :]}
        return [item for index, item in enumerate(wanted) if index not in too_many]

    @cached_property
    def _below(self) -> dict[Step, View]:
        return {}

    @cached_property
    def _places(self) -> dict[Step, int]:
        """The items of this list, and where they stand."""
        return {item_steps(item, at, self.names)[0]: at for at, item in enumerate(self.value)}

    def _place(self, item: Any, index: int) -> int:
        """Return where an item of an intent's list stands in the live one; beyond its end if it is new."""
        spelled = item_steps(item, index, self.names)[0]
        if spelled in self._places:
            return self._places[spelled]
        return next((at for step, at in self._places.items() if self.is_item(step, item, index)), len(self.value))

    def _held(self, step: Step) -> Any:
        match step:
            case Field(name):
                return self.value[name]
            case Indexed(index):
                return self.value[index]
        return self.value[self._places[step]]

    def _sent(self, step: Keyed) -> tuple[tuple[str, str], ...]:
        return tuple(key for key in step.keys if Field(key[0]) in self.ours.below(step).members)


def resolve_path(view: View, pointer: Pointer) -> PathResolution:
    path: FieldPath = ()
    for at, token in enumerate(pointer.tokens):
        step, rest = view.step(token), pointer.tokens[at + 1 :]
        if step is None and isinstance(view.value, list) and view.everyone and token.isdecimal():
            return NoSuchItem(path, int(token))
        if step is None:
            return PathNotFound(path, pointer.tokens[at:])
        path, is_owned, view = (*path, step), step in view.everyone.members, view.below(step)
        if rest and isinstance(view.value, dict | list) and view.value and not view.everyone:
            return AtomicValue(path, rest) if is_owned else NotInManagedFields(path, rest)
    return PathFound(path)


def edited(wanted: Any, view: View, path: FieldPath, change: Callable[[Any], Any]) -> Any:
    """Return what is wanted with the value at this path changed, if it has one; GONE if nothing is left.

    What becomes empty is not sent: an empty map would be ours, though all in it is of others.
    """
    result = _edited(wanted, view, path, change)
    return GONE if result in ({}, []) and wanted not in ({}, []) else result


def _edited(wanted: Any, view: View, path: FieldPath, change: Callable[[Any], Any]) -> Any:
    if not path:
        return change(wanted)
    step, rest = path[0], path[1:]
    match step, wanted:
        case Field(name), dict():
            if name not in wanted:
                return wanted
            return _with(wanted, name, edited(wanted[name], view.below(step), rest, change))
        case Field(), _:
            return GONE  # a value without parts would take the place of all that is there
        case _, list():
            below = view.below(step)
            items = (
                edited(item, below, rest, change) if view.is_item(step, item, index) else item
                for index, item in enumerate(wanted)
            )
            return [item for item in items if item is not GONE]
    return GONE


def overlaid(wanted: Any, live: Any, tokens: tuple[str, ...]) -> Any:
    """Return what is wanted with the live value at this place; items that are missing before it are the live ones."""
    if not tokens:
        return live
    token, rest = tokens[0], tokens[1:]
    try:
        held = get(live, Pointer((token,)))
    except NothingThere:
        return cut(wanted, tokens)
    if isinstance(live, dict):
        fields = wanted if isinstance(wanted, dict) else {}
        return _with(fields, token, overlaid(fields.get(token, GONE), held, rest))
    index = int(token)
    items = wanted if isinstance(wanted, list) else []
    items = [*items, *live[len(items) : index + 1]]
    items[index] = overlaid(items[index], held, rest)
    return items


def cut(wanted: Any, tokens: tuple[str, ...]) -> Any:
    """Return what is wanted without the value at this place, and without what this leaves empty below.

    A list ends before the item that holds it: a next one would take its place, and without a key it would be none.
    """
    token, rest = tokens[0], tokens[1:]
    try:
        held = get(wanted, Pointer((token,)))
    except NothingThere:
        return wanted
    if isinstance(wanted, list):
        return wanted[: int(token)]
    left = cut(held, rest) if rest else GONE
    return _with(wanted, token, GONE if left in ({}, []) and left != held else left)


def _with(fields: dict[str, Any], name: str, value: Any) -> dict[str, Any]:
    if value is not GONE:
        return {**fields, name: value}
    return {other: held for other, held in fields.items() if other != name}
