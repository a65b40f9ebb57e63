import asyncio
import time
from typing import Any

import pytest
from aiohttp import web
from structlog.testing import capture_logs

from tests.clients import a_client
from tests.eventually import eventually
from tests.gateway import Gateway, forwarded
from tests.proxy import FaultProxy
from tests.runtime.informers import Told, informed, kinds_followed, sizes, widgets_of
from tests.widgets import GROUP, WIDGET, a_crd, a_new_kind, a_version, a_widget, install_crd, the_widget
from virt_steward.kube.client import Client, Selection
from virt_steward.kube.discovery import CUSTOM_RESOURCE_DEFINITION
from virt_steward.kube.errors import NotServed
from virt_steward.kube.watch import projection
from virt_steward.objects.identity import Key, Kind, Ref
from virt_steward.objects.meta import Existing
from virt_steward.runtime.informer import Informer, InformerState, Source
from virt_steward_demo.local.controlplane import ControlPlane

PATIENCE = 30
RESYNC = 15
"""Seconds at most; two or three are usual, and a stream that is silent would be given up after more than these."""


def the_definition(kind: Kind) -> Ref:
    return Ref(CUSTOM_RESOURCE_DEFINITION, Key("", f"{kind.plural}.{GROUP}"))


def a_gadget(kind: Kind, namespace: str, name: str = "one", *, version: str = "v1", **spec: Any) -> dict[str, Any]:
    return {**a_widget(namespace, name, **spec), "apiVersion": f"{GROUP}/{version}", "kind": kind.name}


async def settled(informer: Informer[Any]) -> None:
    await asyncio.wait_for(informer.settled(), PATIENCE)


async def test_informer_calls_handlers_with_before_and_after(admin: Client, widgets: str) -> None:
    await admin.create(a_widget(widgets, size=1))
    async with informed(admin, widgets_of(widgets)) as (informer, told):
        await settled(informer)
        assert told.changes == [("one", None, 1)]
        await admin.merge_patch(the_widget(widgets), {"spec": {"size": 2}})
        await admin.create(a_widget(widgets, "two", size=5))
        await admin.delete(the_widget(widgets))
        assert await eventually(lambda: len(told.changes) == 4)
        assert told.changes[1:] == [("one", 1, 2), ("two", None, 5), ("one", 2, None)]
        assert sizes(informer) == {"two": 5}


async def test_informer_replays_to_late_handler(admin: Client, widgets: str) -> None:
    await admin.create(a_widget(widgets, "bad", size="large"))
    await admin.create(a_widget(widgets, "good", size=1))
    async with informed(admin, widgets_of(widgets)) as (informer, _):
        await settled(informer)
        late = Told()
        informer.tell(late)
        assert late.changes == [("bad", None, None), ("good", None, 1)]


async def test_informer_keeps_unreadable_object(admin: Client, widgets: str) -> None:
    await admin.create(a_widget(widgets, "bad", size=1))
    key = Key(widgets, "bad")
    with capture_logs() as logged:
        async with informed(admin, widgets_of(widgets)) as (informer, told):
            await settled(informer)
            await admin.merge_patch(the_widget(widgets, "bad"), {"spec": {"size": "large"}})
            assert await eventually(lambda: informer.store.unreadable(key) is not None)
            assert informer.store.get(key) is None
            await admin.merge_patch(the_widget(widgets, "bad"), {"spec": {"size": 2}})
            assert await eventually(lambda: sizes(informer) == {"bad": 2})
            assert informer.store.unreadable(key) is None
            await admin.merge_patch(the_widget(widgets, "bad"), {"spec": {"size": "large"}})
            await admin.delete(the_widget(widgets, "bad"))
            assert await eventually(lambda: len(told.changes) == 5)
    first, *others = told.changes
    assert first == ("bad", None, 1)
    assert others == [("bad", 1, None), ("bad", None, 2), ("bad", 2, None), ("bad", None, None)]
    complaints = [line for line in logged if line["event"] == "object unreadable"]
    assert [line["object"] for line in complaints] == [f"{widgets}/bad"] * 2


