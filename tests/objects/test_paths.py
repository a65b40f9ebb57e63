"""JSON pointers."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.objects.strategies import maps, modest
from virt_steward.objects.canonical import same
from virt_steward.objects.paths import BadPointer, NothingThere, Pointer, get, has, leaves, with_value, without

RFC_DOCUMENT = {"foo": ["bar", "baz"], "": 0, "a/b": 1, "c%d": 2, 'k"l': 6, " ": 7, "m~n": 8, "~1": 9}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("", RFC_DOCUMENT),
        ("/foo", ["bar", "baz"]),
        ("/foo/0", "bar"),
        ("/", 0),
        ("/a~1b", 1),
        ("/c%d", 2),
        ('/k"l', 6),
        ("/ ", 7),
        ("/m~0n", 8),
        ("/~01", 9),
    ],
)
def test_get_follows_the_rfc(text: str, value: Any) -> None:
    assert get(RFC_DOCUMENT, Pointer.parse(text)) == value


@pytest.mark.parametrize(
    ("text", "at"),
    [("spec", 0), ("#/spec", 0), ("/spec/a~2b", 7), ("/spec~", 5)],
    ids=["no slash", "a fragment", "an unknown escape", "a lone tilde"],
)
def test_pointer_refuses_invalid_text(text: str, at: int) -> None:
    with pytest.raises(BadPointer) as refused:
        Pointer.parse(text)
    assert (refused.value.text, refused.value.at) == (text, at)
    assert repr(text) in str(refused.value)
    assert f"character {at + 1}" in str(refused.value)


@pytest.mark.parametrize(
    ("text", "at"),
    [
        ("/foo/2", 1),
        ("/foo/-", 1),
        ("/foo/00", 1),
        ("/foo/+1", 1),
        ("/foo/-1", 1),
        ("/foo/\u0661", 1),
        ("/foo/" + "9" * 5000, 1),
        ("/nope/deeper", 0),
        ("/foo/0/x", 2),
    ],
    ids=[
        "behind the end",
        "at the end",
        "with a leading zero",
        "with a sign",
        "counted from the end",
        "in Arabic digits",
        "with thousands of digits",
        "below nothing",
        "below a scalar",
    ],
)
def test_get_raises_nothing_there(text: str, at: int) -> None:
    pointer = Pointer.parse(text)
    assert not has(RFC_DOCUMENT, pointer)
    with pytest.raises(NothingThere) as missing:
        get(RFC_DOCUMENT, pointer)
    assert missing.value.at == at
    with pytest.raises(NothingThere):
        without(RFC_DOCUMENT, pointer)


@pytest.mark.parametrize(
    ("before", "text", "after"),
    [
        ({"a": 1}, "/a", {"a": 9}),
        ({"a": 1}, "/b", {"a": 1, "b": 9}),
        ({}, "/a/b/0", {"a": {"b": {"0": 9}}}),
        ({"a": [1, 2]}, "/a/1", {"a": [1, 9]}),
        ({"a": [1, 2]}, "/a/-", {"a": [1, 2, 9]}),
        ({"a": [1]}, "/a/-/b", {"a": [1, {"b": 9}]}),
        ({"a": 1}, "", 9),
    ],
    ids=[
        "replaced",
        "added",
        "added with its parents",
        "replaced in a list",
        "appended",
        "appended below",
        "all of it",
    ],
)
def test_set_adds_value(before: Any, text: str, after: Any) -> None:
    assert with_value(before, Pointer.parse(text), 9) == after


@pytest.mark.parametrize("text", ["/list/1", "/list/name", "/scalar/x"])
def test_set_refuses_invalid_place(text: str) -> None:
    with pytest.raises(NothingThere):
        with_value({"list": [0], "scalar": 1}, Pointer.parse(text), 9)


def test_remove_refuses_whole_object() -> None:
    with pytest.raises(ValueError, match="whole object"):
        without({"a": 1}, Pointer())


def test_set_shares_unchanged_parts() -> None:
    obj = {"spec": {"a": 1}, "status": {"b": 2}}
    assert with_value(obj, Pointer.parse("/spec/a"), 3)["status"] is obj["status"]
    assert without(obj, Pointer.parse("/spec/a"))["status"] is obj["status"]


def test_leaves_include_empty_collections() -> None:
    found = {str(pointer): value for pointer, value in leaves({"a": {}, "b": [], "c": [{}, 1], "d": None})}
    assert found == {"/a": {}, "/b": [], "/c/0": {}, "/c/1": 1, "/d": None}


@modest
@given(st.lists(st.text(max_size=5), max_size=5).map(tuple))
def test_pointer_round_trips(tokens: tuple[str, ...]) -> None:
    assert Pointer.parse(str(Pointer(tokens))) == Pointer(tokens)


@modest
@given(maps)
def test_leaves_rebuild_the_object(obj: dict[str, Any]) -> None:
    for pointer, value in leaves(obj):
        assert get(obj, pointer) is value
        assert same(with_value(obj, pointer, value), obj)


@modest
@given(maps)
def test_set_and_remove_do_not_change_the_original(obj: dict[str, Any]) -> None:
    original = copy.deepcopy(obj)
    for pointer, _ in leaves(obj):
        with_value(obj, pointer, "changed")
        if pointer.tokens:
            without(obj, pointer)
    assert same(obj, original)


@modest
@given(maps)
def test_remove_and_set_are_inverse(obj: dict[str, Any]) -> None:
    for name, value in obj.items():
        pointer = Pointer((name,))
        rest = without(obj, pointer)
        assert not has(rest, pointer)
        assert same(with_value(rest, pointer, value), obj)
