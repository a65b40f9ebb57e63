"""Runs controllers: fills caches, waits for leadership, starts workers; and stops in the reverse order."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from random import Random
from typing import TYPE_CHECKING, Any

import structlog

from virt_steward.kube.client import Caller, Client
from virt_steward.kube.connection import ConnectionPool
from virt_steward.kube.events import Recorder
from virt_steward.objects.identity import Key
from virt_steward.runtime.controller import Toolbox
from virt_steward.runtime.debug import DebugReply
from virt_steward.runtime.informers import Informers, InformerView
from virt_steward.runtime.kinds import DEFINITIONS, Kinds
from virt_steward.runtime.leader import Candidacy, Elector, LeasesOnly, LeaseTimes, Unopposed, WorkReport
from virt_steward.runtime.matters import ConfigMapMemory, MatterNotifications, MatterSettings, memory_name
from virt_steward.runtime.standby import StandBy, other_leases
from virt_steward.runtime.throttle import KeyedBuckets, Rate, TokenTaken
from virt_steward.runtime.worker import Workers
from virt_steward.runtime.workqueue import WorkQueue

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Hashable, Iterable, Iterator

    from virt_steward.kube.connection import Connection
    from virt_steward.kube.discovery import Discovery
    from virt_steward.objects.tls_parameters import TlsParameters
    from virt_steward.runtime.clock import Clock
    from virt_steward.runtime.controller import BackgroundTask, ControllerDefinition, EventHandler
    from virt_steward.runtime.debug import DebugPage, DebugRequest
    from virt_steward.runtime.metrics import Metrics
    from virt_steward.runtime.notifications import NotificationSender

log = structlog.get_logger()

EVENTS = Rate(capacity=25, per_second=1 / 60)
"""The rate of events per object: enough for normal operation, and a limit for a hot loop."""
FLUSH = 1.0
"""Seconds that queued events get when the process stops."""


@dataclass(frozen=True, slots=True)
class Election:
    """How this process takes part in leader election."""

    namespace: str
    identity: str
    manager: str
    times: LeaseTimes


@dataclass(frozen=True, slots=True)
class Environment:
    """What all controllers of a process share."""

    connection: Connection
    discovery: Discovery
    clock: Clock
    metrics: Metrics
    agent: str
    """The first part of every User-Agent."""
    election: Election | None
    """None: without leader election, so this process always leads."""
    grace: float
    """Seconds that running reconciles get when the process stops."""
    notify: NotificationSender
    namespaces: tuple[str, ...] = ()
    """The namespaces that this process watches; none means the whole cluster."""
    matters: MatterSettings = field(default_factory=MatterSettings)
    """Who is notified of what concerns people, for controllers whose objects do not say so."""
    stand_by: bool = True
    """Whether a controller stands by while another implementation of it runs."""
    use_tls: Callable[[TlsParameters], None] = lambda _: None
    """Takes the versions and ciphers of TLS that a controller has found to be the platform's."""


