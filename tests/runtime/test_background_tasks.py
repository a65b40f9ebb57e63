"""What runs beside a controller: from the start, to the end, and relied on before anything is reconciled."""

import asyncio

from tests.eventually import eventually
from tests.runtime.managers import GRACE, WATCHER, Reconcile, Watcher, a_source, nothing, running
from tests.stamper import CONFIG_MAP, a_paper
from virt_steward.kube.client import Client
from virt_steward.objects.identity import Key
from virt_steward.runtime.controller import ControllerDefinition, Toolbox
from virt_steward.runtime.debug import DebugReply, DebugRequest
from virt_steward.runtime.outcomes import Done, Outcome
from virt_steward_demo.local.controlplane import ControlPlane


class Cache:
    """A background task that settles when it may, and says what happens to it."""

    def __init__(self) -> None:
        self.may_settle = asyncio.Event()
        self.steps: list[str] = []

    async def run(self) -> None:
        self.steps.append("runs")
        try:
            await asyncio.Event().wait()
        finally:
            self.steps.append("ended")

    async def settled(self) -> None:
        self.steps.append("asked")
        await self.may_settle.wait()


def an_accompanied_watcher(namespace: str, cache: Cache, reconcile: Reconcile) -> ControllerDefinition:
    def build(tools: Toolbox) -> Watcher:
        tools.accompany(cache)
        return Watcher(tools, a_source(CONFIG_MAP, namespace), reconcile)

    return ControllerDefinition("watcher", WATCHER, build)


async def test_background_task_settles_before_reconciles(
    control_plane: ControlPlane, admin: Client, namespace: str
) -> None:
    cache = Cache()

    async def note(_tools: Toolbox, _key: Key) -> Outcome:
        cache.steps.append("reconciled")
        return Done()

    await admin.create(a_paper(namespace, "one"))
    async with running(control_plane, an_accompanied_watcher(namespace, cache, note)) as process:
        assert await eventually(lambda: "asked" in cache.steps and process.manager.not_ready() is None)
        assert "reconciled" not in cache.steps
        cache.may_settle.set()
        assert await eventually(lambda: "reconciled" in cache.steps)
    assert cache.steps == ["runs", "asked", "reconciled", "ended"]


async def test_manager_stops_before_background_task_settles(control_plane: ControlPlane, namespace: str) -> None:
    cache = Cache()
    async with running(control_plane, an_accompanied_watcher(namespace, cache, nothing)) as process:
        assert await eventually(lambda: "asked" in cache.steps)
        assert await process.stop() < GRACE
    assert cache.steps[-1] == "ended"


async def test_debug_page_waits_for_caches(control_plane: ControlPlane, admin: Client, namespace: str) -> None:
    cache = Cache()

    def build(tools: Toolbox) -> Watcher:
        tools.accompany(cache)
        tools.show("/debug/watcher", page)
        return Watcher(tools, a_source(CONFIG_MAP, namespace), nothing)

    async def page(_: DebugRequest) -> str:
        return "all of it"

    await admin.create(a_paper(namespace, "one"))
    async with running(control_plane, ControllerDefinition("watcher", WATCHER, build)) as process:
        [unit] = process.manager.units
        answer = unit.pages["/debug/watcher"]
        assert await eventually(lambda: "asked" in cache.steps)
        assert await answer(DebugRequest()) == DebugReply(
            "watcher: caches are not complete yet; try again\n", status=503
        )
        cache.may_settle.set()

        async def is_told() -> bool:
            return bool(await answer(DebugRequest()) == "all of it")

        assert await eventually(is_told)
