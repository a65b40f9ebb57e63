"""Parts of objects."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given

from tests.objects.builders import a_config_map, a_deployment, a_gadget, an_edited_config_map, managed
from tests.objects.strategies import is_part, modest, objects_and_fields, paths_in, specs
from virt_steward.objects.canonical import same
from virt_steward.objects.extract import extract
from virt_steward.objects.fieldpaths import Field, Indexed, keyed
from virt_steward.objects.fieldsets import FieldSet, decode
from virt_steward.objects.ownership import Owner, owned_by, owners

SPEC = Field("spec")


def test_extract_divides_config_map_by_manager() -> None:
    obj = an_edited_config_map()
    assert extract(obj, owned_by(obj, "second")) == {"data": {"a": "1"}}
    assert extract(obj, owned_by(obj, "owner")) == {
        "metadata": {"labels": {"app.kubernetes.io/name": "x"}},
        "data": {"a": "1", "b.txt": "line\nline"},
    }
    assert extract(obj, owners(obj)[Owner("editor", "Update")]) == {"data": {"c": "3"}, "binaryData": {"z": "AAAA"}}


def test_extract_keeps_keys_of_list_items() -> None:
    obj = a_deployment()
    assert extract(obj, owned_by(obj, "injector"))["spec"]["template"]["spec"] == {
        "containers": [{"name": "sidecar", "image": "s:1"}, {"name": "web", "env": [{"name": "X", "value": "1"}]}]
    }
    assert extract(obj, owners(obj)[Owner("editor", "Update")]) == {
        "spec": {"template": {"spec": {"containers": [{"name": "web", "env": [{"name": "Y", "value": "2"}]}]}}}
    }
    owned = extract(obj, owned_by(obj, "owner"))
    assert owned["metadata"] == {"finalizers": ["example.com/hold"]}
    assert owned["spec"]["selector"] == {"matchLabels": {"app": "web"}}
    assert owned["spec"]["template"]["spec"]["containers"] == [
        {
            "name": "web",
            "image": "web:1",
            "args": ["-a", "-b"],
            "ports": [
                {"containerPort": 80, "protocol": "TCP"},
                {"name": "dns", "containerPort": 53, "protocol": "UDP"},
            ],
        }
    ]


def test_extract_handles_custom_resource() -> None:
    obj = a_gadget()
    assert extract(obj, owned_by(obj, "owner"))["spec"] == {
        **obj["spec"],
        "empty": {},
        "levels": [1, 2],
        "tags": ["x", 'ü"q'],
    }
    assert extract(obj, owned_by(obj, "second"))["spec"] == {
        "empty": {"k": "v"},
        "levels": [3],
        "ports": [{"port": 80, "protocol": "TCP"}],
        "tags": ["<b>&"],
    }


@pytest.mark.parametrize(
    ("fields", "spec", "part"),
    [
        ({"f:a": {"f:b": {}}}, {"a": {"c": 1}}, {}),
        ({"f:a": {".": {}, "f:b": {}}}, {"a": {"c": 1}}, {"a": {}}),
        ({"f:a": {"f:b": {}}}, {"a": None}, {}),
        ({"f:a": {".": {}, "f:b": {}}}, {"a": None}, {"a": None}),
        ({"f:a": {'k:{"n":1}': {"f:b": {}}}}, {"a": [{"n": 1}]}, {}),
        ({"f:a": {'k:{"n":1}': {}}}, {"a": [{"n": 2}, {"n": 1, "b": 3}]}, {"a": [{"n": 1, "b": 3}]}),
        ({"f:a": {"v:1": {}}}, {"a": [True, 1]}, {"a": [1]}),
        ({"f:a": {"v:1": {}}}, {"a": [1, 1]}, {"a": [1, 1]}),
        ({"f:a": {"i:1": {}}}, {"a": [[1], [2]]}, {"a": [[2]]}),
        ({"f:a": {'k:{"n":1}': {}, "i:0": {}}}, {"a": [{"n": 1}]}, {"a": [{"n": 1}]}),
        (
            {"f:a": {'k:{"n":1}': {}, 'k:{"n":1,"p":"x"}': {"f:b": {}}}},
            {"a": [{"n": 1, "p": "x", "b": 2, "c": 3}, {"n": 1, "p": "y"}, {"n": 1, "d": 4}]},
            {"a": [{"n": 1, "p": "x", "b": 2}, {"n": 1, "d": 4}]},
        ),
    ],
    ids=[
        "nothing of a map that lacks the field",
        "an owned map that lacks the field",
        "nothing of a null",
        "an owned null",
        "no item that has only its keys",
        "a whole item",
        "one but not true",
        "both of two equal items",
        "an item by index",
        "once what is named twice",
        "items that leave out one of the keys",
    ],
)
def test_extract_returns_fields(fields: dict[str, Any], spec: dict[str, Any], part: dict[str, Any]) -> None:
    extracted = extract({"spec": spec}, decode({"f:spec": {".": {}, **fields}}))
    assert same(extracted, {"spec": part})


def test_extract_knows_keys_from_all_managers() -> None:
    theirs = managed("other", {"f:spec": {"f:a": {'k:{"n":1,"p":"x"}': {}}}})
    obj = {"metadata": {"managedFields": [theirs]}, "spec": {"a": [{"n": 1, "p": "x"}, {"n": 1}]}}
    assert extract(obj, FieldSet.of((SPEC, Field("a"), keyed(n=1)))) == {"spec": {"a": [{"n": 1}]}}


def test_extract_keeps_order() -> None:
    obj = {"spec": {"z": 1, "a": [{"v": 1, "name": "n"}]}}
    fields = FieldSet.of((SPEC, Field("a"), keyed(name="n"), Field("v")), (SPEC, Field("z")))
    assert str(extract(obj, fields)) == str(obj)


@modest
@given(objects_and_fields())
def test_extract_adds_nothing(drawn: tuple[dict[str, Any], FieldSet, FieldSet]) -> None:
    obj, fields, _ = drawn
    assert is_part(extract(obj, fields), obj)


@modest
@given(objects_and_fields())
def test_extract_does_not_change_the_object(drawn: tuple[dict[str, Any], FieldSet, FieldSet]) -> None:
    obj, fields, _ = drawn
    original = copy.deepcopy(obj)
    extract(obj, fields)
    assert same(obj, original)


@modest
@given(specs)
def test_extract_of_all_fields_is_the_object(obj: dict[str, Any]) -> None:
    assert same(extract(obj, FieldSet.of(*paths_in(obj))), obj)


@modest
@given(objects_and_fields())
def test_extract_is_idempotent(drawn: tuple[dict[str, Any], FieldSet, FieldSet]) -> None:
    obj, fields, _ = drawn
    part = extract(obj, fields)
    assert same(extract(part, fields), part)


@modest
@given(objects_and_fields(only_leaves=True))
def test_extract_is_monotonic(drawn: tuple[dict[str, Any], FieldSet, FieldSet]) -> None:
    obj, one, other = drawn
    both = extract(obj, one | other)
    assert is_part(extract(obj, one), both)
    assert is_part(extract(obj, other), both)
    assert is_part(extract(obj, one & other), extract(obj, one))


@modest
@given(objects_and_fields(only_leaves=True))
def test_extract_is_empty_only_for_empty_set(
    drawn: tuple[dict[str, Any], FieldSet, FieldSet],
) -> None:
    obj, fields, _ = drawn
    assert bool(extract(obj, fields)) == bool(fields)


def test_extract_ignores_missing_fields() -> None:
    assert extract(a_config_map(), FieldSet.of((Field("data"), Field("no")), (Field("data"), Indexed(0)))) == {}
