"""A person's patch on an intent."""

import json
from typing import Any

import pytest

from virt_steward.controllers.autopilot.overrides.patch import (
    FORBIDDEN,
    Patched,
    PatchRefused,
    patched,
    patched_json,
)


def an_object(kind: str = "MachineConfig") -> dict[str, Any]:
    metadata = {"name": "90-worker-swap-online", "labels": {"role": "worker"}}
    return {"apiVersion": "example.com/v1", "kind": kind, "metadata": metadata, "spec": {"args": ["a"], "size": 1}}


def a_patch(*operations: dict[str, Any]) -> str:
    return json.dumps(operations)


def replaced(path: str, value: Any = "x") -> str:
    return a_patch({"op": "add", "path": path, "value": value})


def test_patch_changes_the_intent() -> None:
    text = a_patch({"op": "add", "path": "/spec/args/-", "value": "b"}, {"op": "remove", "path": "/spec/size"})
    obj = an_object()
    assert patched(obj, text) == Patched({**obj, "spec": {"args": ["a", "b"]}}, operations=2)
    assert obj == an_object()


def test_patch_is_refused_as_a_whole() -> None:
    text = a_patch({"op": "replace", "path": "/spec/size", "value": 2}, {"op": "remove", "path": "/spec/none"})
    why = patched(an_object(), text)
    assert isinstance(why, PatchRefused)
    assert "operation 2 (remove /spec/none)" in why.message


@pytest.mark.parametrize(
    "kind",
    ["ClusterRole", "RoleBinding", "ServiceAccount", "SecurityContextConstraints", "MutatingWebhookConfiguration"],
)
def test_patch_refuses_kinds_that_grant_rights(kind: str) -> None:
    assert patched(an_object(kind), "[]") == PatchRefused(f"a {kind} must not be patched: it grants rights")


@pytest.mark.parametrize("kind", ["MachineConfig", "KubeletConfig", "NodeHealthCheck", "HyperConverged"])
def test_patch_allows_other_kinds(kind: str) -> None:
    assert isinstance(patched(an_object(kind), "[]"), Patched)


@pytest.mark.parametrize("path", [*map(str, FORBIDDEN), "/metadata", "", "/status/conditions/0"])
@pytest.mark.parametrize("how", ["add", "remove", "test", "move", "copy", "move-from", "copy-from"])
def test_patch_refuses_protected_paths(path: str, how: str) -> None:
    operation, _, end = how.partition("-")
    paths = {"path": "/spec/size", "from": path} if end else {"path": path, "from": "/spec/size"}
    harmless = {"op": "replace", "path": "/spec/size", "value": 2}
    refused = patched(an_object(), a_patch(harmless, {"op": operation, "value": "x", **paths}))
    assert isinstance(refused, PatchRefused)
    assert refused.message.endswith("must not be patched")


@pytest.mark.parametrize(
    "path", ["/metadata/labels/l", "/metadata/annotations", "/metadata/na~0me", "/metadata/names-custom", "/statuses"]
)
def test_patch_allows_similar_paths(path: str) -> None:
    value: Any = {"a": "b"} if path.endswith("annotations") else "x"
    assert isinstance(patched(an_object(), replaced(path, value)), Patched)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("/metadata/labels/l", 1),
        ("/metadata/labels", None),
        ("/metadata/labels", []),
        ("/metadata/annotations", {"a": {}}),
    ],
)
def test_patch_keeps_labels_and_annotations_text(path: str, value: Any) -> None:
    assert isinstance(patched(an_object(), replaced(path, value)), PatchRefused)


LARGE = {f"key{number}": "value" for number in range(1000)}


@pytest.mark.parametrize(
    "operations",
    [
        pytest.param([{"op": "add", "path": "/spec/large", "value": LARGE}], id="good"),
        pytest.param(
            [
                {"op": "add", "path": "/spec/large", "value": LARGE},
                *[{"op": "copy", "from": "/spec/large", "path": f"/spec/copy{number}"} for number in range(499)],
            ],
            id="above-the-budget",
        ),
    ],
)
def test_patch_is_computed_once_for_the_same_text_and_object(operations: list[dict[str, Any]]) -> None:
    text = a_patch(*operations)
    patched_json.cache_clear()
    first, second = patched(an_object(), text), patched(an_object(), text)
    assert first == second
    assert patched_json.cache_info().misses == 1
    other = an_object() | {"spec": {"size": 2}}
    assert patched(other, text) != first or isinstance(first, PatchRefused)
    assert patched_json.cache_info().misses == 2


def test_patch_results_are_independent() -> None:
    first, second = (patched(an_object(), replaced("/spec/size", 2)) for _ in range(2))
    assert isinstance(first, Patched)
    assert isinstance(second, Patched)
    first.obj["spec"]["size"] = 3
    assert second.obj["spec"]["size"] == 2


def test_patch_above_the_budget_says_what_to_do() -> None:
    copies = [{"op": "copy", "from": "/spec/large", "path": f"/spec/copy{number}"} for number in range(499)]
    refused = patched(an_object(), a_patch({"op": "add", "path": "/spec/large", "value": LARGE}, *copies))
    assert isinstance(refused, PatchRefused)
    assert refused.message.endswith("move more than 262144 bytes; use fewer or smaller ones")
