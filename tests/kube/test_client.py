import asyncio
from contextlib import aclosing
from typing import Any

import pytest
from aiohttp import web

from tests.audit import AuditLog
from tests.clients import a_client
from tests.eventually import eventually
from tests.gateway import Gateway
from tests.widgets import V1, WIDGET, Widget, a_widget, the_widget
from virt_steward.kube.client import Client, Selection
from virt_steward.kube.errors import (
    AlreadyExists,
    BadRequest,
    Conflict,
    Forbidden,
    Invalid,
    NotFound,
    NotServed,
    Unavailable,
)
from virt_steward.kube.watch import Put, Watch, projection
from virt_steward.objects.identity import Key, Kind, Ref, ref_of
from virt_steward_demo.local.controlplane import ControlPlane

CONFIG_MAP = Kind("", "ConfigMap")
MEGABYTE = 2**20


def names(objects: list[dict[str, Any]]) -> list[str]:
    return [each["metadata"]["name"] for each in objects]


def a_config_map(namespace: str, **data: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "settings", "namespace": namespace},
        "data": data,
    }


async def test_client_reads_what_it_created(admin: Client, widgets: str) -> None:
    created = await admin.create(a_widget(widgets, size=3))
    assert await admin.get(the_widget(widgets)) == created
    assert (await admin.get(the_widget(widgets), Widget)).spec.size == 3
    with pytest.raises(AlreadyExists, match=f"create Widget {widgets}/one"):
        await admin.create(a_widget(widgets))


async def test_get_distinguishes_not_found_from_not_served(admin: Client, widgets: str) -> None:
    with pytest.raises(NotFound) as error:
        await admin.get(the_widget(widgets))
    assert type(error.value) is NotFound


@pytest.mark.parametrize("may_lag", [False, True])
async def test_list_reads_pages(admin: Client, widgets: str, audit_log: AuditLog, *, may_lag: bool) -> None:
    expected = [f"w{number}" for number in range(5)]
    for name in expected:
        await admin.create(a_widget(widgets, name))

    async def cached() -> bool:
        return names(await admin.list(WIDGET, Selection(widgets), may_lag=True)) == expected

    assert await eventually(cached)
    mark = audit_log.mark()
    pages = [page async for page in admin.pages(WIDGET, Selection(widgets), page=2, may_lag=may_lag)]
    assert [len(page.items) for page in pages] == [2, 2, 1]
    assert [request.verb for request in audit_log.since(mark) if request.namespace == widgets] == ["list"] * 3
    assert names(await admin.list(WIDGET, Selection(widgets))) == expected


@pytest.mark.parametrize(
    ("selection", "expected"),
    [
        pytest.param({"labels": "tier=a"}, ["one"], id="an equal label"),
        pytest.param({"labels": "tier in (a,b),!odd"}, ["one", "two"], id="a set of labels and a missing one"),
        pytest.param({"fields": "metadata.name=two"}, ["two"], id="a name"),
        pytest.param({"labels": "tier", "metadata_only": True}, ["one", "three", "two"], id="metadata alone"),
    ],
)
async def test_list_filters_by_selection(
    selection: dict[str, Any], expected: list[str], admin: Client, widgets: str
) -> None:
    await admin.create(a_widget(widgets, "one", labels={"tier": "a"}))
    await admin.create(a_widget(widgets, "two", labels={"tier": "b"}))
    await admin.create(a_widget(widgets, "three", labels={"tier": "b", "odd": ""}))
    found = await admin.list(WIDGET, Selection(widgets, **selection))
    assert names(found) == expected
    assert ["spec" in each for each in found] == [not selection.get("metadata_only")] * len(found)


@pytest.mark.parametrize("stale", ["uid", "resource_version"])
async def test_delete_checks_preconditions(stale: str, admin: Client, widgets: str) -> None:
    metadata = (await admin.create(a_widget(widgets)))["metadata"]
    seen = {"uid": metadata["uid"], "resource_version": metadata["resourceVersion"]}
    with pytest.raises(Conflict):
        await admin.delete(the_widget(widgets), **(seen | {stale: "1"}))
    await admin.get(the_widget(widgets))
    await admin.delete(the_widget(widgets), **seen)
    with pytest.raises(NotFound):
        await admin.get(the_widget(widgets))


