"""The composition root: settings → connection → controllers → manager. The only wiring."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import socket
import sys
import uuid
from contextlib import asynccontextmanager
from random import Random
from typing import TYPE_CHECKING

import structlog

from virt_steward import __version__
from virt_steward.kube import faults
from virt_steward.kube.client import Caller, Client
from virt_steward.kube.connection import Connection, unobserved
from virt_steward.kube.discovery import Discovery
from virt_steward.kube.kubeconfig import IN_CLUSTER, load_kubeconfig
from virt_steward.runtime.clock import SystemClock
from virt_steward.runtime.debug import queues_page
from virt_steward.runtime.endpoints import load_endpoints
from virt_steward.runtime.manager import Election, Environment, Manager
from virt_steward.runtime.metrics import Metrics
from virt_steward.runtime.notifications import Notifier
from virt_steward.runtime.probes import Checks, Probes
from virt_steward.settings import check_endpoints
from virt_steward.ssa import managers

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterable

    from virt_steward.console.server import Console
    from virt_steward.kube.kubeconfig import ClusterConfig
    from virt_steward.runtime.controller import ControllerDefinition
    from virt_steward.settings import Settings

log = structlog.get_logger()

AGENT = f"virt-steward/{__version__}"
_SIGNALS = (signal.SIGTERM, signal.SIGINT)


def say(text: str) -> None:
    """To whoever started the process: not to the log, which others may read."""
    print(text, file=sys.stderr, flush=True)  # noqa: T201 - that is what it is for


async def run(
    settings: Settings,
    definitions: Iterable[ControllerDefinition],
    stop: asyncio.Event | None = None,
    tell: Callable[[str], None] = say,
) -> None:
    """Run the controllers until SIGTERM, SIGINT or `stop`. Links to the console are told, each works once."""
    if point := faults.arm(os.environ):
        log.warning("a fault point is armed", point=point)
    metrics = Metrics()
    endpoints = load_endpoints(settings.notify_config) if settings.notify_config else {}
    check_endpoints(settings.notify, endpoints)
    notifier = Notifier(endpoints, SystemClock(), Random(), metrics.registry)  # noqa: S311 - jitter
    cluster = load_kubeconfig(settings.kubeconfig, settings.context, env=os.environ)
    connection = Connection(cluster, user_agent=AGENT, observe=metrics.request_observed)
    try:
        around = Environment(
            connection,
            Discovery(connection),
            SystemClock(),
            metrics,
            AGENT,
            _election(settings),
            settings.grace,
            notifier,
            settings.watch_namespaces,
            settings.notify,
        )
        manager = Manager(around, definitions)
        console = _console(settings, around, manager, cluster, tell)
        await around.discovery.refresh()  # whoever cannot reach the cluster at start should hear it at once
        stop = stop or stop_on_signals()  # until here there is nothing to finish
        checks = Checks(ready={"caches": manager.not_ready})
        pages = {path: page for unit in manager.units for path, page in unit.pages.items()}
        pages["/debug/queues"] = queues_page([unit.queue for unit in manager.units])
        probes = Probes(settings.addresses, metrics, checks, pages)
        try:
            await probes.start()
            await console.start()
            gc.freeze()  # what was imported stays: there is no need to look through it again and again
            log.info(
                "started", version=__version__, server=cluster.server, controllers=[unit.name for unit in manager.units]
            )
            async with notifier.running():
                await manager.run(stop)
        finally:
            await console.stop()
            await probes.stop()
    finally:
        await connection.close()
    log.info("stopped")


@asynccontextmanager
async def connected(kubeconfig: str | None, context: str | None) -> AsyncIterator[Client]:
    """A client for one command."""
    cluster = load_kubeconfig(kubeconfig, context, env=os.environ)
    connection = Connection(cluster, user_agent=AGENT, observe=unobserved)
    try:
        yield Client(connection, Discovery(connection))
    finally:
        await connection.close()


class NoConsole:
    """In the place of a console that is not wanted."""

    async def start(self) -> None:
        """Open nothing."""

    async def stop(self) -> None:
        """Close nothing."""


def _console(
    settings: Settings, around: Environment, manager: Manager, cluster: ClusterConfig, tell: Callable[[str], None]
) -> Console | NoConsole:
    wanted = settings.console
    if wanted is None:
        return NoConsole()
    # Imported only where it is wanted: controllers alone stay small.
    from virt_steward.console.authentication import Authenticator, SignInLink  # noqa: PLC0415
    from virt_steward.console.cache import PlatformOptions  # noqa: PLC0415
    from virt_steward.console.server import Console, ConsoleParts  # noqa: PLC0415

    owner = load_kubeconfig(wanted.owner_kubeconfig, env=os.environ) if wanted.owner_kubeconfig else cluster
    # A pod's own account is nobody's to use, and a link that leaves this machine would be read on the way.
    is_personal = owner.context != IN_CLUSTER and wanted.address.is_loopback
    parts = ConsoleParts(
        manager.informers,
        Client(around.connection, around.discovery, Caller(f"{AGENT} console")),
        Authenticator(cluster, around.discovery, around.metrics.request_observed, around.clock.utc),
        around.clock,
        PlatformOptions(settings.options.autopilot, advisor=settings.options.advisor),
        SignInLink(owner, lambda url: tell(f"console: {url} (works once)")) if is_personal else None,
    )
    return Console(wanted, parts)


def _election(settings: Settings) -> Election | None:
    if not settings.leader_elect:
        return None
    identity = f"{socket.gethostname()}_{uuid.uuid4()}"
    return Election(settings.namespace, identity, managers.LEASE.name, settings.lease)


def stop_on_signals() -> asyncio.Event:
    """An event that SIGTERM or Ctrl-C sets; a second one ends the process at once."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()

    def stopped() -> None:
        stop.set()
        for number in _SIGNALS:
            loop.remove_signal_handler(number)
            signal.signal(number, signal.SIG_DFL)

    for number in _SIGNALS:
        loop.add_signal_handler(number, stopped)
    return stop
