"""Changes of every field of a kind, from the schema of its CRD: valid values, those at the limits, and invalid ones."""

import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

Schema = dict[str, Any]
TEXTS = ("a", "team-a", "1h", "0 2 * * *", "UTC", ">=1.0.0", "key in (a, b)", "10", "", "not valid!\n")
"""For texts without an enum; the API server says which of them a field takes."""


@dataclass(frozen=True, slots=True)
class Change:
    """Another value of one field; None removes it."""

    path: tuple[str, ...]
    value: Any

    def patch(self) -> Any:
        """As a merge patch."""
        patch = self.value
        for name in reversed(self.path):
            patch = {name: patch}
        return patch


def changes_of(schema: Schema, seed: int, *, fixed: tuple[str, ...] = ()) -> list[Change]:
    """All changes of all fields, in an order that the seed decides; fields that are named stay as they are."""
    found = [one for one in _changes(schema, ()) if ".".join(one.path) not in fixed]
    random.Random(f"walk {seed}").shuffle(found)
    return found


def _changes(schema: Schema, path: tuple[str, ...]) -> Iterator[Change]:
    if path:
        yield Change(path, None)
        yield from (Change(path, value) for value in _values(schema))
    for name, inner in schema.get("properties", {}).items():
        yield from _changes(inner, (*path, name))


def _values(schema: Schema) -> Iterator[Any]:
    """The last one is invalid wherever the schema can tell."""
    if "enum" in schema:
        yield from (*schema["enum"], "no-such-value")
        return
    match schema.get("type"):
        case "boolean":
            yield from (True, False, "yes")
        case "integer":
            low, high = schema.get("minimum", 0), schema.get("maximum", 2**31 - 1)
            yield from (low, high, (low + high) // 2, low - 1)
        case "string":
            yield from (*TEXTS, "x" * (schema.get("maxLength", 1000) + 1))
        case "array":
            items = list(_values(schema["items"]))
            yield from ([], items[:1], items[:2], items[:1] * 2, "no list")
        case "object":
            yield from ({}, example_of(schema), "no object")


def example_of(schema: Schema) -> Any:
    """A value with all fields, each of them the first that the schema suggests."""
    if schema.get("type") == "object":
        return {name: example_of(inner) for name, inner in schema.get("properties", {}).items()}
    return next(_values(schema), None)
