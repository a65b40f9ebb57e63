"""How controllers stop: told to, cut off, cancelled, or without their lease."""

import asyncio

from aiohttp import web

from tests.eventually import eventually
from tests.gateway import Gateway, a_status
from tests.runtime.managers import GRACE, MOMENTS, a_watcher, an_election, holder, nothing, running, the_lease
from tests.stamper import CONFIG_MAP, a_paper
from virt_steward.kube.client import Client
from virt_steward.objects.identity import Key, Ref
from virt_steward.runtime.controller import Toolbox
from virt_steward.runtime.outcomes import Done, Outcome
from virt_steward_demo.local.controlplane import ControlPlane


class Gate:
    """A reconcile that says when it runs, and ends when it may."""

    def __init__(self) -> None:
        self.entered = 0
        self.cut_off = 0
        self.may_end = asyncio.Event()

    async def __call__(self, tools: Toolbox, key: Key) -> Outcome:
        self.entered += 1
        try:
            await self.may_end.wait()
        except asyncio.CancelledError:
            self.cut_off += 1
            raise
        patch = {"metadata": {"annotations": {"reconciled": "yes"}}}
        await tools.client.merge_patch(Ref(CONFIG_MAP, key), patch)
        return Done()


async def test_stop_lets_reconcile_write_within_grace(
    control_plane: ControlPlane, admin: Client, namespace: str
) -> None:
    gate = Gate()
    await admin.create(a_paper(namespace, "one"))
    async with running(control_plane, a_watcher(namespace, gate), election=an_election(namespace)) as process:
        assert await eventually(lambda: gate.entered == 1)
        stopping = asyncio.create_task(process.stop())
        asyncio.get_running_loop().call_later(1.5 * MOMENTS.duration, gate.may_end.set)  # it renews meanwhile
        await stopping
    paper = await admin.get(Ref(CONFIG_MAP, Key(namespace, "one")))
    assert paper["metadata"]["annotations"] == {"reconciled": "yes"}
    assert await holder(admin, the_lease(namespace)) == ""


async def test_stop_cancels_reconcile_and_keeps_lease(
    control_plane: ControlPlane, admin: Client, namespace: str
) -> None:
    gate = Gate()
    await admin.create(a_paper(namespace, "one"))
    definition = a_watcher(namespace, gate)
    async with running(control_plane, definition, election=an_election(namespace), grace=0.3) as process:
        assert await eventually(lambda: gate.entered == 1)
        assert 0.3 <= await process.stop() < GRACE
    assert gate.cut_off == 1
    assert await holder(admin, the_lease(namespace)) == "ann"  # what was sent may still be executed


async def test_cancelled_manager_stops_workers(control_plane: ControlPlane, admin: Client, namespace: str) -> None:
    gate = Gate()
    await admin.create(a_paper(namespace, "one"))
    async with running(control_plane, a_watcher(namespace, gate), election=an_election(namespace)) as process:
        assert await eventually(lambda: gate.entered == 1)
        await process.abort()
        assert gate.cut_off == 1
        assert [task for task in asyncio.all_tasks() if task.get_name().startswith("watcher")] == []


async def test_lost_lease_cancels_reconcile(control_plane: ControlPlane, admin: Client, namespace: str) -> None:
    gate = Gate()
    await admin.create(a_paper(namespace, "one"))
    async with running(control_plane, a_watcher(namespace, gate), election=an_election(namespace)) as process:
        assert await eventually(lambda: gate.entered == 1)
        await admin.merge_patch(the_lease(namespace), {"spec": {"holderIdentity": "bob"}})
        assert await eventually(lambda: gate.cut_off == 1)
        gate.may_end.set()
        (unit,) = process.manager.units
        assert not unit.elector.leads
        assert await eventually(lambda: gate.entered >= 2 and unit.elector.leads)  # its write wakes it once more


async def test_stop_before_leading(control_plane: ControlPlane, namespace: str, gateway: Gateway) -> None:
    async def unavailable(request: web.BaseRequest) -> web.StreamResponse | None:
        return a_status(503, "ServiceUnavailable") if "configmaps" in request.path else None

    gateway.intercept = unavailable
    async with running(control_plane, a_watcher(namespace, nothing), server=gateway.server) as process:
        assert await eventually(lambda: any("configmaps" in request.path for request in gateway.requests))
        assert await process.stop() < GRACE
