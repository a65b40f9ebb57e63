import asyncio

import pytest

from tests.ssa.gadgets import (
    Build,
    a_config_map,
    a_gadget,
    a_gadget_status,
    a_name,
    a_pod_template,
    claims,
    live,
    managers_of,
    written,
)
from virt_steward.kube.client import ApplyResult, Client
from virt_steward.kube.errors import Claim, NotFound
from virt_steward.objects.identity import ref_of
from virt_steward.ssa.apply import Contested, apply
from virt_steward.ssa.locks import Absent, ObservedAs, Stale, Unlocked
from virt_steward.ssa.managers import ADVISOR, AUTOPILOT, PLACEMENT_STATUS
from virt_steward.ssa.preview import Conflicts, preview
from virt_steward.ssa.refusals import WouldOverwrite

BYPASS = Unlocked("the admin asked for it")


async def test_apply_creates_absent_object(client: Client) -> None:
    intent = a_gadget(a_name(), size=1)
    outcome = await apply(client, intent, ADVISOR, Absent())
    assert isinstance(outcome, ApplyResult)
    assert outcome.created
    assert outcome.object == await live(client, intent)


async def test_apply_changes_read_object(client: Client) -> None:
    name = a_name()
    seen = await written(client, a_gadget(name, size=1), by=ADVISOR.name)
    outcome = await apply(client, a_gadget(name, size=2), ADVISOR, ObservedAs(seen))
    assert isinstance(outcome, ApplyResult)
    assert not outcome.created
    assert outcome.object["spec"]["size"] == 2


@pytest.mark.parametrize(
    "theirs",
    [pytest.param({"color": "red"}, id="does not conflict"), pytest.param({"size": 1}, id="conflicts")],
)
async def test_apply_refuses_object_that_appeared(client: Client, theirs: dict[str, str | int]) -> None:
    name = a_name()
    appeared = await written(client, a_gadget(name, **theirs), by="kubectl")
    assert isinstance(await apply(client, a_gadget(name, size=2), ADVISOR, Absent()), Stale)
    assert await live(client, appeared) == appeared


@pytest.mark.parametrize("build", [a_gadget, a_config_map], ids=["custom resource", "object without generation"])
async def test_apply_does_not_recreate_deleted_object(client: Client, build: Build) -> None:
    seen = await written(client, build(a_name(), color="red"), by=ADVISOR.name)
    await client.delete(ref_of(seen))
    intent = build(seen["metadata"]["name"], color="blue")
    assert isinstance(await apply(client, intent, ADVISOR, ObservedAs(seen)), Stale)
    with pytest.raises(NotFound):
        await live(client, seen)


async def test_apply_refuses_recreated_object(client: Client) -> None:
    name = a_name()
    seen = await written(client, a_gadget(name, size=1), by=ADVISOR.name)
    await client.delete(ref_of(seen))
    successor = await written(client, a_gadget(name, color="red"), by="kubectl")
    assert isinstance(await apply(client, a_gadget(name, size=2), ADVISOR, ObservedAs(seen)), Stale)
    taking = claims(color="kubectl")
    assert isinstance(await apply(client, a_gadget(name, color="blue"), ADVISOR, ObservedAs(seen), taking), Stale)
    assert await live(client, seen) == successor


async def test_apply_lets_one_of_two_writers_win(client: Client) -> None:
    name = a_name()
    seen = await written(client, a_gadget(name, size=1), by="kubectl")
    outcomes = await asyncio.gather(
        apply(client, a_gadget(name, color="red"), ADVISOR, ObservedAs(seen)),
        apply(client, a_gadget(name, tags=["x"]), AUTOPILOT, ObservedAs(seen)),
    )
    assert sorted(type(outcome).__name__ for outcome in outcomes) == ["ApplyResult", "Stale"]


async def test_apply_shares_associative_list(client: Client) -> None:
    name = a_name()
    await written(client, a_pod_template(name, web="w:1"), by="kubectl")
    seen = await written(client, a_pod_template(name, web="w:1", sidecar="s:1"), by=ADVISOR.name)
    outcome = await apply(client, a_pod_template(name, web="w:1", sidecar="s:2"), ADVISOR, ObservedAs(seen))
    assert isinstance(outcome, ApplyResult)
    containers = outcome.object["template"]["spec"]["containers"]
    assert {item["name"]: item["image"] for item in containers} == {"web": "w:1", "sidecar": "s:2"}


