from typing import Any

import pytest

from tests.ssa.gadgets import a_gadget, a_name, live, written
from virt_steward.kube.client import Client
from virt_steward.objects.identity import ref_of
from virt_steward.ssa.drift import FieldDrift, drifts
from virt_steward.ssa.managers import ADVISOR, AUTOPILOT, FieldManager
from virt_steward.ssa.preview import preview

WANTED: dict[str, Any] = {
    "size": 1,
    "args": ["a", "b"],
    "ports": [{"name": "web", "port": 80}, {"name": "dns", "port": 53}],
}


@pytest.mark.parametrize(
    ("edit", "drift"),
    [
        pytest.param({"size": 7}, FieldDrift(".spec.size", ("editor",)), id="a value"),
        pytest.param({"args": ["a", "c"]}, FieldDrift(".spec.args[1]", ("editor",)), id="an element of an atomic list"),
        pytest.param({"args": ["a"]}, FieldDrift(".spec.args[1]", ("editor",)), id="an atomic list, by shortening it"),
        pytest.param(
            {"ports": [{"name": "web", "port": 80}, {"name": "dns", "port": 5353}]},
            FieldDrift('.spec.ports[name="dns"].port', ("editor",)),
            id="a field of a keyed item",
        ),
        pytest.param({"size": None}, FieldDrift(".spec.size", ()), id="a value, by removing it"),
    ],
)
@pytest.mark.parametrize("manager", [ADVISOR, AUTOPILOT], ids=["advisor", "autopilot"])
async def test_drifts_name_path_and_manager(
    client: Client, manager: FieldManager, edit: dict[str, Any], drift: FieldDrift
) -> None:
    intent = a_gadget(a_name(), **WANTED)
    await written(client, intent, by=manager.name)
    await client.merge_patch(ref_of(intent), {"spec": edit}, manager="editor")
    seen = await live(client, intent)
    assert drifts(await preview(client, intent, manager, seen), manager) == (drift,)


async def test_drifts_of_new_intent_are_own(client: Client) -> None:
    name = a_name()
    seen = await written(client, a_gadget(name, size=1), by=ADVISOR.name)
    outcome = await preview(client, a_gadget(name, size=2), ADVISOR, seen)
    (drift,) = drifts(outcome, ADVISOR)
    assert drift == FieldDrift(".spec.size", (), is_own=True)
    assert not drift.is_foreign


async def test_drifts_include_removed_item(client: Client) -> None:
    intent = a_gadget(a_name(), **WANTED)
    await written(client, intent, by=ADVISOR.name)
    await client.merge_patch(ref_of(intent), {"spec": {"ports": [{"name": "web", "port": 80}]}}, manager="editor")
    outcome = await preview(client, intent, ADVISOR, await live(client, intent))
    assert [drift.path for drift in drifts(outcome, ADVISOR)] == [
        '.spec.ports[name="dns"].name',
        '.spec.ports[name="dns"].port',
    ]


async def test_drifts_are_empty_without_change(client: Client) -> None:
    intent = a_gadget(a_name(), **WANTED)
    seen = await written(client, intent, by=ADVISOR.name)
    assert drifts(await preview(client, intent, ADVISOR, seen), ADVISOR) == ()


def test_drift_text_has_path_and_manager() -> None:
    assert str(FieldDrift(".spec.size", ("editor", "helm"))) == ".spec.size (set by editor, helm)"
    assert str(FieldDrift(".spec.size", ())) == ".spec.size"
