from typing import Any

import pytest
from hypothesis import given

from tests.objects.builders import managed
from tests.objects.fieldsv1 import encode
from tests.objects.strategies import is_part, modest, objects_and_fields
from tests.ssa.gadgets import (
    Build,
    Object,
    a_config_map,
    a_gadget,
    a_gadget_status,
    a_name,
    a_service,
    live,
    managers_of,
    written,
)
from virt_steward.kube.client import ApplyResult, Client
from virt_steward.kube.errors import FieldConflict, Invalid
from virt_steward.objects.extract import extract
from virt_steward.objects.fieldpaths import Field
from virt_steward.objects.fieldsets import FieldSet
from virt_steward.objects.identity import ref_of
from virt_steward.objects.normalize import sanitized
from virt_steward.ssa.apply import apply
from virt_steward.ssa.locks import ObservedAs, Stale
from virt_steward.ssa.managers import AUTOPILOT, RELEASE
from virt_steward.ssa.ownership import carried, owned_alone
from virt_steward.ssa.preview import Unchanged, preview
from virt_steward.ssa.release import Released, disclaim, release, release_operations

KINDS = [pytest.param(a_gadget, id="a custom resource"), pytest.param(a_config_map, id="a config map")]

BEFORE: dict[str, Any] = {
    "size": 1,
    "args": ["a"],
    "ports": [{"name": "web", "port": 80}, {"name": "dns", "port": 53}],
    "tags": ["x", "y"],
    "limits": {"cpu": "1", "memory": "2"},
}


async def applied_by_us(client: Client, intent: Object) -> Object:
    """Return the object after the intent was applied on top of what fell away from it."""
    seen = await live(client, intent)
    outcome = await apply(client, carried(intent, seen, AUTOPILOT), AUTOPILOT, ObservedAs(seen))
    assert isinstance(outcome, ApplyResult)
    return outcome.object


@pytest.mark.parametrize(
    ("now", "result"),
    [
        pytest.param({"size": 1}, BEFORE, id="a whole section"),
        pytest.param({**BEFORE, "size": 2, "tags": ["z"]}, {**BEFORE, "size": 2, "tags": ["z", "x", "y"]}, id="tags"),
        pytest.param(
            {**BEFORE, "ports": [{"name": "dns"}]},
            {**BEFORE, "ports": [{"name": "web", "port": 80}, {"name": "dns", "port": 53}]},
            id="a field of one item, and another item",
        ),
        pytest.param({**BEFORE, "args": ["b"]}, {**BEFORE, "args": ["b"]}, id="nothing, when an atomic list changes"),
        pytest.param(
            {**BEFORE, "limits": {"cpu": "3"}},
            {**BEFORE, "limits": {"cpu": "3"}},
            id="nothing, when an atomic map changes",
        ),
    ],
)
async def test_carried_keeps_dropped_field(client: Client, now: dict[str, Any], result: dict[str, Any]) -> None:
    name = a_name()
    await written(client, a_gadget(name, **BEFORE), by=AUTOPILOT.name)
    after = await applied_by_us(client, a_gadget(name, **now))
    expected = {**result, "mode": "Automatic"}
    for spec in (after["spec"], expected):
        spec.update({"tags": sorted(spec["tags"]), "ports": sorted(spec["ports"], key=lambda port: port["name"])})
    assert after["spec"] == expected


async def test_carried_matches_defaulted_keys(client: Client) -> None:
    before = a_service(a_name(), web=80, dns=53)
    before["spec"]["ports"].append({"name": "dns-udp", "port": 53, "protocol": "UDP"})
    seen = await written(client, before, by=AUTOPILOT.name)
    intent = a_service(seen["metadata"]["name"], dns=53)
    after = await applied_by_us(client, intent)
    ports = {(port["name"], port["port"], port["protocol"]) for port in after["spec"]["ports"]}
    assert ports == {("web", 80, "TCP"), ("dns", 53, "TCP"), ("dns-udp", 53, "UDP")}
    for again in (intent, a_service(seen["metadata"]["name"], web=80)):
        assert await preview(client, carried(again, after, AUTOPILOT), AUTOPILOT, after) == Unchanged(after)


async def test_carried_drops_field_with_another_owner(client: Client) -> None:
    name = a_name()
    await written(client, a_gadget(name, size=1, color="red"), by=AUTOPILOT.name)
    assert (await applied_by_us(client, a_gadget(name, size=1)))["spec"]["color"] == "red"

    await written(client, a_gadget(name, color="red"), by="kubectl")
    seen = await live(client, a_gadget(name))
    assert carried(a_gadget(name, size=1), seen, AUTOPILOT) == a_gadget(name, size=1)
    after = await applied_by_us(client, a_gadget(name, size=1))
    assert after["spec"]["color"] == "red"
    assert owned_alone(after, AUTOPILOT) == FieldSet.of((Field("spec"), Field("size")))
    edited = await client.apply(a_gadget(name, color="blue"), manager="kubectl")
    assert edited.object["spec"]["color"] == "blue"


