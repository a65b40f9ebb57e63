import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import aclosing

import pytest
from aiohttp import web

from tests.clients import a_client
from tests.gateway import Gateway, a_status
from tests.kube.watches import PATIENCE
from tests.proxy import FaultProxy
from tests.widgets import WIDGET, Widget, a_widget, the_widget
from virt_steward.kube.client import Client, Selection
from virt_steward.kube.errors import Forbidden
from virt_steward.kube.watch import snapshots
from virt_steward.objects.identity import Key
from virt_steward_demo.local.controlplane import ControlPlane


async def test_snapshots_are_complete_after_each_change(
    proxy: FaultProxy, control_plane: ControlPlane, admin: Client, widgets: str
) -> None:
    for name in ("one", "two"):
        await admin.create(a_widget(widgets, name))
    async with (
        asyncio.timeout(PATIENCE),
        a_client(control_plane, server=proxy.server) as client,
        aclosing(snapshots(client, WIDGET, Widget, Selection(widgets))) as stream,
    ):
        assert {key.name for key in await anext(stream)} == {"one", "two"}
        await admin.create(a_widget(widgets, "three"))
        assert {key.name for key in await anext(stream)} == {"one", "two", "three"}
        await proxy.cut()
        await admin.delete(the_widget(widgets, "two"))
        seen = [{key.name for key in known} async for known in until_absent(stream, Key(widgets, "two"))]
        assert seen[-1] == {"one", "three"}
        assert all({"one", "three"} <= names for names in seen)


async def until_absent(stream: AsyncIterator[Mapping[Key, Widget]], key: Key) -> AsyncIterator[Mapping[Key, Widget]]:
    async for known in stream:
        yield known
        if key not in known:
            return


async def test_snapshots_raise_forbidden(gateway: Gateway, control_plane: ControlPlane, widgets: str) -> None:
    async def forbidden(request: web.BaseRequest) -> web.StreamResponse | None:
        return a_status(403, "Forbidden") if "watch" in request.query else None

    gateway.intercept = forbidden
    async with (
        a_client(control_plane, server=gateway.server) as client,
        aclosing(snapshots(client, WIDGET, Widget, Selection(widgets))) as stream,
    ):
        with pytest.raises(Forbidden):
            await anext(stream)
