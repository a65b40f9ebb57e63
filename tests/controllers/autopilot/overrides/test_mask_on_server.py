"""Masks, as the real server takes them."""

from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.controllers.autopilot.overrides.contraptions import (
    Object,
    Write,
    a_contraption,
    a_name,
    masked_apply,
    on_a_server,
    sent,
    written,
)
from tests.controllers.autopilot.overrides.masks import a_scene, edits_survive, masked_values_stay
from virt_steward.controllers.autopilot.overrides.mask import parse
from virt_steward.kube.client import Client
from virt_steward.objects.identity import ref_of
from virt_steward.objects.ownership import who_owns
from virt_steward.objects.paths import Pointer, get, has
from virt_steward.ssa.managers import AUTOPILOT

OURS = AUTOPILOT.name
PORTS = [{"name": "web", "port": 80}, {"name": "dns", "port": 53}]


@on_a_server(examples=30)
@given(data=st.data())
async def test_masked_values_stay_for_any_history(admin: Client, contraptions: str, data: st.DataObject) -> None:
    await masked_values_stay(admin, await a_scene(admin, contraptions, data))


@on_a_server(examples=30)
@given(data=st.data())
async def test_masked_edits_survive_for_any_history(admin: Client, contraptions: str, data: st.DataObject) -> None:
    await edits_survive(admin, await a_scene(admin, contraptions, data), data)


async def test_masked_edit_survives_in_item_that_is_no_longer_wanted(admin: Client, contraptions: str) -> None:
    obj = a_contraption(contraptions, a_name())
    dns = {"name": "dns", "labels": {"a": "ours"}}
    await written(admin, obj, Write(OURS, {"base": 1, "ports": [dns]}, {}, as_update=False))
    edit = {"op": "replace", "path": "/spec/ports/0/labels/a", "value": "edited"}
    await admin.json_patch(ref_of(obj), [edit], manager="kubectl-edit")
    intent = {**obj, "spec": {"base": 1, "ports": [{"name": "web", "port": 80}]}}
    for _ in range(2):
        after = await masked_apply(admin, intent, parse("/spec/ports/0/labels/a"))
        assert after["spec"]["ports"] == [{"name": "dns", "labels": {"a": "edited"}}, {"name": "web", "port": 80}]


SIZE = {"base": 1, "size": 1}


@dataclass(frozen=True)
class Case:
    writes: list[tuple[str, Any]]
    """By whom, and what."""
    intent: Any
    mask: str
    owners: set[str]
    """Of the masked value, in the end."""


@pytest.mark.parametrize(
    "case",
    [
        pytest.param(Case([(OURS, SIZE)], {"size": 2}, "/spec/size", {OURS}), id="is solely ours"),
        pytest.param(
            Case([("argocd", SIZE), (OURS, SIZE)], {"size": 2}, "/spec/size", {"argocd"}), id="is ours and theirs"
        ),
        pytest.param(
            Case([(OURS, {"base": 1}), ("argocd", SIZE)], {"size": 2}, "/spec/size", {"argocd"}), id="is theirs"
        ),
        pytest.param(Case([(OURS, {"base": 1})], {"size": 2}, "/spec/size", set()), id="is absent"),
        pytest.param(Case([("argocd", {"base": 1})], {}, "/spec/base", {"argocd"}), id="is all that is wanted"),
        pytest.param(
            Case([(OURS, SIZE), ("argocd", {"base": 1})], {"base": 1}, "/spec/base", {"argocd"}),
            id="is all that is wanted, beside a field of ours that is not",
        ),
        pytest.param(Case([(OURS, {"base": 1})], {}, "/spec/mode", set()), id="is a default of the server"),
        pytest.param(
            Case([(OURS, {"args": ["a", "b"]})], {"args": ["x", "y"]}, "/spec/args/1", {OURS}), id="is in our list"
        ),
        pytest.param(
            Case([(OURS, {"base": 1}), ("argocd", {"args": ["a", "b"]})], {"args": ["x", "y"]}, "/spec/args/1", {OURS}),
            id="is in a list of theirs, which we take",
        ),
        pytest.param(
            Case(
                [(OURS, {"limits": {"cpu": "1", "memory": "2"}})],
                {"limits": {"cpu": "9", "memory": "9"}},
                "/spec/limits/memory",
                {OURS},
            ),
            id="is in an undivided map",
        ),
        pytest.param(
            Case([(OURS, {"ports": PORTS})], {"ports": PORTS[:1]}, "/spec/ports/1", {OURS}), id="is an item of ours"
        ),
        pytest.param(
            Case(
                [(OURS, {"ports": PORTS})],
                {"ports": [{"name": "dns", "port": 9}, {"name": "web", "port": 80}]},
                "/spec/ports/1/port",
                {OURS},
            ),
            id="is in an item that stands elsewhere in the intent",
        ),
        pytest.param(
            Case(
                [(OURS, {"ports": PORTS[:1]}), ("argocd", {"ports": PORTS[1:]})],
                {"ports": [*PORTS[:1], {"name": "dns", "port": 9}]},
                "/spec/ports/1/port",
                {"argocd"},
            ),
            id="is in an item of theirs",
        ),
        pytest.param(
            Case([(OURS, {"ports": PORTS})], {"ports": PORTS}, "/spec/ports/1/name", {OURS}), id="is the key of an item"
        ),
        pytest.param(Case([(OURS, {"tags": ["a", "b"]})], {"tags": ["a"]}, "/spec/tags/1", {OURS}), id="is in a set"),
        pytest.param(
            Case([(OURS, {"nested": {"a": 1}})], {"nested": {"a": 2}}, "/spec", {OURS}), id="is the whole spec"
        ),
    ],
)
async def test_masked_value_keeps_value_and_owners(admin: Client, contraptions: str, case: Case) -> None:
    obj = a_contraption(contraptions, a_name())
    for by, spec in case.writes:
        before = await written(admin, obj, Write(by, spec, {}, as_update=False))
    pointer = Pointer.parse(case.mask)
    for _ in range(2):
        after = await masked_apply(admin, {**obj, "spec": {"base": 1, **case.intent}}, parse(case.mask))
        assert has(after, pointer) == has(before, pointer)
        assert not has(after, pointer) or get(after, pointer) == get(before, pointer)
        assert {owner.manager for owner in who_owns(after, pointer)} == case.owners


