"""What a mask's text says; what becomes of it is in test_mask_on_server."""

from typing import Any

import pytest

from tests.objects.builders import managed
from virt_steward.controllers.autopilot.overrides.mask import MOST_POINTERS, Mask, masked, parse
from virt_steward.objects.paths import Pointer
from virt_steward.ssa.managers import AUTOPILOT


def a_gadget(spec: dict[str, Any], **metadata: Any) -> dict[str, Any]:
    return {"apiVersion": "example.com/v1", "kind": "Gadget", "metadata": {"name": "g", **metadata}, "spec": spec}


def pointers(text: str) -> list[str]:
    return [str(pointer) for pointer in parse(text).pointers]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        pytest.param("", [], id="nothing"),
        pytest.param(" , ,", [], id="commas"),
        pytest.param("/spec/b, /spec/a ,", ["/spec/a", "/spec/b"], id="spaces"),
        pytest.param("/spec/a,/spec/a", ["/spec/a"], id="one twice"),
        pytest.param("/spec/a,.spec.a", ["/spec/a"], id="one in both forms"),
        pytest.param(".spec.a[0].b", ["/spec/a/0/b"], id="index in brackets"),
        pytest.param(
            ".metadata.annotations['example.io/a']", ["/metadata/annotations/example.io~1a"], id="name in brackets"
        ),
        pytest.param("/spec/a/b,/spec/a,/spec/ab", ["/spec/a", "/spec/ab"], id="one that covers another"),
        pytest.param("/metadata/annotations/a~1b", ["/metadata/annotations/a~1b"], id="an escape"),
        pytest.param("/", ["/"], id="an empty name"),
    ],
)
def test_parse_reads_pointers(text: str, found: list[str]) -> None:
    assert pointers(text) == found
    assert not parse(text).bad


@pytest.mark.parametrize(
    "text",
    [
        "spec/a",
        "/spec/~2",
        ".",
        "..spec",
        ".spec.a[",
        ".spec.a[name=x]",
        ".metadata.name",
        "/kind",
        "/apiVersion",
        "/metadata/name",
        "/metadata/uid",
        "/metadata/managedFields/0",
        "/status",
        "/status/phase",
        f"/spec{'/a' * 100_000}",
    ],
)
def test_parse_refuses_bad_pointers_only(text: str) -> None:
    mask = parse(f"/spec/a,{text},/spec/b")
    assert [str(pointer) for pointer in mask.pointers] == ["/spec/a", "/spec/b"]
    assert len(mask.bad) == 1
    assert 0 < len(str(mask.bad[0])) < 500


def test_parse_limits_the_number_of_pointers() -> None:
    mask = parse(",".join(f"/spec/f{number}" for number in range(20_000)))
    assert len(mask.pointers) == MOST_POINTERS
    assert [str(bad) for bad in mask.bad] == ["there are more than 300 pointers; the others have no effect"]


def test_mask_sends_live_value_of_another_version() -> None:
    ours = {**managed(AUTOPILOT.name, {"f:spec": {"f:liveMigration": {}}}), "apiVersion": "example.com/v1beta1"}
    live = a_gadget({"virtualization": {"liveMigration": 7}, "size": 1}, managedFields=[ours])
    left = masked(a_gadget({"size": 2}), live, AUTOPILOT, parse("/spec/virtualization"))
    assert left.intent == a_gadget({"virtualization": {"liveMigration": 7}, "size": 2})


def test_mask_without_live_object_leaves_fields_out() -> None:
    intent = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "m"}, "data": {"a": "1", "b": "2"}}
    left = masked(intent, None, AUTOPILOT, parse("/data/a"))
    assert left.intent == {**intent, "data": {"b": "2"}}
    assert left.notes == ("/data/a: the live object has no such value, so none is sent",)
    assert masked(intent, None, AUTOPILOT, Mask()).intent == intent
    assert masked(intent, None, AUTOPILOT, Mask((Pointer(("data",)),))).intent.keys() == {*intent} - {"data"}


OWNED = {"f:spec": {"f:size": {}, "f:mode": {}, "f:colour": {}}}


def test_mask_carries_masked_fields_and_no_others() -> None:
    live = a_gadget({"size": 1, "mode": "Fast", "colour": "red"}, managedFields=[managed(AUTOPILOT.name, OWNED)])
    left = masked(a_gadget({"size": 2}), live, AUTOPILOT, parse("/spec/mode"))
    assert left.intent == a_gadget({"size": 2, "mode": "Fast"}), "nothing asks for the colour any more"


def test_mask_carries_a_field_of_a_list_item_with_its_key_alone() -> None:
    item = {".": {}, "f:name": {}, "f:port": {}, "f:weight": {}}
    owned = managed(AUTOPILOT.name, {"f:spec": {"f:ports": {'k:{"name":"web"}': item}}})
    live = a_gadget({"ports": [{"name": "web", "port": 80, "weight": 7}]}, managedFields=[owned])
    left = masked(a_gadget({"size": 2}), live, AUTOPILOT, parse("/spec/ports/0/port"))
    assert left.intent == a_gadget({"size": 2, "ports": [{"name": "web", "port": 80}]})


def test_mask_of_an_item_that_the_live_list_does_not_have_sends_none_there() -> None:
    item = {".": {}, "f:name": {}, "f:port": {}}
    owned = managed(AUTOPILOT.name, {"f:spec": {"f:ports": {'k:{"name":"web"}': item}}})
    live = a_gadget({"ports": [{"name": "web", "port": 80}]}, managedFields=[owned])
    wanted = a_gadget({"ports": [{"name": "web", "port": 80}, {"name": "ssh", "port": 22}]})
    left = masked(wanted, live, AUTOPILOT, parse("/spec/ports/1/port"))
    assert left.intent == live | {"metadata": {"name": "g"}}


def test_mask_carries_the_items_before_a_masked_one() -> None:
    item = {".": {}, "f:name": {}, "f:port": {}}
    items = {f'k:{{"name":"{name}"}}': item for name in ("web", "dns", "ssh")}
    ports = [{"name": "web", "port": 80}, {"name": "dns", "port": 53}, {"name": "ssh", "port": 22}]
    live = a_gadget({"ports": ports}, managedFields=[managed(AUTOPILOT.name, {"f:spec": {"f:ports": items}})])
    for _ in range(2):
        left = masked(a_gadget({"size": 2}), live, AUTOPILOT, parse("/spec/ports/1/port"))
        assert left.intent == a_gadget({"size": 2, "ports": ports[:2]}), "only what is behind it goes"


def test_mask_carries_a_list_without_keys_as_a_whole() -> None:
    owned = managed(AUTOPILOT.name, {"f:spec": {"f:args": {}, "f:size": {}}})
    live = a_gadget({"args": ["a", "b"], "size": 1}, managedFields=[owned])
    left = masked(a_gadget({"mode": "Fast"}), live, AUTOPILOT, parse("/spec/args/1"))
    assert left.intent == a_gadget({"mode": "Fast", "args": ["a", "b"]})