async def test_informer_reports_changes_after_outage(
    proxy: FaultProxy, control_plane: ControlPlane, admin: Client, widgets: str
) -> None:
    for name in ("kept", "changed", "deleted"):
        await admin.create(a_widget(widgets, name, size=1))
    async with (
        a_client(control_plane, server=proxy.server) as client,
        informed(client, widgets_of(widgets)) as (informer, told),
    ):
        await settled(informer)
        told.changes.clear()
        await proxy.refuse()
        await proxy.cut()
        assert await eventually(lambda: informer.state is InformerState.BROKEN)
        assert f"{proxy.server} unreachable" in informer.trouble
        await admin.merge_patch(the_widget(widgets, "changed"), {"spec": {"size": 2}})
        await admin.delete(the_widget(widgets, "deleted"))
        await admin.create(a_widget(widgets, "made", size=3))
        await proxy.accept()
        assert await eventually(lambda: len(told.changes) == 3, within=RESYNC)
        assert set(told.changes) == {("changed", 1, 2), ("deleted", 1, None), ("made", None, 3)}
        assert (informer.state, informer.trouble) == (InformerState.SYNCED, "")


async def test_informer_reports_only_differences_of_new_list(
    gateway: Gateway, control_plane: ControlPlane, admin: Client, widgets: str
) -> None:
    async def short_then_forgotten(request: web.BaseRequest) -> web.StreamResponse | None:
        """End the first stream soon, change things, and resume in a past that the real server has forgotten."""
        if "sendInitialEvents" in request.query:
            return await gateway.forward(request, timeoutSeconds="1")
        if "resourceVersion" not in request.query:
            return None
        gateway.intercept = forwarded
        await admin.merge_patch(the_widget(widgets, "changed"), {"spec": {"size": 2}})
        await admin.delete(the_widget(widgets, "deleted"))
        await admin.create(a_widget(widgets, "made", size=3))
        return await gateway.forward(request, resourceVersion="1")

    for name in ("kept", "changed", "deleted"):
        await admin.create(a_widget(widgets, name, size=1))
    gateway.intercept = short_then_forgotten
    async with (
        a_client(control_plane, server=gateway.server) as client,
        informed(client, widgets_of(widgets)) as (informer, told),
    ):
        await settled(informer)
        told.changes.clear()
        with capture_logs() as logged:
            assert await eventually(lambda: len(told.changes) == 3)
        levels = {line["log_level"] for line in logged if line["event"] == "watch interrupted"}
        assert levels == {"info"}, "an expired resourceVersion is part of normal operation"
        assert sorted(told.changes, key=str) == [("changed", 1, 2), ("deleted", 1, None), ("made", None, 3)]
        assert sum("sendInitialEvents" in request.query for request in gateway.requests) == 2


async def test_informer_survives_server_restart(control_plane: ControlPlane, admin: Client, widgets: str) -> None:
    for name in ("kept", "deleted"):
        await admin.create(a_widget(widgets, name, size=1))
    async with kinds_followed(admin, admin.discovery), informed(admin, widgets_of(widgets)) as (informer, told):
        await settled(informer)
        told.changes.clear()
        control_plane.kill_apiserver()
        assert await eventually(lambda: informer.state is InformerState.BROKEN)
        control_plane.start_apiserver()
        await asyncio.to_thread(control_plane.wait_until_ready)
        back = time.monotonic()
        await admin.delete(the_widget(widgets, "deleted"))
        await admin.create(a_widget(widgets, "made", size=3))
        assert await eventually(lambda: sizes(informer) == {"kept": 1, "made": 3}, within=RESYNC)
        assert time.monotonic() - back <= RESYNC
        assert sorted(told.changes) == [("deleted", 1, None), ("made", None, 3)]
        assert informer.state is InformerState.SYNCED


async def test_informer_follows_kind_that_is_removed_and_added(admin: Client, namespace: str) -> None:
    kind = a_new_kind()
    async with kinds_followed(admin, admin.discovery), informed(admin, widgets_of(namespace, kind)) as (informer, told):
        await settled(informer)
        assert informer.state is InformerState.ABSENT
        await install_crd(admin, a_crd(kind.name))
        await admin.create(a_gadget(kind, namespace, "old", size=1))
        assert await eventually(lambda: sizes(informer) == {"old": 1})
        await admin.delete(the_definition(kind))
        assert await eventually(lambda: informer.state is InformerState.ABSENT)
        assert sizes(informer) == {}
        await install_crd(admin, a_crd(kind.name))
        await admin.create(a_gadget(kind, namespace, "new", size=2))
        assert await eventually(lambda: sizes(informer) == {"new": 2})
        assert told.changes == [("old", None, 1), ("old", 1, None), ("new", None, 2)]


