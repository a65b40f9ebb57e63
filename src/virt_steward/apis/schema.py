"""Structural OpenAPI v3 schemas for CRDs, from annotated msgspec structs."""

from __future__ import annotations

from typing import Any, ClassVar

import msgspec
from msgspec import Meta, inspect

VALIDATIONS = "x-kubernetes-validations"
LIST_TYPE = "x-kubernetes-list-type"
INT_OR_STRING = "x-kubernetes-int-or-string"
PRESERVE = "x-kubernetes-preserve-unknown-fields"


class SchemaError(TypeError):
    """A field that cannot be published as it is declared."""


class ApiStruct(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """An object in our APIs. Every field is annotated with its description."""

    rules: ClassVar[tuple[Meta, ...]] = ()
    """What must hold between the fields, made by `rule`."""


def rule(cel: str, message: str) -> Meta:
    """A CEL expression over `self`, and what the user reads when it is false."""
    return Meta(extra_json_schema={VALIDATIONS: [{"rule": cel, "message": message}]})


def validations(rules: tuple[Meta, ...]) -> list[dict[str, str]]:
    """Rules as a schema lists them."""
    return [found for made in rules for found in (made.extra_json_schema or {})[VALIDATIONS]]


def matching(regex: str, message: str) -> Meta:
    """The whole text must match. Unlike a pattern, it has a message that tells users what to write."""
    return rule(f"self.matches(r'^({regex})$')", message)


def keyed_by(*keys: str) -> Meta:
    """An associative list (list-type: map) with these keys, so that several managers can own elements."""
    return Meta(extra_json_schema={LIST_TYPE: "map", "x-kubernetes-list-map-keys": list(keys)})


ATOMIC = Meta(extra_json_schema={LIST_TYPE: "atomic"})  # replaced as a whole, order kept
INT32 = Meta(extra_json_schema={"format": "int32"})


def schema_of(struct: type[ApiStruct]) -> dict[str, Any]:
    """The schema of an object. Fails on a field without description, or on a list without list type."""
    return _object(inspect.type_info(struct), struct.__name__)


def _schema(kind: inspect.Type, path: str) -> dict[str, Any]:
    match kind:
        case inspect.Metadata(type=inner, extra_json_schema=extra):
            return _joined(_schema(inner, path), extra or {})
        case inspect.UnionType(types=types):
            return _union(types, path)
        case inspect.StructType():
            return _object(kind, path)
        case inspect.VarTupleType(item_type=item, min_length=least, max_length=most):
            return {"type": "array", "items": _schema(item, f"{path}[]")} | _set(minItems=least, maxItems=most)
        case inspect.DictType(key_type=inspect.StrType()):
            return _map(kind, path)
        case _:
            return _scalar(kind, path)


def _map(kind: inspect.DictType, path: str) -> dict[str, Any]:
    if isinstance(kind.value_type, inspect.AnyType):
        return {"type": "object", PRESERVE: True}
    values = {"type": "object", "additionalProperties": _schema(kind.value_type, f"{path}{{}}")}
    return values | _set(minProperties=kind.min_length, maxProperties=kind.max_length)


def _scalar(kind: inspect.Type, path: str) -> dict[str, Any]:
    match kind:
        case inspect.BoolType():
            return {"type": "boolean"}
        case inspect.IntType(gt=None, lt=None, multiple_of=None, ge=least, le=most):
            return {"type": "integer", "format": "int64"} | _set(minimum=least, maximum=most)
        case inspect.StrType(min_length=least, max_length=most, pattern=pattern):
            return {"type": "string"} | _set(minLength=least, maxLength=most, pattern=pattern)
        case inspect.DateTimeType():
            return {"type": "string", "format": "date-time"}
        case inspect.LiteralType(values=values) if all(isinstance(value, str) for value in values):
            return {"type": "string", "enum": list(values)}
        case _:
            raise SchemaError(f"{path}: {type(kind).__name__} has no structural schema here")


def _union(types: tuple[inspect.Type, ...], path: str) -> dict[str, Any]:
    """An optional value is its schema and not required; the only real choice that CRDs know is int or string."""
    match [member for member in types if not isinstance(member, inspect.NoneType)]:
        case [only]:
            return _schema(only, path)
        case [inspect.IntType(), inspect.StrType()] | [inspect.StrType(), inspect.IntType()]:
            return {INT_OR_STRING: True}
        case _:
            raise SchemaError(f"{path}: a choice of types has no structural schema")


def _object(kind: inspect.Type, path: str) -> dict[str, Any]:
    if not isinstance(kind, inspect.StructType) or not issubclass(kind.cls, ApiStruct):
        raise SchemaError(f"{path}: objects derive from ApiStruct")
    schema: dict[str, Any] = {"type": "object", "properties": {}}
    for field in kind.fields:
        schema["properties"][field.encode_name] = _field(field, f"{path}.{field.encode_name}")
    if required := [field.encode_name for field in kind.fields if field.required]:
        schema["required"] = required
    if kind.cls.rules:
        schema[VALIDATIONS] = validations(kind.cls.rules)
    return schema


def _field(field: inspect.Field, path: str) -> dict[str, Any]:
    schema = _schema(field.type, path)
    if not schema.get("description"):
        raise SchemaError(f"{path}: has no description")
    if schema.get("type") == "array" and LIST_TYPE not in schema:
        raise SchemaError(f"{path}: has no list type (ATOMIC or keyed_by)")
    if isinstance(field.default, bool | int) or (isinstance(field.default, str) and field.default):
        schema["default"] = field.default  # absent lists, maps and texts stay absent: the server need not fill them
    return {"description": schema.pop("description")} | schema


def _joined(schema: dict[str, Any], more: dict[str, Any]) -> dict[str, Any]:
    """Merge both; later values replace earlier ones, but validations are joined."""
    both = schema | more
    if VALIDATIONS in both:
        both[VALIDATIONS] = [*schema.get(VALIDATIONS, ()), *more.get(VALIDATIONS, ())]
    return both


def _set(**keywords: Any) -> dict[str, Any]:
    return {name: value for name, value in keywords.items() if value is not None}