async def test_merge_patch_conflicts_on_old_version(admin: Client, widgets: str) -> None:
    seen = await admin.create(a_widget(widgets, size=1))
    version = {"resourceVersion": seen["metadata"]["resourceVersion"]}
    patched = await admin.merge_patch(the_widget(widgets), {"metadata": version, "spec": {"size": 2}}, manager="me")
    assert patched["spec"] == {"size": 2}
    assert "me" in {entry["manager"] for entry in patched["metadata"]["managedFields"]}
    with pytest.raises(Conflict):
        await admin.merge_patch(the_widget(widgets), {"metadata": version, "spec": {"size": 3}})
    assert (await admin.get(the_widget(widgets)))["spec"] == {"size": 2}


async def test_json_patch_with_failed_test_changes_nothing(admin: Client, widgets: str) -> None:
    await admin.create(a_widget(widgets, size=1))
    change = {"op": "replace", "path": "/spec/size", "value": 2}
    with pytest.raises(Invalid):
        await admin.json_patch(the_widget(widgets), [{"op": "test", "path": "/spec/size", "value": 9}, change])
    patched = await admin.json_patch(the_widget(widgets), [{"op": "test", "path": "/spec/size", "value": 1}, change])
    assert patched["spec"] == {"size": 2}


async def test_apply_reports_whether_it_created(admin: Client, widgets: str) -> None:
    assert (await admin.apply(a_widget(widgets, size=1), manager="me")).created
    again = await admin.apply(a_widget(widgets, size=2), manager="me")
    assert not again.created
    assert again.object["spec"] == {"size": 2}
    forced = await admin.apply(a_widget(widgets, size=3), manager="another", force=True)
    assert forced.object["spec"] == {"size": 3}


@pytest.mark.parametrize("verb", ["apply", "create", "merge patch"])
async def test_dry_run_persists_nothing(verb: str, admin: Client, widgets: str) -> None:
    existing = await admin.create(a_widget(widgets, "existing", size=1))
    match verb:
        case "apply":
            preview = (await admin.apply(a_widget(widgets, size=2), manager="me", dry_run=True)).object
        case "create":
            preview = await admin.create(a_widget(widgets, size=2), dry_run=True)
        case _:
            preview = await admin.merge_patch(ref_of(existing), {"spec": {"size": 2}}, dry_run=True)
    assert preview["spec"] == {"size": 2}
    assert await admin.list(WIDGET, Selection(widgets)) == [existing]


async def test_apply_for_absent_object_never_merges(admin: Client, widgets: str) -> None:
    intent = a_widget(widgets, size=1)
    intent["metadata"]["resourceVersion"] = "1"
    assert (await admin.apply(intent, manager="me")).created
    with pytest.raises(Conflict):
        await admin.apply(intent, manager="me")


async def test_apply_with_uid_does_not_recreate(admin: Client, widgets: str) -> None:
    seen = (await admin.create(a_widget(widgets)))["metadata"]
    await admin.delete(the_widget(widgets))
    intent = a_widget(widgets, size=1)
    intent["metadata"] |= {"uid": seen["uid"], "resourceVersion": seen["resourceVersion"]}
    with pytest.raises(Conflict):
        await admin.apply(intent, manager="me", force=True)
    assert await admin.list(WIDGET, Selection(widgets)) == []


async def test_apply_writes_status_subresource(admin: Client, widgets: str) -> None:
    await admin.create(a_widget(widgets, size=1))
    intent = {"apiVersion": V1, "kind": "Widget", "metadata": {"name": "one", "namespace": widgets}}
    await admin.apply({**intent, "status": {"phase": "Ready"}}, manager="me", subresource="status")
    await admin.merge_patch(the_widget(widgets), {"spec": {"size": 9}, "status": {"n": 1}}, subresource="status")
    await admin.json_patch(
        the_widget(widgets), [{"op": "add", "path": "/status/m", "value": 2}], subresource="status", manager="me"
    )
    found = await admin.get(the_widget(widgets))
    assert (found["spec"], found["status"]) == ({"size": 1}, {"phase": "Ready", "n": 1, "m": 2})


async def test_client_handles_objects_over_a_megabyte(admin: Client, widgets: str) -> None:
    colour = "x" * int(1.2 * MEGABYTE)
    await admin.create(a_widget(widgets, colour=colour))
    await admin.merge_patch(the_widget(widgets), {"spec": {"size": 7}})
    assert (await admin.get(the_widget(widgets), Widget)).spec.colour == colour
    watch = Watch(admin, WIDGET, projection(Widget), selection=Selection(widgets))
    async with asyncio.timeout(10), aclosing(watch.events(await admin.discovery.resource(WIDGET))) as events:
        [put] = [event async for event in _until_put(events)]
    assert (put.object.spec.size, len(put.object.spec.colour)) == (7, len(colour))


async def _until_put(events: Any) -> Any:
    async for event in events:
        if isinstance(event, Put):
            yield event
            return


