"""Sets of fields in the form of managedFields."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given

from tests.objects.builders import a_deployment, a_gadget, an_edited_config_map
from tests.objects.fieldsv1 import encode, encode_step
from tests.objects.strategies import modest, objects_and_fields
from virt_steward.objects.fieldpaths import BadFields, Field, Indexed, Valued, decode_step, keyed, readable
from virt_steward.objects.fieldsets import FieldSet, decode

if TYPE_CHECKING:
    from virt_steward.objects.fieldpaths import Step

SPEC = Field("spec")


@pytest.mark.parametrize(
    ("text", "step", "shown"),
    [
        ("f:image", Field("image"), ".image"),
        ("f:.", Field("."), ".."),
        ("f:f:x", Field("f:x"), ".f:x"),
        ('k:{"name":"web"}', keyed(name="web"), '[name="web"]'),
        ('k:{"port":80,"protocol":"TCP"}', keyed(protocol="TCP", port=80), '[port=80,protocol="TCP"]'),
        ('v:"x"', Valued('"x"'), '[="x"]'),
        ("v:true", Valued("true"), "[=true]"),
        ("v:1", Valued("1"), "[=1]"),
        ("i:3", Indexed(3), "[3]"),
    ],
)
def test_step_round_trips(text: str, step: Step, shown: str) -> None:
    assert decode_step(text) == step
    assert encode_step(step) == text
    assert readable((step,)) == shown


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ('k:{"a":1,"b":2}', 'k:{ "b": 2, "a": 1 }'),
        ("v:2", "v:2.0"),
        ("v:1e+21", "v:1e21"),
        ('v:"\\u003cb\\u003e"', 'v:"<b>"'),
    ],
    ids=["order of keys", "whole floats", "large floats", "escapes"],
)
def test_steps_compare_by_value(one: str, other: str) -> None:
    assert decode_step(one) == decode_step(other)


def test_step_distinguishes_true_from_one() -> None:
    assert decode_step("v:true") != decode_step("v:1")


@pytest.mark.parametrize(
    "fields",
    [
        {"spec": {}},
        {"x:spec": {}},
        {"k:name": {}},
        {"k:[1]": {}},
        {"v:": {}},
        {"i:one": {}},
        {"f:spec": None},
        {".": 1},
    ],
    ids=str,
)
def test_field_set_refuses_invalid_data(fields: dict[str, Any]) -> None:
    with pytest.raises(BadFields):
        decode({"f:metadata": fields})


def test_field_set_parent_is_not_implicit_member() -> None:
    fields = decode({"f:data": {".": {}, "f:a": {}}, "f:spec": {"f:b": {}}})
    assert sorted(map(readable, fields)) == [".data", ".data.a", ".spec.b"]
    assert (Field("data"),) in fields
    assert (SPEC,) not in fields
    assert (SPEC, Field("b"), Field("c")) not in fields
    assert () not in fields


@pytest.mark.parametrize("build", [an_edited_config_map, a_deployment], ids=["a config map", "a deployment"])
def test_field_set_round_trips_server_data(build: Any) -> None:
    for entry in build()["metadata"]["managedFields"]:
        assert encode(decode(entry["fieldsV1"])) == entry["fieldsV1"]


def test_field_set_normalizes_values() -> None:
    for entry in a_gadget()["metadata"]["managedFields"]:
        fields = decode(entry["fieldsV1"])
        assert decode(encode(fields)) == fields


@modest
@given(objects_and_fields())
def test_field_set_round_trips(drawn: tuple[Any, FieldSet, FieldSet]) -> None:
    _, fields, _ = drawn
    assert decode(encode(fields)) == fields


@modest
@given(objects_and_fields())
def test_field_set_behaves_as_set(drawn: tuple[Any, FieldSet, FieldSet]) -> None:
    _, one, other = drawn
    assert {*(one | other)} == {*one} | {*other}
    assert {*(one & other)} == {*one} & {*other}
    assert {*(one - other)} == {*one} - {*other}
    assert all(path in one for path in one)
    assert all((path in one) == (path in {*one}) for path in other)
    assert bool(one - other) == bool({*one} - {*other})


@modest
@given(objects_and_fields())
def test_field_sets_compare_by_content(drawn: tuple[Any, FieldSet, FieldSet]) -> None:
    _, one, other = drawn
    assert (one - other) | (one & other) == one
    assert one | other == other | one
    assert hash(one | other) == hash(other | one)
    assert FieldSet.of(*one) == one