class ControllerRunner:
    """One controller in this process: its queue, its workers, its elector."""

    def __init__(self, definition: ControllerDefinition, around: Environment, informers: Informers) -> None:
        self.name = definition.name
        self._around = around
        self._leading = False
        self._informers = InformerView(informers)
        self.background_tasks: list[BackgroundTask] = []
        self.pages: dict[str, DebugPage] = {}
        self._beginnings: list[Callable[[], None]] = []
        self._is_settled = False
        agent = f"{around.agent} {definition.name}"
        self.elector = self._candidate(definition, agent)
        self.standby = StandBy(self.elector, around.clock)
        client = Client(around.connection, around.discovery, Caller(agent, permit=self.standby))
        self._matters = self._matter_notifications(definition, agent)
        self.recorder = self._recorder(definition, client, agent)
        self.recorders = [self.recorder]
        if definition.access.other_lease and around.stand_by:
            self._informers.of(other_leases(definition.access.other_lease)).tell(self.standby.handle)
            # Another one, since the controller's may not write while it stands by.
            unlimited = Client(around.connection, around.discovery, Caller(agent))
            self.recorders.append(self._recorder(definition, unlimited, agent))
        self.queue: WorkQueue[Any] = WorkQueue(definition.name, around.clock, Random(), around.metrics)  # noqa: S311 - jitter
        tools = Toolbox(
            self._informers,
            client,
            self.recorder,
            around.clock,
            around.metrics.registry,
            self._wake,
            around.notify,
            self.background_tasks.append,
            around.use_tls,
            self._show,
            self._beginnings.append,
        )
        controller = definition.build(tools)
        self._workers = Workers(self.queue, controller.reconcile, definition.concurrency, around.clock, around.metrics)
        self._triggers = [(self._informers.of(trigger.source), trigger.handler) for trigger in controller.triggers]
        for informer, handler in self._triggers:
            informer.tell(self._handler(handler))
        around.metrics.leads(self.name, leading=False)
        around.metrics.stands_by(self.name, standing_by=False)
        around.metrics.events(self.name, lambda: self.recorder.dropped)

    def coroutines(self) -> Iterator[tuple[str, Coroutine[Any, Any, None]]]:
        """What runs as long as the process, whether or not it leads; by name."""
        yield from ((f"{self.name}-events", one.run()) for one in self.recorders)
        yield from ((f"{self.name}-background", one.run()) for one in self.background_tasks)
        if self._matters:
            yield f"{self.name}-notifications", self._matters.run()

    def not_ready(self) -> str | None:
        """Why this controller cannot lead now; None if it can, or does."""
        return f"{self.name}: {self.elector.trouble}" if self.elector.trouble else None

    def failure(self) -> str | None:
        """Why this controller needs a restart; None if it does not."""
        return self._workers.failure()

    async def run(self, stop: asyncio.Event) -> None:
        """Work whenever this process leads, until `stop`."""
        await _first(self._settled(), stop.wait())
        while not stop.is_set():
            await _first(self._stand_by(), stop.wait())
            await _first(self.elector.campaign(), self.standby.appeared(), stop.wait())
            if self.elector.leads:
                await self._lead(stop)
        self.queue.shut_down()

    async def _stand_by(self) -> None:
        """Wait while another implementation of this controller runs."""
        rival = self.standby.rival
        if rival:
            log.warning("standing by", controller=self.name, lease=str(rival.lease), holder=rival.holder)
            self.recorders[-1].once(rival.occurrence)
            self._around.metrics.stands_by(self.name, standing_by=True)
        await self.standby.gone()
        if rival:
            self._around.metrics.stands_by(self.name, standing_by=False)
            log.info("no longer standing by", controller=self.name)

    async def _settled(self) -> None:
        """Wait for the informers first: background tasks may depend on them."""
        await self._informers.settled()
        for task in self.background_tasks:
            await task.settled()
        self._is_settled = True

    def _show(self, path: str, page: DebugPage) -> None:
        async def answer(asked: DebugRequest) -> Any:
            if not self._is_settled:  # until then, unknown objects would look absent
                return DebugReply(f"{self.name}: caches are not complete yet; try again\n", status=503)
            return await page(asked)

        self.pages[path] = answer

    async def _lead(self, stop: asyncio.Event) -> None:
        self._mark_leading(leading=True)
        for begin in self._beginnings:
            begin()
        if self._matters:
            self._matters.reload()
        self._queue_everything()
        self._workers.start()
        holding = asyncio.create_task(self.elector.hold(), name=f"{self.name}-lease")
        try:
            await _first(asyncio.shield(holding), self.standby.appeared(), stop.wait())
            may_write = self.elector.leads and not self.standby.rival
            abandoned = await self._workers.stop(self._around.grace if may_write else 0.0)
            if self.elector.leads:
                await self.recorder.flush(FLUSH)
                if self._matters:
                    await self._matters.flush(FLUSH)
        except BaseException:  # cancelled, or the lease is lost: no worker may go on
            await self._workers.stop(0.0)
            raise
        finally:
            holding.cancel()
            self._mark_leading(leading=False)
        await asyncio.gather(holding, return_exceptions=True)
        if abandoned:  # their requests may still be executed, so the lease must expire first
            log.warning("reconciles cancelled", controller=self.name, keys=[str(key) for key in abandoned])
        else:
            await self.elector.release()

    def _mark_leading(self, *, leading: bool) -> None:
        self._leading = leading
        self._around.metrics.leads(self.name, leading=leading)

    def _queue_everything(self) -> None:
        """Queue all known objects: changes while another replica led are visible in the present state."""
        for informer, handler in self._triggers:
            informer.replay(self._handler(handler))

    def _wake(self, key: Hashable) -> None:
        self._add((key,))

    def _handler(self, handler: EventHandler) -> Callable[[Key, Any, Any], None]:
        return lambda key, before, after: self._add(handler(key, before, after))

    def _add(self, keys: Iterable[Any]) -> None:
        if not self._leading:  # a new leader queues everything; until then keys would only pile up
            return
        for key in keys:
            self.queue.add(key)

    def _recorder(self, definition: ControllerDefinition, client: Client, agent: str) -> Recorder:
        around, reporter = self._around, definition.reporter or definition.name
        limiter, utc = EventLimiter(around.clock), around.clock.utc
        if self._matters is None:
            return Recorder(client, reporter, agent, limiter=limiter, clock=utc)
        return Recorder(client, reporter, agent, limiter=limiter, clock=utc, listener=self._matters.handle)

    def _matter_notifications(self, definition: ControllerDefinition, agent: str) -> MatterNotifications | None:
        around, settings = self._around, self._around.matters
        endpoint = settings.endpoints.get(definition.name)
        if endpoint is None:
            return None
        # Without the permit of a leader: a replica that stands by says so, too.
        client = Client(around.connection, around.discovery, Caller(agent))
        memory = ConfigMapMemory(client, Key(settings.namespace, memory_name(definition.name)), settings.manager)
        return MatterNotifications(
            definition.name,
            endpoint,
            around.notify,
            rules=definition.notifications,
            memory=memory,
            clock=around.clock,
        )

    def _candidate(self, definition: ControllerDefinition, agent: str) -> Elector | Unopposed:
        around, election = self._around, self._around.election
        if election is None:
            return Unopposed()
        lease = Key(election.namespace, definition.access.lease)
        candidacy = Candidacy(lease, election.identity, election.manager, election.times)
        caller = Caller(agent, timeout=election.times.usable / 2, pool=ConnectionPool.LEASE)
        client = Client(around.connection, LeasesOnly(around.connection), caller)
        return Elector(client, candidacy, around.clock, Random(), self._report)  # noqa: S311 - jitter

    def _report(self) -> WorkReport:
        return WorkReport(self._workers.last_success, self.queue.failing)