async def test_create_reports_too_large_object_as_invalid(admin: Client, namespace: str) -> None:
    await admin.create(a_config_map(namespace, large="x" * (MEGABYTE - 100)))
    await admin.delete(Ref(CONFIG_MAP, Key(namespace, "settings")))
    with pytest.raises(Invalid, match="Too long"):
        await admin.create(a_config_map(namespace, large="x" * (MEGABYTE + 1)))


@pytest.mark.parametrize(
    "obj",
    [
        pytest.param({"apiVersion": "no.such.group/v1", "kind": "Widget"}, id="group"),
        pytest.param({"apiVersion": "v1", "kind": "Configmap"}, id="kind"),
        pytest.param({"apiVersion": "v7", "kind": "ConfigMap"}, id="version"),
    ],
)
async def test_client_sends_nothing_for_unknown_kind(
    obj: dict[str, Any], admin: Client, namespace: str, audit_log: AuditLog
) -> None:
    await admin.discovery.refresh()
    mark = audit_log.mark()
    with pytest.raises(NotServed, match=obj["kind"]):
        await admin.apply({**obj, "metadata": {"name": "x", "namespace": namespace}}, manager="me")
    assert [request for request in audit_log.since(mark) if request.user == "admin"] == []


@pytest.mark.parametrize(
    "name", ["../secrets/token", "..", ".", "a/b", "a%2fb", "a?dryRun=All", "a#b", "a b", "a\x00b", "a\nb", "ä"]
)
async def test_client_refuses_invalid_names(name: str, admin: Client, namespace: str, audit_log: AuditLog) -> None:
    await admin.discovery.refresh()
    mark = audit_log.mark()
    for key in (Key(namespace, name), Key(name, "fine")):
        with pytest.raises(BadRequest, match="is not a valid object name"):
            await admin.get(Ref(CONFIG_MAP, key))
    assert [request for request in audit_log.since(mark) if request.user == "admin"] == []


@pytest.mark.parametrize("key", [Key("somewhere", ""), Key("", "somebody"), Key("", "")], ids=repr)
async def test_client_refuses_incomplete_keys(key: Key, admin: Client, widgets: str) -> None:
    await admin.create(a_widget(widgets))
    ref = Ref(WIDGET, Key(widgets if key.namespace else "", key.name))
    for ask in (admin.get(ref), admin.delete(ref), admin.merge_patch(ref, {}), admin.json_patch(ref, [])):
        with pytest.raises(BadRequest, match="is required"):
            await ask
    assert len(await admin.list(WIDGET, Selection(widgets))) == 1


async def test_forbidden_names_the_missing_right(admin: Client, widgets: str, control_plane: ControlPlane) -> None:
    await admin.create({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": _named("poor", widgets)})
    answer = await admin.create(
        {
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "TokenRequest",
            "metadata": _named("poor", widgets),
            "spec": {"expirationSeconds": 600},
        },
        subresource="token",
    )
    async with a_client(control_plane, answer["status"]["token"]) as poor:
        with pytest.raises(Forbidden) as error:
            await poor.merge_patch(the_widget(widgets), {"spec": {"size": 1}})
    assert str(error.value).startswith(f"patch Widget {widgets}/one: ")
    for fact in (f"system:serviceaccount:{widgets}:poor", 'cannot patch resource "widgets"', f'namespace "{widgets}"'):
        assert fact in str(error.value)


def _named(name: str, namespace: str) -> dict[str, str]:
    return {"name": name, "namespace": namespace}


async def test_list_refuses_invalid_answer(gateway: Gateway, control_plane: ControlPlane, widgets: str) -> None:
    async def login_page(request: Any) -> Any:
        return web.Response(text="<html>Log in</html>") if request.path.endswith("/widgets") else None

    gateway.intercept = login_page
    async with a_client(control_plane, server=gateway.server) as client:
        with pytest.raises(Unavailable, match="list Widget"):
            await client.list(WIDGET, Selection(widgets))


async def test_client_reports_invalid_answer_as_unavailable(
    gateway: Gateway, control_plane: ControlPlane, widgets: str
) -> None:
    async def login_page(request: Any) -> Any:
        return web.Response(text="<html>Log in</html>") if "widgets/" in request.path else None

    gateway.intercept = login_page
    async with a_client(control_plane, server=gateway.server) as client:
        for ask in (
            client.get(the_widget(widgets)),
            client.apply(a_widget(widgets), manager="me"),
            client.merge_patch(the_widget(widgets), {}),
        ):
            with pytest.raises(Unavailable, match="invalid answer"):
                await ask