@pytest.mark.parametrize("build", KINDS)
async def test_release_keeps_values_and_frees_fields(client: Client, build: Build) -> None:
    intent = build(a_name(), color="red")
    seen = await written(client, intent, by=AUTOPILOT.name)
    outcome = await release(client, seen, AUTOPILOT)
    assert isinstance(outcome, Released)
    assert sanitized(outcome.object) == sanitized(seen)
    assert managers_of(outcome.object) == [RELEASE.name]
    freed = await client.apply(build(seen["metadata"]["name"], color="blue"), manager="kubectl")
    assert managers_of(freed.object).count("kubectl") == 1


@pytest.mark.parametrize("build", KINDS)
async def test_release_placeholder_prevents_conflicts(client: Client, build: Build) -> None:
    seen = await written(client, build(a_name(), color="red"), by=AUTOPILOT.name)
    await client.json_patch(ref_of(seen), [{"op": "remove", "path": "/metadata/managedFields/0"}])
    with pytest.raises(FieldConflict):
        await client.apply(build(seen["metadata"]["name"], color="blue"), manager="kubectl")


async def test_release_keeps_entries_of_others(client: Client) -> None:
    name = a_name()
    await written(client, a_gadget(name, size=1), by=AUTOPILOT.name)
    await written(client, a_gadget_status(name, phase="Ready"), by=AUTOPILOT.name)
    seen = await written(client, a_gadget(name, color="red"), by="kubectl")
    outcome = await release(client, seen, AUTOPILOT)
    assert isinstance(outcome, Released)
    entries = outcome.object["metadata"]["managedFields"]
    assert {(entry["manager"], entry.get("subresource", "")) for entry in entries} == {
        (AUTOPILOT.name, "status"),
        ("kubectl", ""),
    }
    assert outcome.object["spec"] == seen["spec"]


async def test_release_refuses_changed_object(client: Client) -> None:
    name = a_name()
    seen = await written(client, a_gadget(name, size=1), by=AUTOPILOT.name)
    edited = await written(client, a_gadget(name, color="red"), by="kubectl")
    assert isinstance(await release(client, seen, AUTOPILOT), Stale)
    assert await live(client, seen) == edited
    await client.delete(ref_of(seen))
    assert isinstance(await release(client, seen, AUTOPILOT), Stale)


async def test_disclaim_retries_on_changed_object(client: Client) -> None:
    name = a_name()
    await written(client, a_gadget(name, size=1), by="kubectl")
    path = {"op": "replace", "path": "/spec/size", "value": 2}
    seen = await client.json_patch(ref_of(a_gadget(name)), [path], manager=RELEASE.name)
    await written(client, a_gadget_status(name, phase="Ready"), by="operator")
    await disclaim(client, seen)
    assert (await client.apply(a_gadget(name, size=3), manager="argocd")).object["spec"]["size"] == 3


async def test_failed_test_operation_is_invalid(client: Client) -> None:
    seen = await written(client, a_gadget(a_name(), size=1), by="kubectl")
    with pytest.raises(Invalid):
        await client.json_patch(ref_of(seen), [{"op": "test", "path": "/metadata/resourceVersion", "value": "1"}])


async def test_release_without_entries_sends_nothing(client: Client) -> None:
    seen = await written(client, a_gadget(a_name(), size=1), by="kubectl")
    assert release_operations(seen, AUTOPILOT) == []
    assert await release(client, seen, AUTOPILOT) == Released(seen)


@modest
@given(objects_and_fields())
def test_carried_of_empty_intent_is_owned_alone(
    made_up: tuple[Object, FieldSet, FieldSet],
) -> None:
    obj, ours, theirs = made_up
    entries = [managed(AUTOPILOT.name, encode(ours)), managed("kubectl", encode(theirs))]
    seen = {**obj, "metadata": {**obj["metadata"], "managedFields": entries}}
    alone = owned_alone(seen, AUTOPILOT)
    assert alone == ours - theirs
    assert carried({}, seen, AUTOPILOT) == extract(seen, alone)


@modest
@given(objects_and_fields())
def test_carried_keeps_intent(made_up: tuple[Object, FieldSet, FieldSet]) -> None:
    obj, ours, wanted = made_up
    seen = {**obj, "metadata": {**obj["metadata"], "managedFields": [managed(AUTOPILOT.name, encode(ours))]}}
    intent = extract(seen, wanted)
    once = carried(intent, seen, AUTOPILOT)
    assert is_part(intent, once)
    assert carried(once, seen, AUTOPILOT) == once
