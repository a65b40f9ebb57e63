"""Paths in the form of managedFields: by field name, keys of a list item, value of a set item, or index."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import msgspec

from virt_steward.objects.canonical import canonical
from virt_steward.objects.quoting import quoted

if TYPE_CHECKING:
    from collections.abc import Iterable

_INT64 = 2.0**63


class BadFields(ValueError):
    """A managedFields entry that does not follow the FieldsV1 format."""


@dataclass(frozen=True, slots=True, order=True)
class Field:
    """A field of a map."""

    name: str

    def __str__(self) -> str:
        return f".{self.name}"


@dataclass(frozen=True, slots=True, order=True)
class Keyed:
    """The item of an associative list that has these keys, sorted by name, each value as JSON."""

    keys: tuple[tuple[str, str], ...]

    def __str__(self) -> str:
        return f"[{','.join(f'{name}={value}' for name, value in self.keys)}]"


@dataclass(frozen=True, slots=True, order=True)
class Valued:
    """The item of a set that has this value, as JSON."""

    value: str

    def __str__(self) -> str:
        return f"[={self.value}]"


@dataclass(frozen=True, slots=True, order=True)
class Indexed:
    """The item of a list at this index."""

    index: int

    def __str__(self) -> str:
        return f"[{self.index}]"


Step = Field | Keyed | Valued | Indexed
FieldPath = tuple[Step, ...]


def readable(path: Iterable[Step]) -> str:
    """Write a path as the API server does in conflicts: `.spec.containers[name="web"].image`."""
    return "".join(map(str, path))


def scalar(value: Any) -> str:
    """Write a key or set item as JSON; 2.0 and 2 are one number, as they are to the API server."""
    if isinstance(value, float) and value.is_integer() and abs(value) < _INT64:
        value = int(value)
    return canonical(value).decode()


def keyed(**keys: Any) -> Keyed:
    return Keyed(tuple(sorted((name, scalar(value)) for name, value in keys.items())))


def decode_step(text: str) -> Step:
    """Read one name of FieldsV1, such as `f:spec` or `k:{"name":"web"}`."""
    prefix, _, rest = text.partition(":")
    try:
        match prefix:
            case "f":
                return Field(rest)
            case "k":
                return keyed(**msgspec.json.decode(rest, type=dict[str, Any]))
            case "v":
                return Valued(scalar(msgspec.json.decode(rest)))
            case "i":
                return Indexed(msgspec.json.decode(rest, type=int))
    except (ValueError, OverflowError, RecursionError) as error:
        raise BadFields(f"{quoted(text)} names no field: {error}") from error
    raise BadFields(f"{quoted(text)} names no field: it must start with f:, k:, v: or i:")


def item_steps(item: Any, index: int, key_names: frozenset[str]) -> tuple[Step, ...]:
    """All steps that can name a list item, given the names of the keys in its list."""
    if isinstance(item, list):
        return (Indexed(index),)
    if not isinstance(item, dict):
        return (Valued(scalar(item)), Indexed(index))
    keys = {name: item[name] for name in key_names if name in item}
    return (keyed(**keys), Indexed(index)) if keys else (Indexed(index),)
