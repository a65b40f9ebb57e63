"""Objects without the server's additions, and their digests."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.objects.builders import a_deployment, an_edited_config_map
from tests.objects.strategies import modest, specs
from virt_steward.objects.canonical import same
from virt_steward.objects.normalize import content_digest, sanitized
from virt_steward.objects.paths import Pointer, leaves, with_value, without

if TYPE_CHECKING:
    import random


def changed(obj: dict[str, Any], text: str, value: Any) -> dict[str, Any]:
    new: dict[str, Any] = with_value(obj, Pointer.parse(text), value)
    return new


def shuffled(value: Any, order: random.Random) -> Any:
    match value:
        case dict():
            return {name: shuffled(value[name], order) for name in order.sample([*value], len(value))}
        case list():
            return [shuffled(item, order) for item in value]
    return value


def test_sanitized_removes_server_fields() -> None:
    assert sanitized(an_edited_config_map()) == {
        "kind": "ConfigMap",
        "apiVersion": "v1",
        "metadata": {"name": "settings", "namespace": "default", "labels": {"app.kubernetes.io/name": "x"}},
        "data": {"a": "1", "b.txt": "line\nline", "c": "3"},
        "binaryData": {"z": "AAAA"},
    }


def test_sanitized_removes_status() -> None:
    assert "status" not in sanitized(a_deployment())


def test_sanitized_does_not_change_the_object() -> None:
    obj = a_deployment()
    sanitized(obj)
    assert obj == a_deployment()


@pytest.mark.parametrize(
    ("where", "value"),
    [
        ("/status/replicas", 7),
        ("/metadata/generation", 7),
        ("/metadata/resourceVersion", "7"),
        ("/metadata/managedFields", []),
    ],
)
def test_digest_ignores_server_fields(where: str, value: Any) -> None:
    assert content_digest(changed(a_deployment(), where, value)) == content_digest(a_deployment())


@pytest.mark.parametrize(
    ("where", "value"),
    [
        ("/metadata/uid", "other"),
        ("/metadata/labels", {}),
        ("/metadata/deletionTimestamp", "2026-11-16T03:08:44Z"),
        ("/spec/replicas", 3),
        ("/spec/replicas", "2"),
        ("/spec/status", {}),
        ("/data", None),
    ],
)
def test_digest_changes_with_content(where: str, value: Any) -> None:
    assert content_digest(changed(a_deployment(), where, value)) != content_digest(a_deployment())


@modest
@given(specs, st.randoms(use_true_random=False))
def test_digest_ignores_order_of_keys(obj: dict[str, Any], order: random.Random) -> None:
    assert content_digest(shuffled(obj, order)) == content_digest(obj)


@modest
@given(specs)
def test_digest_covers_every_leaf(obj: dict[str, Any]) -> None:
    for pointer, _ in leaves(obj):
        assert content_digest(without(obj, pointer)) != content_digest(obj)


@pytest.mark.parametrize(("one", "other"), [(True, 1), (False, 0), (None, ""), ("1", 1), ([], {})])
def test_same_distinguishes_types(one: Any, other: Any) -> None:
    assert not same({"a": one}, {"a": other})
