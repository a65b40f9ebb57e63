"""Words to write small schemas with, so that a definition reads like the object that it describes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

Schema = dict[str, Any]


def record(*required: str, **fields: Schema) -> Schema:
    """An object with these fields, some of which are required; all others are dropped."""
    schema: Schema = {"type": "object", "properties": fields}
    return schema | ({"required": list(required)} if required else {})


def text(*choices: str, default: str | None = None, pattern: str = "") -> Schema:
    schema: Schema = {"type": "string"}
    if choices:
        schema["enum"] = list(choices)
    if pattern:
        schema["pattern"] = pattern
    return schema | _defaulted(default)


def moment() -> Schema:
    return {"type": "string", "format": "date-time"}


def number(*, default: int | None = None, least: int | None = None, most: int | None = None) -> Schema:
    bounds = {"minimum": least, "maximum": most}
    return {"type": "integer", **{name: value for name, value in bounds.items() if value is not None}} | _defaulted(
        default
    )


def flag(*, default: bool | None = None) -> Schema:
    return {"type": "boolean"} | _defaulted(default)


def number_or_text() -> Schema:
    return {"anyOf": [{"type": "integer"}, {"type": "string"}], "x-kubernetes-int-or-string": True}


def anything() -> Schema:
    """An object whose fields nobody checks."""
    return {"type": "object", "x-kubernetes-preserve-unknown-fields": True}


def mapping(value: Schema) -> Schema:
    """An object whose keys are data."""
    return {"type": "object", "additionalProperties": value}


def listed(item: Schema) -> Schema:
    """A list of which the schema does not say how it is merged, so that it has one owner."""
    return {"type": "array", "items": item}


def undivided(item: Schema) -> Schema:
    """A list that says that it has one owner."""
    return {"type": "array", "items": item, "x-kubernetes-list-type": "atomic"}


def keyed(item: Schema, *keys: str) -> Schema:
    """A list in which each item has its own owners and is known by its keys."""
    how = {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": list(keys)}
    return {"type": "array", "items": item, **how}


def checked(schema: Schema, rules: Mapping[str, str]) -> Schema:
    """The same with CEL expressions and their messages."""
    said = [{"rule": rule, "message": message} for rule, message in rules.items()]
    return schema | {"x-kubernetes-validations": said}


def defaulted(schema: Schema, default: Any) -> Schema:
    return schema | {"default": default}


def selector() -> Schema:
    """A label selector, which has one owner."""
    requirement = record(
        "key", "operator", key=text(), operator=text("In", "NotIn", "Exists", "DoesNotExist"), values=undivided(text())
    )
    fields = record(matchLabels=mapping(text()), matchExpressions=undivided(requirement))
    return fields | {"x-kubernetes-map-type": "atomic"}


def reference(*fields: str) -> Schema:
    """The name of another object, which has one owner."""
    return record(**{name: text() for name in fields}) | {"x-kubernetes-map-type": "atomic"}


def condition() -> Schema:
    return record(
        "type",
        "status",
        type=text(),
        status=text(),
        reason=text(),
        message=text(),
        lastTransitionTime=moment(),
        observedGeneration=number(),
    )


def _defaulted(default: Any) -> Schema:
    return {} if default is None else {"default": default}
