from typing import Any

import pytest

from tests.objects.builders import managed
from tests.ssa.gadgets import Object, a_gadget, a_gadget_status, a_name, annotated, live, written
from virt_steward.kube.client import Client
from virt_steward.ssa.apply import apply
from virt_steward.ssa.locks import Absent, ObservedAs, Unlocked
from virt_steward.ssa.managers import ADVISOR, AUTOPILOT, PAUSE, PLACEMENT, PLACEMENT_STATUS, WHOLE, FieldManager, Force
from virt_steward.ssa.refusals import (
    NotInTable,
    NotItsField,
    NotItsForce,
    PartialIntent,
    WouldOverwrite,
    refuse_unsafe,
)

OURS, THEIRS = PLACEMENT_STATUS.name, "its-owner"


def seen(obj: Object, *entries: Object) -> ObservedAs:
    metadata = {**obj["metadata"], "uid": "u", "resourceVersion": "7", "managedFields": [*entries]}
    return ObservedAs({**obj, "metadata": metadata})


def on_status(manager: str, fields: dict[str, Any], operation: str = "Apply") -> Object:
    return managed(manager, {"f:status": fields}, operation=operation, subresource="status")


def with_metadata(**metadata: Any) -> Object:
    gadget = a_gadget("one", size=1)
    return {**gadget, "metadata": {**gadget["metadata"], **metadata}}


def test_refuses_undeclared_manager() -> None:
    stranger = FieldManager("kubectl", WHOLE, Force.LISTED, why="")
    with pytest.raises(NotInTable, match="kubectl is not in the table"):
        refuse_unsafe(a_gadget("one", size=1), stranger, Absent())


@pytest.mark.parametrize("name", ["uid", "resourceVersion", "managedFields", "generation", "generateName"])
def test_refuses_server_set_metadata(name: str) -> None:
    with pytest.raises(NotItsField, match=rf"metadata\.{name}"):
        refuse_unsafe(with_metadata(**{name: "x"}), AUTOPILOT, Absent())


@pytest.mark.parametrize(
    ("manager", "intent"),
    [
        pytest.param(AUTOPILOT, a_gadget_status("one", phase="Ready"), id="an intent sets the status"),
        pytest.param(PAUSE, a_gadget("one", size=1), id="the pause marker sets a spec"),
        pytest.param(PLACEMENT, annotated(a_gadget_status("one"), other="x"), id="placement sets another annotation"),
        pytest.param(PLACEMENT_STATUS, a_gadget("one", size=1), id="a status manager sets a spec"),
        pytest.param(PLACEMENT_STATUS, annotated(a_gadget_status("one"), x="y"), id="a status manager annotates"),
    ],
)
def test_refuses_fields_of_others(manager: FieldManager, intent: Object) -> None:
    with pytest.raises(NotItsField, match=f"{manager.name} does not write"):
        refuse_unsafe(intent, manager, Absent())


@pytest.mark.parametrize("manager", [PAUSE, PLACEMENT, PLACEMENT_STATUS], ids=lambda manager: manager.name)
def test_refuses_bypass_for_partial_managers(manager: FieldManager) -> None:
    bare = {name: value for name, value in a_gadget("one").items() if name != "spec"}
    with pytest.raises(NotItsForce, match="only under a lock"):
        refuse_unsafe(bare, manager, Unlocked("hurry"))


def test_lock_requires_read_object() -> None:
    with pytest.raises(ValueError, match="not read from a server"):
        ObservedAs(a_gadget("one", size=1))


async def test_refuses_partial_intent(client: Client) -> None:
    whole = a_gadget(a_name(), size=1)
    before = await written(client, whole, by=AUTOPILOT.name)
    partial = annotated({name: value for name, value in whole.items() if name != "spec"}, paused="true")

    answer = await client.apply(partial, manager=AUTOPILOT.name, dry_run=True)
    assert "size" not in answer.object.get("spec", {})

    with pytest.raises(PartialIntent, match="alone owns fields in spec"):
        await apply(client, partial, AUTOPILOT, ObservedAs(before))
    with pytest.raises(PartialIntent):
        await apply(client, {**partial, "spec": {}}, AUTOPILOT, ObservedAs(before))
    assert await live(client, whole) == before


