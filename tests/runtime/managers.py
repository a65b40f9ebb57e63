"""A manager in this process, with a controller that is a test's."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from random import Random
from typing import Any

from tests.clients import a_client
from tests.stamper import CONFIG_MAP
from virt_steward.kube.client import Client, Selection
from virt_steward.kube.watch import projection
from virt_steward.objects.identity import Key, Kind, Ref
from virt_steward.objects.meta import Existing
from virt_steward.runtime.access import Access
from virt_steward.runtime.clock import SystemClock
from virt_steward.runtime.controller import ControllerDefinition, Toolbox, Trigger, itself
from virt_steward.runtime.informer import Source
from virt_steward.runtime.leader import LEASE, LeaseTimes
from virt_steward.runtime.manager import Election, Environment, Manager
from virt_steward.runtime.matters import MatterSettings
from virt_steward.runtime.metrics import Metrics
from virt_steward.runtime.notification_endpoints import Endpoint
from virt_steward.runtime.notifier import Notifier
from virt_steward.runtime.outcomes import Done, Outcome
from virt_steward_demo.local.controlplane import ControlPlane

MOMENTS = LeaseTimes(duration=3, retry=0.3)
GRACE = 5.0
WATCHER = Access("watcher")

Reconcile = Callable[[Toolbox, Key], Awaitable[Outcome]]


class Watcher:
    """A controller on the objects of a source, whose reconcile is a test's."""

    def __init__(self, tools: Toolbox, source: Source[Existing], reconcile: Reconcile) -> None:
        self.triggers: tuple[Trigger[Any], ...] = (Trigger(source, itself),)
        self._tools = tools
        self._reconcile = reconcile

    async def reconcile(self, key: Key) -> Outcome:
        return await self._reconcile(self._tools, key)


def a_source(kind: Kind, namespace: str) -> Source[Existing]:
    return Source(kind, projection(Existing), Selection(namespace, labels="stamp=wanted"))


def a_watcher(namespace: str, reconcile: Reconcile, kind: Kind = CONFIG_MAP) -> ControllerDefinition:
    source = a_source(kind, namespace)
    return ControllerDefinition("watcher", WATCHER, lambda tools: Watcher(tools, source, reconcile))


async def nothing(_tools: Toolbox, _key: Key) -> Outcome:
    return Done()


class Running:
    """A manager at work."""

    def __init__(self, manager: Manager, metrics: Metrics) -> None:
        self.manager = manager
        self.metrics = metrics
        self._stop = asyncio.Event()
        self._task = asyncio.create_task(manager.run(self._stop))

    async def abort(self) -> None:
        """Cancel it, as when another part of the process has failed."""
        self._task.cancel()
        await asyncio.wait((self._task,))

    async def stop(self) -> float:
        """Tell it to stop; gives the seconds that this took."""
        started = time.monotonic()
        self._stop.set()
        await asyncio.wait((self._task,))
        if not self._task.cancelled():
            self._task.result()
        return time.monotonic() - started


@asynccontextmanager
async def running(
    control_plane: ControlPlane,
    definition: ControllerDefinition,
    *,
    election: Election | None = None,
    grace: float = GRACE,
    server: str = "",
    endpoint: Endpoint | None = None,
) -> AsyncIterator[Running]:
    """Run it; its Warning events go to the endpoint, if one is given."""
    async with a_client(control_plane, server=server) as client:
        metrics = Metrics()
        clock = SystemClock()
        notifier = Notifier({"team": endpoint} if endpoint else {}, clock, Random(), metrics.registry)
        notify = {definition.name: "team"} if endpoint else {}
        around = Environment(
            client.connection,
            client.discovery,
            clock,
            metrics,
            "tests",
            election,
            grace,
            notifier,
            matters=MatterSettings(notify, "default", "tests-notified"),
        )
        async with notifier.running():
            started = Running(Manager(around, [definition]), metrics)
            try:
                yield started
            finally:
                await started.stop()


def an_election(namespace: str, times: LeaseTimes = MOMENTS) -> Election:
    return Election(namespace, "ann", "tests-lease", times)


def the_lease(namespace: str, access: Access = WATCHER) -> Ref:
    return Ref(LEASE, Key(namespace, access.lease))


async def holder(admin: Client, lease: Ref) -> str:
    spec = (await admin.get(lease))["spec"]
    return str(spec.get("holderIdentity", ""))
