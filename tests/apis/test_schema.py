from datetime import datetime
from typing import Annotated, Any, Literal

import msgspec
import pytest
from msgspec import Meta

from virt_steward.apis.schema import ATOMIC, INT32, ApiStruct, SchemaError, keyed_by, matching, rule, schema_of

DOC = Meta(description="What it is.")


def the_schema_of(annotation: Any, default: Any = msgspec.NODEFAULT) -> dict[str, Any]:
    """The schema of a field that is so annotated, without its description."""
    field = ("field_name", annotation) if default is msgspec.NODEFAULT else ("field_name", annotation, default)
    struct = msgspec.defstruct("Probe", [field], bases=(ApiStruct,), frozen=True)
    schema = dict(schema_of(struct)["properties"]["fieldName"])
    assert schema.pop("description") == "What it is."
    return schema


class Port(ApiStruct, frozen=True):
    rules = (rule("self.low <= self.high", "low is not above high"),)

    low: Annotated[int, DOC, INT32]
    high: Annotated[int, DOC, Meta(ge=1, le=9)] = 5


PORT = {
    "type": "object",
    "properties": {
        "low": {"description": "What it is.", "type": "integer", "format": "int32"},
        "high": {
            "description": "What it is.",
            "type": "integer",
            "format": "int64",
            "minimum": 1,
            "maximum": 9,
            "default": 5,
        },
    },
    "required": ["low"],
    "x-kubernetes-validations": [{"rule": "self.low <= self.high", "message": "low is not above high"}],
}


@pytest.mark.parametrize(
    ("annotation", "expected"),
    [
        pytest.param(bool, {"type": "boolean"}, id="a boolean"),
        pytest.param(
            Annotated[str, Meta(min_length=1, max_length=9, pattern="^a")],
            {"type": "string", "minLength": 1, "maxLength": 9, "pattern": "^a"},
            id="a bounded text",
        ),
        pytest.param(Literal["a", "b"], {"type": "string", "enum": ["a", "b"]}, id="a choice of words"),
        pytest.param(datetime, {"type": "string", "format": "date-time"}, id="a time"),
        pytest.param(int | str, {"x-kubernetes-int-or-string": True}, id="a number or a text"),
        pytest.param(str | None, {"type": "string"}, id="an optional text"),
        pytest.param(dict[str, Any], {"type": "object", "x-kubernetes-preserve-unknown-fields": True}, id="anything"),
        pytest.param(
            Annotated[dict[str, Annotated[str, Meta(max_length=3)]], Meta(max_length=2)],
            {"type": "object", "additionalProperties": {"type": "string", "maxLength": 3}, "maxProperties": 2},
            id="a map",
        ),
        pytest.param(
            Annotated[tuple[str, ...], ATOMIC, Meta(max_length=4)],
            {"type": "array", "items": {"type": "string"}, "maxItems": 4, "x-kubernetes-list-type": "atomic"},
            id="a list",
        ),
        pytest.param(
            Annotated[tuple[Port, ...], keyed_by("low")],
            {
                "type": "array",
                "items": PORT,
                "x-kubernetes-list-type": "map",
                "x-kubernetes-list-map-keys": ["low"],
            },
            id="a list of objects told apart by a key",
        ),
        pytest.param(Port, PORT, id="an object with a rule between its fields"),
        pytest.param(
            Annotated[Annotated[str, matching("a+", "only a")] | None, rule("self != 'aa'", "not aa")],
            {
                "type": "string",
                "x-kubernetes-validations": [
                    {"rule": "self.matches(r'^(a+)$')", "message": "only a"},
                    {"rule": "self != 'aa'", "message": "not aa"},
                ],
            },
            id="an optional text with two rules from two places",
        ),
    ],
)
def test_schema_of_field_types(annotation: Any, expected: dict[str, Any]) -> None:
    assert the_schema_of(Annotated[annotation, DOC]) == expected


@pytest.mark.parametrize(
    ("annotation", "default", "filled_in"),
    [
        pytest.param(bool, False, {"default": False}, id="false is"),
        pytest.param(int, 0, {"default": 0}, id="zero is"),
        pytest.param(str, "UTC", {"default": "UTC"}, id="a text is"),
        pytest.param(str, "", {}, id="an empty text is not"),
        pytest.param(str | None, None, {}, id="nothing is not"),
        pytest.param(Annotated[tuple[str, ...], ATOMIC], (), {}, id="an empty list is not"),
    ],
)
def test_schema_publishes_defaults(annotation: Any, default: Any, filled_in: dict[str, Any]) -> None:
    schema = the_schema_of(Annotated[annotation, DOC], default)

    assert {name: value for name, value in schema.items() if name == "default"} == filled_in


@pytest.mark.parametrize(
    ("annotation", "complaint"),
    [
        pytest.param(str, "Probe.fieldName: has no description", id="has no description"),
        pytest.param(
            Annotated[
                tuple[msgspec.defstruct("Bare", [("x", str)], bases=(ApiStruct,), frozen=True), ...], DOC, ATOMIC
            ],
            r"Probe.fieldName\[\].x: has no description",
            id="holds objects with a field that has none",
        ),
        pytest.param(Annotated[tuple[str, ...], DOC], "has no list type", id="is a list of no declared type"),
        pytest.param(Annotated[int | bool, DOC], "a choice of types", id="is one of two types"),
        pytest.param(Annotated[int, DOC, Meta(gt=3)], "IntType", id="has a bound that would be lost"),
        pytest.param(Annotated[bytes, DOC], "BytesType", id="is of a type without schema"),
        pytest.param(
            Annotated[msgspec.defstruct("Stranger", [("x", str)]), DOC], "derive from ApiStruct", id="is no ApiStruct"
        ),
    ],
)
def test_schema_refuses_incomplete_field(annotation: Any, complaint: str) -> None:
    struct = msgspec.defstruct("Probe", [("field_name", annotation)], bases=(ApiStruct,), frozen=True)

    with pytest.raises(SchemaError, match=complaint):
        schema_of(struct)


def test_api_struct_encodes_camel_case_without_defaults() -> None:
    class Window(ApiStruct, frozen=True):
        time_zone: Annotated[str, DOC] = "UTC"
        opens_at: Annotated[tuple[int, ...], DOC, ATOMIC] = ()

    assert msgspec.json.encode(Window(opens_at=(1,))) == b'{"opensAt":[1]}'