async def test_masked_element_of_atomic_list_stays(admin: Client, contraptions: str) -> None:
    obj = a_contraption(contraptions, a_name())
    await written(admin, obj, Write("argocd", {"args": ["a", "b", "c", "d"]}, {}, as_update=False))
    after = await masked_apply(admin, {**obj, "spec": {"args": ["x", "y"]}}, parse("/spec/args/2"))
    assert after["spec"]["args"] == ["x", "y", "c"]


async def test_masked_value_of_another_version_stays(admin: Client, contraptions: str) -> None:
    old = a_contraption(contraptions, a_name(), version="v1beta1")
    spec = {"base": 1, "size": 1, "nested": {"a": 1}, "ports": PORTS}
    before = await written(admin, old, Write(OURS, spec, {}, as_update=False))
    new = a_contraption(contraptions, before["metadata"]["name"], base=2)
    for _ in range(2):
        after = await masked_apply(admin, new, parse("/spec/size,/spec/nested/a,/spec/ports/1/port"))
        assert after["spec"] == {**before["spec"], "base": 2}


async def test_masked_metadata_keeps_identity(admin: Client, contraptions: str) -> None:
    obj = a_contraption(contraptions, a_name(), base=1)
    await written(admin, obj, Write(OURS, {"base": 1}, {"l": "ours"}, as_update=False))
    await admin.merge_patch(ref_of(obj), {"metadata": {"labels": {"m": "theirs"}}}, manager="kubectl-edit")
    intent: Object = {**obj, "metadata": {**obj["metadata"], "labels": {"l": "x", "m": "x", "n": "x"}}}
    after = await masked_apply(admin, intent, parse("/metadata"))
    assert after["metadata"]["labels"] == {"l": "ours", "m": "theirs"}


@pytest.mark.parametrize(("index", "names"), [(0, ["tcp", "new-udp"]), (1, ["new-tcp", "udp"])])
async def test_masked_item_is_found_without_defaulted_key(admin: Client, index: int, names: list[str]) -> None:
    ports = [{"name": "tcp", "port": 53}, {"name": "udp", "port": 53, "protocol": "UDP"}]
    service = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": a_name(), "namespace": "default"},
        "spec": {"ports": ports},
    }
    await sent(admin, service)
    renamed = [{**port, "name": f"new-{port['name']}"} for port in ports]
    after = await masked_apply(admin, {**service, "spec": {"ports": renamed}}, parse(f"/spec/ports/{index}/name"))
    assert [port["name"] for port in after["spec"]["ports"]] == names
