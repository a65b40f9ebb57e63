"""Streams that fall silent: those of a dead server, and those of a kind without bookmarks on a quiet cluster."""

import asyncio
import json
from contextlib import aclosing
from dataclasses import replace
from typing import Any

import pytest
from aiohttp import web

from tests.clients import a_client
from tests.eventually import eventually
from tests.gateway import Gateway
from tests.kube.watches import PATIENCE, Followed, followed
from tests.proxy import FaultProxy
from tests.widgets import a_widget
from virt_steward.kube.client import Client, Selection
from virt_steward.kube.errors import TimedOut
from virt_steward.kube.watch import Watch, projection
from virt_steward.objects.identity import Kind
from virt_steward.objects.meta import Existing
from virt_steward_demo.local.controlplane import ControlPlane


async def test_watch_reopens_a_silent_stream(
    proxy: FaultProxy, control_plane: ControlPlane, admin: Client, widgets: str
) -> None:
    async with (
        a_client(control_plane, server=proxy.server) as client,
        followed(client, widgets, silence=0.5) as events,
    ):
        await events.until("Synced")
        proxy.freeze()
        await admin.create(a_widget(widgets))
        assert await events.until(TimedOut.__name__) == [TimedOut.__name__]
        await proxy.cut()
        proxy.thaw()
        assert (await events.until("put one"))[-1] == "put one"


EVENT = Kind("", "Event", "events")


@pytest.mark.parametrize("kind", [EVENT, replace(EVENT, group="events.k8s.io")], ids=str)
async def test_watch_without_bookmarks_reopens_without_trouble(
    kind: Kind, gateway: Gateway, control_plane: ControlPlane, admin: Client, widgets: str
) -> None:
    """The API server sends no bookmarks for Events: on a quiet cluster, silence does not mean that it is gone."""

    def resumed() -> int:
        return sum("watch" in request.query and "resourceVersion" in request.query for request in gateway.requests)

    async with a_client(control_plane, server=gateway.server) as client:
        watch = Watch(client, kind, projection(Existing), selection=Selection(widgets), silence=0.5)
        async with aclosing(watch.events(await client.discovery.resource(kind))) as stream:
            events = Followed(stream)
            await events.until("Synced")
            reading = asyncio.create_task(events.until("put something"))
            assert await eventually(lambda: resumed() > 2)
            await admin.create(an_event(widgets, "something"))
            assert set(await reading) == {"Synced", "put something"}


def an_event(namespace: str, name: str) -> dict[str, Any]:
    metadata = {"namespace": namespace, "name": name}
    about = {"apiVersion": "v1", "kind": "Namespace", "name": namespace, "namespace": namespace}
    return {"apiVersion": "v1", "kind": "Event", "metadata": metadata, "involvedObject": about, "reason": "Tested"}


async def test_watch_with_bookmarks_is_interrupted_by_silence(
    gateway: Gateway, control_plane: ControlPlane, widgets: str
) -> None:
    """Where bookmarks have come before, their absence means that the connection is dead."""

    async def silent_after_a_bookmark(request: web.BaseRequest) -> web.StreamResponse | None:
        if "watch" not in request.query:
            return None
        response = web.StreamResponse()
        await response.prepare(request)
        synced = {"resourceVersion": "7", "annotations": {"k8s.io/initial-events-end": "true"}}
        for metadata in (synced, {"resourceVersion": "8"}):
            await response.write(json.dumps({"type": "BOOKMARK", "object": {"metadata": metadata}}).encode() + b"\n")
        await asyncio.sleep(PATIENCE)
        return response

    gateway.intercept = silent_after_a_bookmark
    async with (
        a_client(control_plane, server=gateway.server) as client,
        followed(client, widgets, silence=0.5) as events,
    ):
        assert await events.until(TimedOut.__name__) == ["Reset", "Synced", TimedOut.__name__]
