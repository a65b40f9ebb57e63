"""Resolves JSON pointers against a live object, and finds the same place in an intent for that object.

A user writes a JSON pointer by what `kubectl get -o yaml` shows, and so counts list items by index, as in
`/spec/ports/1/port`. Server-side apply knows no index in such a list. It identifies an item by its keys
(`[name="dns"]`), the item of a set by its value, and treats other lists and some maps as one value (atomic). The schema
says which of these a list is; we read it off managedFields instead, which record owned fields in exactly these terms.

For example, live has `ports: [{name: web, port: 80}, {name: dns, port: 53}]`, and managedFields own
`f:ports: {k:{"name":"dns"}: {f:port: {}}}`. Then `/spec/ports/1/port` resolves to `.spec.ports[name="dns"].port`. In an
intent with `ports: [{name: dns, port: 9}, {name: web, port: 80}]`, that path is the first item: `edited` changes the
item that has the same key, wherever it is in the list.

A resolution has five outcomes: the path was found (PathFound); the value is inside an atomic list or map (AtomicValue);
nobody is recorded as an owner there, so that it is unknown which of the two it is (NotInManagedFields); a list with
keys has no item at that index (NoSuchItem); or live has no such value (PathNotFound).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from virt_steward.objects.fieldpaths import Field, FieldPath, Indexed, Keyed, Step, item_steps
from virt_steward.objects.ownership import owned_by, owned_by_anyone
from virt_steward.objects.paths import NothingThere, Pointer, get, index_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from virt_steward.objects.fieldsets import FieldSet
    from virt_steward.ssa.locks import Object
    from virt_steward.ssa.managers import FieldManager

GONE: Any = object()
"""Stands for a value that does not exist."""


@dataclass(frozen=True, slots=True)
class PathFound:
    """Live has the value, and it can have an owner of its own."""

    path: FieldPath


@dataclass(frozen=True, slots=True)
class AtomicValue:
    """The value is inside a list or map that has one owner as a whole."""

    path: FieldPath
    """Of the whole."""
    rest: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class NotInManagedFields:
    """Nobody is recorded as the owner of the list or map around the value: whether it is atomic is unknown."""

    path: FieldPath
    rest: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class NoSuchItem:
    """A list whose items are identified by key or value has none at this index."""

    path: FieldPath
    index: int


@dataclass(frozen=True, slots=True)
class PathNotFound:
    """Live has no such value."""

    path: FieldPath
    """As far as live has it."""
    rest: tuple[str, ...]


PathResolution = PathFound | AtomicValue | NotInManagedFields | NoSuchItem | PathNotFound


@dataclass(frozen=True)  # without slots, for cached_property needs a __dict__
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
        """The names of the keys that identify the items of this list."""
        return self.everyone.key_names()

    def step(self, token: str) -> Step | None:
        """Return the step for the token of a pointer; None if live has nothing there."""
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
        """Whether an item of an intent's list is the live item of this step.

        An intent may omit keys that the server sets by default. So `{port: 53}` is the item
        `[port=53,protocol="UDP"]` if no other live item has this port; if several have, it is the one of which we
        have sent just these keys.
        """
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
        return step in (sent or alike)

    def has(self, step: Step, wanted: list[Any]) -> bool:
        """Whether one of the items of an intent's list is the live item of this step."""
        return any(self.is_item(step, item, index) for index, item in enumerate(wanted))

    def items_before(self, step: Step) -> list[Step]:
        """Return the live items before that of this step."""
        index = self._places.get(step, 0)
        return [item for item, at in self._places.items() if at < index]

    def ordered(self, wanted: Any) -> Any:
        """Return an intent's list in the order of the live one, new items last."""
        if not isinstance(wanted, list):
            return wanted
        places = [self._place(item, index) for index, item in enumerate(wanted)]
        return [wanted[index] for index in sorted(range(len(wanted)), key=places.__getitem__)]

    def up_to(self, length: int, wanted: Any) -> Any:
        """Return an intent's list without the new items that would make the live one longer than this."""
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
        """The items of this list, and their index."""
        return {item_steps(item, at, self.names)[0]: at for at, item in enumerate(self.value)}

    def _place(self, item: Any, index: int) -> int:
        """Return the index of an intent's item in the live list; that after its end if it is new."""
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
    """Follow the pointer through the live object, token by token."""
    path: FieldPath = ()
    for at, token in enumerate(pointer.tokens):
        step, rest = view.step(token), pointer.tokens[at + 1 :]
        if step is None and isinstance(view.value, list) and view.everyone and (index := index_of(token)) is not None:
            return NoSuchItem(path, index)
        if step is None:
            return PathNotFound(path, pointer.tokens[at:])
        path, is_owned, view = (*path, step), step in view.everyone.members, view.below(step)
        if rest and isinstance(view.value, dict | list) and view.value and not view.everyone:
            return AtomicValue(path, rest) if is_owned else NotInManagedFields(path, rest)
    return PathFound(path)


def edited(wanted: Any, view: View, path: FieldPath, change: Callable[[Any], Any]) -> Any:
    """Return what is wanted with the value at this path changed, if it has one; GONE if nothing is left.

    What becomes empty is not sent: we would own the empty map, though all of its fields are owned by others.
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
            return GONE  # a scalar would replace the whole live map
        case _, list():
            below = view.below(step)
            items = (
                edited(item, below, rest, change) if view.is_item(step, item, index) else item
                for index, item in enumerate(wanted)
            )
            return [item for item in items if item is not GONE]
    return GONE


def overlaid(wanted: Any, live: Any, tokens: tuple[str, ...]) -> Any:
    """Return what is wanted with the live value at this place; missing items before it are the live ones."""
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

    A list is cut off before the item: the next item would move to its index otherwise.
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
