import pytest

from tests.audit import AuditLog
from tests.ssa.gadgets import (
    Build,
    a_config_map,
    a_gadget,
    a_gadget_status,
    a_name,
    a_pod_template,
    a_service,
    annotated,
    claims,
    live,
    written,
)
from virt_steward.kube.client import Client
from virt_steward.kube.errors import NotFound, NotServed
from virt_steward.objects.identity import Key, Kind, Ref, ref_of
from virt_steward.ssa.locks import Stale
from virt_steward.ssa.managers import ADVISOR, PAUSE, PLACEMENT_STATUS
from virt_steward.ssa.preview import Changes, Conflicts, Creates, Reowns, Unchanged, fetch, preview
from virt_steward.ssa.refusals import RefusedIntent

KINDS = (
    pytest.param(lambda name: a_config_map(name, a="1"), lambda name: a_config_map(name, a="2"), id="a config map"),
    pytest.param(lambda name: a_service(name, web=80), lambda name: a_service(name, web=81), id="a service"),
    pytest.param(
        lambda name: a_pod_template(name, web="w:1"), lambda name: a_pod_template(name, web="w:2"), id="a pod template"
    ),
    pytest.param(
        lambda name: a_gadget(name, size=1, tags=["x"]),
        lambda name: a_gadget(name, size=1, tags=["x", "y"]),
        id="a custom resource",
    ),
)


@pytest.mark.parametrize(("build", "rebuild"), KINDS)
async def test_preview_reports_create_change_and_unchanged(client: Client, build: Build, rebuild: Build) -> None:
    name = a_name()
    created = await preview(client, build(name), ADVISOR, None)
    assert isinstance(created, Creates)
    with pytest.raises(NotFound):
        await client.get(ref_of(build(name)))

    seen = await written(client, build(name), by=ADVISOR.name)
    assert await preview(client, build(name), ADVISOR, seen) == Unchanged(seen)

    changed = await preview(client, rebuild(name), ADVISOR, seen)
    assert isinstance(changed, Changes)
    assert await live(client, seen) == seen


async def test_preview_ignores_server_defaults(client: Client) -> None:
    intent = a_gadget(a_name(), size=1)
    seen = await written(client, intent, by=ADVISOR.name)
    assert seen["spec"]["mode"] == "Automatic"
    assert isinstance(await preview(client, intent, ADVISOR, seen), Unchanged)


async def test_preview_reports_shared_value_as_reowns(client: Client) -> None:
    intent = a_gadget(a_name(), size=1)
    seen = await written(client, intent, by="kubectl")
    assert isinstance(await preview(client, intent, ADVISOR, seen), Reowns)


async def test_preview_reports_released_value_as_reowns(client: Client) -> None:
    name = a_name()
    await written(client, a_gadget(name, size=1, color="red"), by=ADVISOR.name)
    seen = await written(client, a_gadget(name, color="red"), by="kubectl")
    assert isinstance(await preview(client, a_gadget(name, size=1), ADVISOR, seen), Reowns)


async def test_preview_reports_conflicts(client: Client) -> None:
    name = a_name()
    await written(client, a_gadget(name, size=1), by="kubectl")
    seen = await written(client, a_gadget(name, args=["a"]), by="helm")
    outcome = await preview(client, a_gadget(name, size=2, args=["b"], color="red"), ADVISOR, seen)
    assert isinstance(outcome, Conflicts)
    assert outcome.claims == claims(size="kubectl", args="helm")
    assert outcome.planned["spec"] == {"size": 2, "args": ["b"], "color": "red", "mode": "Automatic"}


async def test_preview_forces_own_annotation(client: Client) -> None:
    pointer, *_ = PAUSE.writes
    key = pointer.tokens[-1]
    bare = {name: value for name, value in a_gadget(a_name()).items() if name != "spec"}
    seen = await written(client, annotated(bare, **{key: "false"}), by="kubectl")
    assert isinstance(await preview(client, annotated(bare, **{key: "true"}), PAUSE, seen), Changes)


async def test_preview_is_stale_when_object_changed(client: Client) -> None:
    name = a_name()
    seen = await written(client, a_gadget(name, size=1), by=ADVISOR.name)
    await written(client, a_gadget(name, color="red"), by="kubectl")
    assert isinstance(await preview(client, a_gadget(name, size=1), ADVISOR, seen), Stale)
    assert isinstance(await preview(client, a_gadget(name, size=1, color="blue"), ADVISOR, seen), Stale)


async def test_preview_is_stale_when_object_appeared(client: Client) -> None:
    name = a_name()
    await written(client, a_gadget(name, size=1), by="kubectl")
    assert isinstance(await preview(client, a_gadget(name, color="red"), ADVISOR, None), Stale)
    assert isinstance(await preview(client, a_gadget(name, size=2), ADVISOR, None), Stale)


async def test_preview_request_count(client: Client, audit_log: AuditLog) -> None:
    name = a_name()
    seen = await written(client, a_gadget(name, size=1), by="kubectl")
    mark = audit_log.mark()
    await preview(client, a_gadget(name, size=1), ADVISOR, seen)
    assert [request.verb for request in audit_log.since(mark) if request.name == name] == ["patch"]
    await preview(client, a_gadget(name, size=2), ADVISOR, seen)
    requests = [request for request in audit_log.since(mark) if request.name == name]
    assert [("dryRun=All" in request.uri, request.code) for request in requests] == [
        (True, 200),
        (True, 409),
        (True, 200),
    ]


async def test_preview_refuses_status(client: Client) -> None:
    with pytest.raises(RefusedIntent, match="has no preview"):
        await preview(client, a_gadget_status(a_name(), phase="Ready"), PLACEMENT_STATUS, None)


async def test_fetch_distinguishes_absent_from_not_served(client: Client) -> None:
    intent = a_gadget(a_name(), size=1)
    assert await fetch(client, ref_of(intent)) is None
    seen = await written(client, intent, by="kubectl")
    assert await fetch(client, ref_of(intent)) == seen
    with pytest.raises(NotServed):
        await fetch(client, Ref(Kind("nowhere.example.com", "Gizmo"), Key("", "one")))
