"""Sets of fields, as managedFields records them for each manager."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import reduce
from operator import or_
from typing import TYPE_CHECKING, Any

from virt_steward.objects.fieldpaths import BadFields, FieldPath, Keyed, Step, decode_step

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

_ITSELF = "."


@dataclass(frozen=True, slots=True)
class FieldSet:
    """A set of paths, as a tree. A path can be a member without the paths below it."""

    members: frozenset[Step] = frozenset()
    children: Mapping[Step, FieldSet] = field(default_factory=dict, hash=False)
    """Contains no empty sets, so that equal sets are equal trees."""

    @classmethod
    def of(cls, *paths: FieldPath) -> FieldSet:
        return cls.union(_only(path) for path in paths)

    @classmethod
    def union(cls, sets: Iterable[FieldSet]) -> FieldSet:
        return reduce(or_, sets, cls())

    def __bool__(self) -> bool:
        return bool(self.members or self.children)

    def __contains__(self, path: FieldPath) -> bool:
        if not path:
            return False
        *parents, last = path
        fields = self
        for step in parents:
            fields = fields.below(step)
        return last in fields.members

    def __iter__(self) -> Iterator[FieldPath]:
        for step in self.members:
            yield (step,)
        for step, fields in self.children.items():
            for path in fields:
                yield (step, *path)

    def __or__(self, other: FieldSet) -> FieldSet:
        children = dict(self.children)
        for step, fields in other.children.items():
            children[step] = self.below(step) | fields
        return FieldSet(self.members | other.members, children)

    def __and__(self, other: FieldSet) -> FieldSet:
        children = {step: fields & other.below(step) for step, fields in self.children.items()}
        return FieldSet(self.members & other.members, _without_empty(children))

    def __sub__(self, other: FieldSet) -> FieldSet:
        children = {step: fields - other.below(step) for step, fields in self.children.items()}
        return FieldSet(self.members - other.members, _without_empty(children))

    def below(self, step: Step) -> FieldSet:
        return self.children.get(step, _NOTHING)

    def key_names(self) -> frozenset[str]:
        """The names of the keys of this associative list; none if it is not one."""
        steps = self.members | self.children.keys()
        return frozenset(name for step in steps if isinstance(step, Keyed) for name, _ in step.keys)


_NOTHING = FieldSet()


def decode(fields: Mapping[str, Any]) -> FieldSet:
    """Read the `fieldsV1` of a managedFields entry."""
    members, children = set(), {}
    for name, below in fields.items():
        if not isinstance(below, dict):
            raise BadFields(f"{name!r} must hold a map, not {below!r}")
        if name == _ITSELF:
            continue
        step = decode_step(name)
        if not below or _ITSELF in below:
            members.add(step)
        if nested := decode(below):
            children[step] = nested
    return FieldSet(frozenset(members), children)


def _only(path: FieldPath) -> FieldSet:
    step, *rest = path
    return FieldSet(children={step: _only(tuple(rest))}) if rest else FieldSet(frozenset((step,)))


def _without_empty(children: Mapping[Step, FieldSet]) -> dict[Step, FieldSet]:
    return {step: fields for step, fields in children.items() if fields}
