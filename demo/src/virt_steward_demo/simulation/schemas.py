"""Functions that build OpenAPI schemas, so that the definition of a kind reads like the object that it describes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

Schema = dict[str, Any]


def record(*required: str, **fields: Schema) -> Schema:
    """An object with these fields, some of them required; the server drops unknown fields."""
    schema: Schema = {"type": "object"}
    return schema | ({"properties": fields} if fields else {}) | ({"required": list(required)} if required else {})


def string(*choices: str, default: str | None = None, pattern: str = "") -> Schema:
    schema: Schema = {"type": "string"}
    if choices:
        schema["enum"] = list(choices)
    if pattern:
        schema["pattern"] = pattern
    return schema | _default(default)


def timestamp() -> Schema:
    return {"type": "string", "format": "date-time"}


def integer(*, default: int | None = None, least: int | None = None, most: int | None = None) -> Schema:
    bounds = {"minimum": least, "maximum": most}
    return {"type": "integer", **{name: value for name, value in bounds.items() if value is not None}} | _default(
        default
    )


def boolean(*, default: bool | None = None) -> Schema:
    return {"type": "boolean"} | _default(default)


def int_or_string() -> Schema:
    return {"anyOf": [{"type": "integer"}, {"type": "string"}], "x-kubernetes-int-or-string": True}


def untyped() -> Schema:
    """An object with any fields (x-kubernetes-preserve-unknown-fields)."""
    return {"type": "object", "x-kubernetes-preserve-unknown-fields": True}


def mapping(value: Schema) -> Schema:
    """A map from strings to values of one schema (additionalProperties)."""
    return {"type": "object", "additionalProperties": value}


def plain_list(item: Schema) -> Schema:
    """A list without a list type: server-side apply treats it as atomic, so it has one owner."""
    return {"type": "array", "items": item}


def atomic_list(item: Schema) -> Schema:
    """A list of type atomic: it has one owner."""
    return {"type": "array", "items": item, "x-kubernetes-list-type": "atomic"}


def map_list(item: Schema, *keys: str) -> Schema:
    """A list of type map: items are identified by keys and can have different owners."""
    how = {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": list(keys)}
    return {"type": "array", "items": item, **how}


def with_rules(schema: Schema, rules: Mapping[str, str]) -> Schema:
    """The schema with CEL rules and their messages."""
    validations = [{"rule": rule, "message": message} for rule, message in rules.items()]
    return schema | {"x-kubernetes-validations": validations}


def with_default(schema: Schema, default: Any) -> Schema:
    return schema | {"default": default}


def selector() -> Schema:
    """A label selector; it is atomic."""
    requirement = record(
        "key",
        "operator",
        key=string(),
        operator=string("In", "NotIn", "Exists", "DoesNotExist"),
        values=atomic_list(string()),
    )
    fields = record(matchLabels=mapping(string()), matchExpressions=atomic_list(requirement))
    return fields | {"x-kubernetes-map-type": "atomic"}


def reference(*fields: str) -> Schema:
    """A reference to another object; it is atomic."""
    return record(**{name: string() for name in fields}) | {"x-kubernetes-map-type": "atomic"}


def condition() -> Schema:
    return record(
        "type",
        "status",
        type=string(),
        status=string(),
        reason=string(),
        message=string(),
        lastTransitionTime=timestamp(),
        observedGeneration=integer(),
    )


def _default(default: Any) -> Schema:
    return {} if default is None else {"default": default}