class Manager:
    """All controllers of this process, with shared informers."""

    def __init__(self, around: Environment, definitions: Iterable[ControllerDefinition]) -> None:
        reader = Client(around.connection, around.discovery, Caller(around.agent))
        self.informers = Informers(reader, around.namespaces)
        self._kinds = Kinds(around.discovery)
        self.informers.of(DEFINITIONS).tell(self._kinds.handle)
        self.units = [ControllerRunner(definition, around, self.informers) for definition in definitions]

    def not_ready(self) -> str | None:
        """Why this process is not ready; None if it is."""
        reasons = (self.informers.unsettled(), *(unit.not_ready() for unit in self.units))
        return "; ".join(reason for reason in reasons if reason) or None

    def failure(self) -> str | None:
        """Why this process needs a restart; None if it does not. An unreachable API server is no reason."""
        return "; ".join(reason for unit in self.units if (reason := unit.failure())) or None

    async def run(self, stop: asyncio.Event) -> None:
        """Run until `stop`; then finish or cancel reconciles within the grace period, and release the leases."""
        async with asyncio.TaskGroup() as background:
            tasks = [
                background.create_task(coroutine, name=name)
                for name, coroutine in (
                    ("kinds", self._kinds.run()),
                    *((f"informer-{informer.source.kind}", informer.run()) for informer in self.informers),
                    *(task for unit in self.units for task in unit.coroutines()),
                )
            ]
            async with asyncio.TaskGroup() as work:
                work.create_task(stop.wait(), name="stop")
                for unit in self.units:
                    work.create_task(unit.run(stop), name=unit.name)
            for task in tasks:
                task.cancel()


class EventLimiter:
    """Limits the events per object, so that a hot loop cannot flood the server."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._buckets: KeyedBuckets[str] = KeyedBuckets(EVENTS)

    def allows(self, source: str) -> bool:
        return isinstance(self._buckets.take(source, self._clock.now()), TokenTaken)


async def _first(*awaitables: Coroutine[Any, Any, Any] | asyncio.Future[Any]) -> None:
    """Wait for the first to end, and cancel the others. Raises its error."""
    tasks = [asyncio.ensure_future(awaitable) for awaitable in awaitables]
    try:
        ended, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    for task in ended:
        task.result()
