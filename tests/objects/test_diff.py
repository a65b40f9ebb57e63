"""Diffs."""

from __future__ import annotations

from typing import Any

import pytest
import yaml
from hypothesis import given

from tests.objects.builders import a_config_map, a_deployment, a_secret
from tests.objects.strategies import modest, specs
from virt_steward.objects.canonical import same
from virt_steward.objects.diff import ABSENT, changes, unified
from virt_steward.objects.paths import Pointer, with_value
from virt_steward.objects.yamltext import yaml_text


def a_gadget_with(value: Any) -> dict[str, Any]:
    return {"apiVersion": "example.com/v1", "kind": "Gadget", "metadata": {"name": "g"}, "spec": {"x": value}}


def listed(before: Any, after: Any) -> list[tuple[str, Any, Any]]:
    return [(str(change), change.before, change.after) for change in changes(before, after)]


def test_diff_shows_change_in_context() -> None:
    assert unified(a_config_map(a="1", b="2"), a_config_map(a="1", b="3")) == (
        "--- live ConfigMap default/settings\n"
        "+++ planned ConfigMap default/settings\n"
        "@@ -5,4 +5,4 @@\n"
        "   namespace: default\n"
        " data:\n"
        "   a: '1'\n"
        "-  b: '2'\n"
        "+  b: '3'\n"
    )


def test_diff_of_created_object_is_additions() -> None:
    header, _, _, *lines = unified(None, a_config_map()).splitlines()
    assert header == "--- live ConfigMap default/settings (absent)"
    assert yaml.safe_load("\n".join(line.removeprefix("+") for line in lines)) == a_config_map()
    assert all(line.startswith("+") for line in lines)


def test_diff_of_deleted_object_is_removals() -> None:
    _, header, _, *lines = unified(a_config_map(), None).splitlines()
    assert header == "+++ planned ConfigMap default/settings (absent)"
    assert all(line.startswith("-") for line in lines)


@pytest.mark.parametrize(
    ("where", "value"),
    [("/metadata/resourceVersion", "9"), ("/metadata/managedFields", []), ("/status/replicas", 9)],
)
def test_diff_ignores_server_fields(where: str, value: Any) -> None:
    moved = with_value(a_deployment(), Pointer.parse(where), value)
    assert unified(a_deployment(), moved) == ""
    assert changes(a_deployment(), moved) == ()


def test_diff_of_nothing_is_empty() -> None:
    assert unified(None, None) == ""
    assert changes(None, None) == ()


def test_yaml_text_orders_identity_first() -> None:
    obj = {"status": {}, "spec": {"b": [{"image": "i", "name": "n"}], "a": 1}, "metadata": {"name": "x"}, "kind": "K"}
    assert yaml_text({**obj, "data": {}, "apiVersion": "v1"}) == (
        "apiVersion: v1\nkind: K\nmetadata:\n  name: x\n"
        "spec:\n  a: 1\n  b:\n  - name: n\n    image: i\n"
        "data: {}\nstatus: {}\n"
    )


def test_diff_shows_multi_line_text() -> None:
    before, after = a_config_map(script="set -e\nrun\n"), a_config_map(script="set -e\nrun --fast\n")
    assert unified(before, after).splitlines()[-4:] == ["   script: |", "     set -e", "-    run", "+    run --fast"]


def test_yaml_text_has_no_folding_or_anchors() -> None:
    shared = {"text": "word " * 100 + "end"}
    assert yaml_text({"a": shared, "b": shared}).count(shared["text"]) == 2


@pytest.mark.parametrize("text", ["\x1b[2J", "a\rb", "\x9b", "\x00"], ids=["escape", "return", "CSI", "nul"])
def test_diff_escapes_control_characters(text: str) -> None:
    assert text not in unified(None, a_config_map(a=text))


def test_diff_keeps_exotic_line_separators() -> None:
    assert unified(a_config_map(a="x\u2028y\n"), a_config_map(a="x\ny\n")) != ""


def test_diff_keeps_unicode_text() -> None:
    assert "+  a: ключ" in unified(None, a_config_map(a="ключ")).splitlines()


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        (1, 2, [("", 1, 2)]),
        (1, True, [("", 1, True)]),
        ({"a": 1}, {"b": {"c": None}}, [(".b.c", ABSENT, None), (".a", 1, ABSENT)]),
        ({}, {"a": {}}, [(".a", ABSENT, {})]),
        ({"a": []}, {"a": {}}, [(".a", [], {})]),
        ({"a": [1]}, {"a": "1"}, [(".a", [1], "1")]),
        ([1, 2], [1, 3, 4], [("[1]", 2, 3), ("[2]", ABSENT, 4)]),
        (
            [{"name": "a", "v": 1}, {"name": "b"}],
            [{"name": "new"}, {"name": "a", "v": 2}],
            [('[name="new"].name', ABSENT, "new"), ('[name="a"].v', 1, 2), ('[name="b"].name', "b", ABSENT)],
        ),
        (
            [{"name": "a"}, {"name": "b"}],
            [{"name": "b"}, {"name": "a"}],
            [("[0].name", "a", "b"), ("[1].name", "b", "a")],
        ),
        ([{"name": "a", "v": 1}] * 2, [{"name": "a", "v": 2}] * 2, [("[0].v", 1, 2), ("[1].v", 1, 2)]),
        (
            [{"type": "Ready", "status": "False"}],
            [{"type": "Ready", "status": "True"}],
            [('[type="Ready"].status', "False", "True")],
        ),
    ],
    ids=[
        "a scalar",
        "a type",
        "added and removed fields",
        "an empty map",
        "a list that became a map",
        "a list that became a scalar",
        "items by index",
        "items by name",
        "items in another order",
        "items with one name twice",
        "items by type",
    ],
)
def test_changes_lists_differences(before: Any, after: Any, expected: list[tuple[str, Any, Any]]) -> None:
    found = listed(a_gadget_with(before), a_gadget_with(after))
    assert found == [(f".spec.x{path}", old, new) for path, old, new in expected]
    assert [(type(old), type(new)) for _, old, new in found] == [(type(old), type(new)) for _, old, new in expected]


def test_changes_of_created_object_list_all_values() -> None:
    assert [change.before for change in changes(None, a_config_map())] == [ABSENT] * 5
    assert [change.after for change in changes(a_config_map(), None)] == [ABSENT] * 5


def test_changes_mask_secrets() -> None:
    assert listed(a_secret(a="1", b="2"), a_secret(a="1", b="3")) == [(".data.b", "•••", "••• (changed)")]


@modest
@given(specs, specs)
def test_diff_and_changes_are_empty_together(one: dict[str, Any], other: dict[str, Any]) -> None:
    assert (changes(one, other) == ()) == same(one, other)
    assert (unified(one, other) == "") == same(one, other)
    assert changes(one, one) == ()


@modest
@given(specs, specs)
def test_changes_are_reversible(one: dict[str, Any], other: dict[str, Any]) -> None:
    there = sorted((str(change), repr(change.before), repr(change.after)) for change in changes(one, other))
    back = sorted((str(change), repr(change.after), repr(change.before)) for change in changes(other, one))
    assert there == back


@modest
@given(specs)
def test_yaml_text_round_trips(obj: dict[str, Any]) -> None:
    assert same(yaml.safe_load(yaml_text(obj)), obj)
