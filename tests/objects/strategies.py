"""Objects and sets of their fields, made up by hypothesis."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hypothesis import settings
from hypothesis import strategies as st

from virt_steward.objects.fieldpaths import Field, FieldPath, Valued, keyed, scalar
from virt_steward.objects.fieldsets import FieldSet

if TYPE_CHECKING:
    from collections.abc import Iterator

modest = settings(max_examples=40, deadline=None, database=None)

names = st.sampled_from(("a", "b", "name", "kind", "x.y/z", "~t", "ключ", "0", "-", ""))
scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 3),
    st.sampled_from((2**63 - 1, -(2**63), 0.5, 1e21)),
    st.sampled_from(("", "x", "line\nline\n", " padded \n", "ünï", "0", "true", "•••")),
)


def _containers(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    maps = st.dictionaries(names, inner, max_size=4)
    items = st.tuples(st.sampled_from(("p", "q", "r")), maps).map(lambda pair: {**pair[1], "name": pair[0]})
    return st.one_of(
        maps,
        st.lists(inner, max_size=3),
        st.lists(scalars, max_size=3, unique_by=scalar),
        st.lists(items, max_size=3, unique_by=lambda item: item["name"]),
    )


values = st.recursive(scalars, _containers, max_leaves=12)
maps = st.dictionaries(names, values, max_size=4)
specs = maps.map(
    lambda spec: {"apiVersion": "example.com/v1", "kind": "Gadget", "metadata": {"name": "g"}, "spec": spec}
)


def paths_in(value: Any, at: FieldPath = ()) -> Iterator[FieldPath]:
    """Walk an object as a server would whose schema has lists of named items, sets of scalars, and atomic lists."""
    if at:
        yield at
    match value:
        case dict():
            for name, held in value.items():
                yield from paths_in(held, (*at, Field(name)))
        case [dict(), *_] if _are_named(value):
            for item in value:
                yield from paths_in(item, (*at, keyed(name=item["name"])))
        case list() if _is_set(value):
            for item in value:
                yield (*at, Valued(scalar(item)))


def _are_named(items: list[Any]) -> bool:
    found = [item.get("name") for item in items if isinstance(item, dict)]
    return len(found) == len(items) == len({name for name in found if isinstance(name, str)})


def _is_set(items: list[Any]) -> bool:
    return not any(isinstance(item, dict | list) for item in items) and len({*map(scalar, items)}) == len(items)


@st.composite
def objects_and_fields(draw: st.DrawFn, *, only_leaves: bool = False) -> tuple[dict[str, Any], FieldSet, FieldSet]:
    """An object and two sets of fields that it has."""
    obj = draw(specs)
    paths = [*paths_in(obj)]
    if only_leaves:
        parents = {path[:-1] for path in paths}
        paths = [path for path in paths if path not in parents]
    subsets = st.lists(st.sampled_from(paths), max_size=6)
    return obj, FieldSet.of(*draw(subsets)), FieldSet.of(*draw(subsets))


def is_part(part: Any, whole: Any) -> bool:
    """Tell whether all that is in the part is at the same place in the whole."""
    match part, whole:
        case dict(), dict():
            return all(name in whole and is_part(value, whole[name]) for name, value in part.items())
        case list(), list():
            rest = iter(whole)
            return all(any(is_part(item, candidate) for candidate in rest) for item in part)
        case _:
            return scalar(part) == scalar(whole)