async def test_apply_reports_unlisted_claims(client: Client) -> None:
    name = a_name()
    seen = await written(client, a_gadget(name, size=1, args=["a"]), by="kubectl")
    outcome = await apply(client, a_gadget(name, size=2, args=["b"]), ADVISOR, ObservedAs(seen))
    assert outcome == Contested(claims(size="kubectl", args="kubectl"))
    assert await live(client, seen) == seen


async def test_apply_by_autopilot_takes_only_read_fields(client: Client) -> None:
    name = a_name()
    seen = await written(client, a_gadget(name, size=1, args=["a"]), by="kubectl")
    intent = a_gadget(name, size=2, args=["b"])
    outcome = await apply(client, intent, AUTOPILOT, ObservedAs(seen))
    assert isinstance(outcome, ApplyResult)
    assert outcome.object["spec"] == {"size": 2, "args": ["b"], "mode": "Automatic"}
    later = await written(client, a_gadget(name, size=3), by="editor")
    assert isinstance(await apply(client, intent, AUTOPILOT, ObservedAs(outcome.object)), Stale)
    assert await live(client, seen) == later


async def test_apply_takes_listed_claims(client: Client) -> None:
    name = a_name()
    seen = await written(client, a_gadget(name, size=1, color="red"), by="kubectl")
    intent = a_gadget(name, size=2)
    planned = await preview(client, intent, ADVISOR, seen)
    assert isinstance(planned, Conflicts)
    outcome = await apply(client, intent, ADVISOR, ObservedAs(seen), planned.claims)
    assert isinstance(outcome, ApplyResult)
    assert outcome.object["spec"] == planned.planned["spec"]
    assert outcome.object["spec"] == {"size": 2, "color": "red", "mode": "Automatic"}


@pytest.mark.parametrize(
    "listed",
    [
        pytest.param(claims(size="kubectl"), id="one more conflicts"),
        pytest.param(claims(size="kubectl", color="kubectl", args="kubectl"), id="one of them does not conflict"),
        pytest.param(claims(size="kubectl", color="helm"), id="another manager owns one of them"),
    ],
)
async def test_apply_refuses_other_claims(client: Client, listed: frozenset[Claim]) -> None:
    name = a_name()
    seen = await written(client, a_gadget(name, size=1, color="red"), by="kubectl")
    outcome = await apply(client, a_gadget(name, size=2, color="blue"), ADVISOR, ObservedAs(seen), listed)
    assert outcome == Contested(claims(size="kubectl", color="kubectl"))
    assert await live(client, seen) == seen


async def test_apply_refuses_claims_on_changed_object(client: Client) -> None:
    name = a_name()
    seen = await written(client, a_gadget(name, size=1), by="kubectl")
    edited = await written(client, a_gadget(name, size=7), by="kubectl")
    outcome = await apply(client, a_gadget(name, size=2), ADVISOR, ObservedAs(seen), claims(size="kubectl"))
    assert isinstance(outcome, Stale)
    assert await live(client, seen) == edited


async def test_apply_bypass_forces(client: Client) -> None:
    name = a_name()
    await written(client, a_gadget(name, size=1, args=["a"]), by="kubectl")
    outcome = await apply(client, a_gadget(name, size=2, args=["b"]), ADVISOR, BYPASS)
    assert isinstance(outcome, ApplyResult)
    assert outcome.object["spec"] == {"size": 2, "args": ["b"], "mode": "Automatic"}


async def test_apply_status_replaces_former_owner(client: Client) -> None:
    name = a_name()
    await written(client, a_gadget(name, size=1), by="kubectl")
    seen = await written(client, a_gadget_status(name, phase="Old"), by="predecessor")
    outcome = await apply(client, a_gadget_status(name, phase="New"), PLACEMENT_STATUS, ObservedAs(seen))
    assert isinstance(outcome, ApplyResult)
    assert outcome.object["status"] == {"phase": "New"}
    assert "predecessor" not in managers_of(outcome.object)


async def test_apply_status_keeps_conditions_of_others(client: Client) -> None:
    name = a_name()
    await written(client, a_gadget(name, size=1), by="kubectl")
    seen = await written(client, a_gadget_status(name, conditions=[{"type": "Ready"}]), by="its-owner")
    intent = a_gadget_status(name, conditions=[{"type": "Placed"}])
    with pytest.raises(WouldOverwrite) as refused:
        await apply(client, intent, PLACEMENT_STATUS, ObservedAs(seen))
    assert refused.value.claims == {Claim("its-owner", ".status.conditions")}
    assert await live(client, seen) == seen
    outcome = await apply(client, intent, PLACEMENT_STATUS, ObservedAs(seen), refused.value.claims)
    assert isinstance(outcome, ApplyResult)
    assert outcome.object["status"]["conditions"] == [{"type": "Placed"}]
