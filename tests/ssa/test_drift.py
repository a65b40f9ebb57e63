from typing import Any

import pytest

from tests.ssa.gadgets import a_gadget, a_name, live, written
from virt_steward.kube.client import Client
from virt_steward.objects.identity import ref_of
from virt_steward.ssa.drift import DETAILED, drifts
from virt_steward.ssa.drift_entries import FieldDrift
from virt_steward.ssa.managers import ADVISOR, AUTOPILOT, FieldManager
from virt_steward.ssa.preview import Changes, preview

WANTED: dict[str, Any] = {
    "size": 1,
    "args": ["a", "b"],
    "ports": [{"name": "web", "port": 80}, {"name": "dns", "port": 53}],
}


@pytest.mark.parametrize(
    ("edit", "drift"),
    [
        pytest.param({"size": 7}, ("/spec/size", ("editor",), "7", "1"), id="a value"),
        pytest.param({"args": ["a", "c"]}, ("/spec/args/1", ("editor",), "c", "b"), id="an element of an atomic list"),
        pytest.param({"args": ["a"]}, ("/spec/args/1", ("editor",), None, "b"), id="an atomic list, by shortening it"),
        pytest.param(
            {"ports": [{"name": "web", "port": 80}, {"name": "dns", "port": 5353}]},
            ("/spec/ports/1/port", ("editor",), "5353", "53"),
            id="a field of a keyed item",
        ),
        pytest.param({"size": None}, ("/spec/size", (), None, "1"), id="a value, by removing it"),
    ],
)
@pytest.mark.parametrize("manager", [ADVISOR, AUTOPILOT], ids=["advisor", "autopilot"])
async def test_drifts_name_path_and_manager(
    client: Client,
    manager: FieldManager,
    edit: dict[str, Any],
    drift: tuple[str, tuple[str, ...], str | None, str | None],
) -> None:
    intent = a_gadget(a_name(), **WANTED)
    await written(client, intent, by=manager.name)
    await client.merge_patch(ref_of(intent), {"spec": edit}, manager="editor")
    seen = await live(client, intent)
    (found,) = drifts(await preview(client, intent, manager, seen), manager)
    assert found.entry
    assert (found.path, found.by, found.entry.live, found.entry.planned) == drift
    assert found.entry.manager == ", ".join(found.by)
    assert bool(found.entry.time) is bool(found.by)


async def test_drifts_of_new_intent_are_own(client: Client) -> None:
    name = a_name()
    seen = await written(client, a_gadget(name, size=1), by=ADVISOR.name)
    outcome = await preview(client, a_gadget(name, size=2), ADVISOR, seen)
    (drift,) = drifts(outcome, ADVISOR)
    assert (drift.path, drift.by, drift.is_own) == ("/spec/size", (), True)
    assert not drift.is_foreign


async def test_drifts_include_removed_item(client: Client) -> None:
    intent = a_gadget(a_name(), **WANTED)
    await written(client, intent, by=ADVISOR.name)
    await client.merge_patch(ref_of(intent), {"spec": {"ports": [{"name": "web", "port": 80}]}}, manager="editor")
    outcome = await preview(client, intent, ADVISOR, await live(client, intent))
    assert [drift.path for drift in drifts(outcome, ADVISOR)] == [
        "/spec/ports/-/name",
        "/spec/ports/-/port",
    ]


async def test_drifts_are_empty_without_change(client: Client) -> None:
    intent = a_gadget(a_name(), **WANTED)
    seen = await written(client, intent, by=ADVISOR.name)
    assert drifts(await preview(client, intent, ADVISOR, seen), ADVISOR) == ()


def test_drift_tells_values_of_a_few_fields_only() -> None:
    names = [f"field{number}" for number in range(DETAILED + 2)]
    live, planned = (
        {"apiVersion": "v1", "kind": "Gadget", "metadata": {"name": "one"}, "spec": dict.fromkeys(names, value)}
        for value in (1, 2)
    )
    found = drifts(Changes(live, planned), ADVISOR)
    assert [bool(drift.entry) for drift in found] == [True] * DETAILED + [False] * 2
    assert str(found[0]) == "/spec/field0 is 1, should be 2 (managedFields names no other manager)"
    assert str(found[-1]) == f"/spec/{names[-1]}"


def test_drift_cause_has_path_and_manager() -> None:
    assert FieldDrift("/spec/size", ("editor", "helm")).cause == "/spec/size (set by editor, helm)"
    assert FieldDrift("/spec/size", ()).cause == "/spec/size"