async def test_informer_removes_objects_of_kind_removed_in_outage(
    proxy: FaultProxy, control_plane: ControlPlane, admin: Client, namespace: str
) -> None:
    kind = a_new_kind()
    await install_crd(admin, a_crd(kind.name))
    await admin.create(a_gadget(kind, namespace, size=1))
    source = widgets_of(namespace, kind)
    async with a_client(control_plane, server=proxy.server) as client, informed(client, source) as (informer, told):
        await settled(informer)
        await proxy.refuse()
        await proxy.cut()
        await admin.delete(the_definition(kind))
        assert await eventually(lambda: _is_absent(admin, kind))
        await proxy.accept()
        assert await eventually(lambda: informer.state is InformerState.ABSENT)
        assert told.changes == [("one", None, 1), ("one", 1, None)]


async def _is_absent(client: Client, kind: Kind) -> bool:
    try:
        await client.list(kind)
    except NotServed:
        return True
    return False


async def test_informer_follows_kind_to_another_version(admin: Client, namespace: str) -> None:
    kind = a_new_kind()
    await install_crd(admin, a_crd(kind.name, versions=("v1alpha1",)))
    await admin.create(a_gadget(kind, namespace, version="v1alpha1", size=1))
    async with kinds_followed(admin, admin.discovery), informed(admin, widgets_of(namespace, kind)) as (informer, told):
        await settled(informer)
        switched = [a_version("v1alpha1", served=False), a_version("v1", stored=True)]
        await admin.merge_patch(the_definition(kind), {"spec": {"versions": switched}})
        assert await eventually(lambda: _prefers(admin, kind, "v1"))
        await admin.create(a_gadget(kind, namespace, "two", size=2))
        assert await eventually(lambda: sizes(informer) == {"one": 1, "two": 2})
        assert [change for change in told.changes if change[2] is None] == []


async def _prefers(client: Client, kind: Kind, version: str) -> bool:
    return (await client.discovery.resource(kind)).version == version


async def test_informer_keeps_objects_when_discovery_lags(
    gateway: Gateway, control_plane: ControlPlane, admin: Client, widgets: str
) -> None:
    # A server that starts lists the kinds of definitions only after a while, too briefly for a test to rely on.
    async def starting(request: web.BaseRequest) -> web.StreamResponse | None:
        if request.path != "/apis":
            return None
        return web.json_response({"kind": "APIGroupDiscoveryList", "items": []})

    await admin.create(a_widget(widgets, size=1))
    async with (
        a_client(control_plane, server=gateway.server) as client,
        informed(client, widgets_of(widgets)) as (informer, told),
    ):
        await settled(informer)
        gateway.intercept = starting
        await client.discovery.refresh()
        gateway.intercept = forwarded
        await admin.create(a_widget(widgets, "two", size=2))
        assert await eventually(lambda: len(told.changes) == 2)
        await client.discovery.refresh()
        await admin.create(a_widget(widgets, "three", size=3))
        assert await eventually(lambda: len(told.changes) == 3)
        assert told.changes == [("one", None, 1), ("two", None, 2), ("three", None, 3)]


async def lagging(request: web.BaseRequest) -> web.StreamResponse | None:
    """As one of several API servers that does not know a kind yet: its watch and its discovery both say so."""
    if request.path == "/apis":
        return web.json_response({"kind": "APIGroupDiscoveryList", "items": []})
    return web.Response(status=404, text="404 page not found") if "watch" in request.query else None