async def test_allows_missing_shared_section(client: Client) -> None:
    whole = a_gadget(a_name(), size=1)
    await written(client, whole, by=ADVISOR.name)
    before = await written(client, whole, by="kubectl")
    bare = annotated({name: value for name, value in whole.items() if name != "spec"}, x="y")
    await apply(client, bare, ADVISOR, ObservedAs(before))
    assert (await live(client, whole))["spec"]["size"] == 1


@pytest.mark.parametrize(
    ("status", "entries", "wanted"),
    [
        pytest.param(
            {"conditions": [1]}, [on_status(THEIRS, {"f:conditions": {}})], {"conditions": [2]}, id="an atomic list"
        ),
        pytest.param(
            {"conditions": [1]},
            [on_status(OURS, {"f:conditions": {}}), on_status(THEIRS, {"f:conditions": {}}, "Update")],
            {"conditions": [2]},
            id="an atomic list that we own too",
        ),
        pytest.param(
            {"summary": {"a": "1"}}, [on_status(THEIRS, {"f:summary": {}})], {"summary": {"b": "1"}}, id="an atomic map"
        ),
        pytest.param(
            {"ports": [{"name": "x", "args": [1]}]},
            [on_status(THEIRS, {"f:ports": {'k:{"name":"x"}': {".": {}, "f:name": {}, "f:args": {}}}})],
            {"ports": [{"name": "x", "args": [2]}]},
            id="an atomic list in an item of another list",
        ),
    ],
)
def test_refuses_forced_overwrite_of_atomic_values(
    status: dict[str, Any], entries: list[Object], wanted: dict[str, Any]
) -> None:
    lock = seen(a_gadget_status("one", **status), *entries)
    with pytest.raises(WouldOverwrite, match=f"of {THEIRS}") as refused:
        refuse_unsafe(a_gadget_status("one", **wanted), PLACEMENT_STATUS, lock)
    refuse_unsafe(a_gadget_status("one", **wanted), PLACEMENT_STATUS, lock, refused.value.claims)


def test_refuses_forced_overwrite_of_unrecorded_list() -> None:
    lock = seen(a_gadget_status("one", conditions=[1]))
    with pytest.raises(WouldOverwrite, match="not recorded"):
        refuse_unsafe(a_gadget_status("one", conditions=[2]), PLACEMENT_STATUS, lock)


@pytest.mark.parametrize(
    ("status", "entries", "wanted"),
    [
        pytest.param({"conditions": [1]}, [on_status(OURS, {"f:conditions": {}})], {"conditions": [2]}, id="ours"),
        pytest.param({"conditions": [1]}, [on_status(THEIRS, {"f:conditions": {}})], {"conditions": [1]}, id="equal"),
        pytest.param({"conditions": []}, [on_status(THEIRS, {"f:conditions": {}})], {"conditions": [2]}, id="empty"),
        pytest.param({}, [], {"conditions": [2]}, id="absent"),
        pytest.param(
            {"ports": [{"name": "x", "port": 1}]},
            [on_status(THEIRS, {"f:ports": {'k:{"name":"x"}': {".": {}, "f:name": {}, "f:port": {}}}})],
            {"ports": [{"name": "y", "port": 2}]},
            id="a list of keyed items",
        ),
        pytest.param({"phase": "Old"}, [on_status(THEIRS, {"f:phase": {}})], {"phase": "New"}, id="a single value"),
        pytest.param({"summary": {"a": "1"}}, [], {"summary": {"b": "1"}}, id="a map with parts"),
    ],
)
def test_allows_forced_write(status: dict[str, Any], entries: list[Object], wanted: dict[str, Any]) -> None:
    refuse_unsafe(a_gadget_status("one", **wanted), PLACEMENT_STATUS, seen(a_gadget_status("one", **status), *entries))