async def test_informer_keeps_objects_when_server_lags(
    gateway: Gateway, control_plane: ControlPlane, admin: Client, widgets: str
) -> None:
    await admin.create(a_widget(widgets, size=1))
    async with (
        a_client(control_plane, server=gateway.server) as client,
        informed(client, widgets_of(widgets)) as (informer, told),
    ):
        await settled(informer)
        gateway.intercept = lagging
        await gateway.cut()
        before = len(gateway.requests)
        assert await eventually(lambda: any(one.path == "/apis" for one in gateway.requests[before:]))
        gateway.intercept = forwarded
        await admin.create(a_widget(widgets, "two", size=2))
        assert await eventually(lambda: told.changes == [("one", None, 1), ("two", None, 2)])


async def test_informer_finds_absent_kind_again(
    gateway: Gateway, control_plane: ControlPlane, admin: Client, widgets: str
) -> None:
    await admin.create(a_widget(widgets, size=1))
    async with (
        a_client(control_plane, server=gateway.server) as client,
        informed(client, widgets_of(widgets), rechecks=(0.05,) * 3 + (0.2,) * 20) as (informer, told),
    ):
        await settled(informer)
        gateway.intercept = lagging
        await gateway.cut()
        assert await eventually(lambda: informer.state is InformerState.ABSENT)
        gateway.intercept = forwarded
        assert await eventually(lambda: informer.state is InformerState.SYNCED)
        assert told.changes == [("one", None, 1), ("one", 1, None), ("one", None, 1)]


async def test_informer_recovers_when_right_is_granted(
    admin: Client, widgets: str, control_plane: ControlPlane
) -> None:
    await admin.create({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": _named(widgets)})
    request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "metadata": _named(widgets)}
    answer = await admin.create(request, subresource="token")
    await admin.create(a_widget(widgets, size=1))
    async with (
        a_client(control_plane, answer["status"]["token"]) as poor,
        informed(poor, widgets_of(widgets)) as (informer, _),
    ):
        assert await eventually(lambda: "forbidden" in informer.trouble)
        waiting = asyncio.create_task(informer.settled())
        assert informer.state is InformerState.STARTING
        assert informer.is_denied
        assert informer.store.denied == {widgets}
        rules = [{"apiGroups": [GROUP], "resources": ["widgets"], "verbs": ["list", "watch"]}]
        rbac = {"apiVersion": "rbac.authorization.k8s.io/v1", "metadata": _named(widgets)}
        await admin.create({**rbac, "kind": "Role", "rules": rules})
        role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "poor"}
        subjects = [{"kind": "ServiceAccount", **_named(widgets)}]
        await admin.create({**rbac, "kind": "RoleBinding", "roleRef": role, "subjects": subjects})
        assert not waiting.done(), "whoever acts on it must not take it for empty"
        assert await eventually(lambda: sizes(informer) == {"one": 1})
        assert (informer.state, informer.trouble) == (InformerState.SYNCED, "")
        assert informer.store.denied == set()
        assert not informer.is_denied
        await waiting


def _named(namespace: str) -> dict[str, str]:
    return {"name": "poor", "namespace": namespace}


async def test_informer_updates_indexes(admin: Client, widgets: str) -> None:
    source = widgets_of(widgets, indexes={"colour": lambda widget: [widget.spec.colour]})
    await admin.create(a_widget(widgets, "one", colour="red"))
    await admin.create(a_widget(widgets, "two", colour="red"))
    async with informed(admin, source) as (informer, _):
        await settled(informer)

        def names(colour: str) -> list[str]:
            return [each.metadata.name for each in informer.store.by("colour", colour)]

        assert (names("red"), names("blue")) == (["one", "two"], [])
        await admin.merge_patch(the_widget(widgets, "one"), {"spec": {"colour": "blue"}})
        assert await eventually(lambda: names("blue") == ["one"])
        assert names("red") == ["two"]
        await admin.delete(the_widget(widgets, "two"))
        assert await eventually(lambda: names("red") == [])


async def test_informer_watches_metadata_only(admin: Client, widgets: str) -> None:
    await admin.create(a_widget(widgets))
    source = Source(WIDGET, projection(Existing), Selection.one(Key(widgets, "one"), metadata_only=True))
    informer = Informer(admin, source)
    task = asyncio.ensure_future(informer.run())
    await settled(informer)
    assert list(informer.store.keys()) == [Key(widgets, "one")]
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
