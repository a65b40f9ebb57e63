"""The composition root: settings → connection → controllers → manager. The only wiring."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import socket
import uuid
from contextlib import asynccontextmanager
from random import Random
from typing import TYPE_CHECKING

import structlog

from virt_steward import __version__
from virt_steward.kube import faults
from virt_steward.kube.client import Client
from virt_steward.kube.connection import Connection, unobserved
from virt_steward.kube.discovery import Discovery
from virt_steward.kube.kubeconfig import load_kubeconfig
from virt_steward.runtime.clock import SystemClock
from virt_steward.runtime.debug import queues_page
from virt_steward.runtime.endpoints import load_endpoints
from virt_steward.runtime.manager import Election, Manager, Surroundings
from virt_steward.runtime.metrics import Metrics
from virt_steward.runtime.notify import Notifier
from virt_steward.runtime.probes import Checks, Probes
from virt_steward.ssa import managers

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable

    from virt_steward.runtime.controller import Definition
    from virt_steward.settings import Settings

log = structlog.get_logger()

AGENT = f"virt-steward/{__version__}"
_SIGNALS = (signal.SIGTERM, signal.SIGINT)


async def run(settings: Settings, definitions: Iterable[Definition], stop: asyncio.Event | None = None) -> None:
    """Run the controllers until SIGTERM, SIGINT or `stop`."""
    if point := faults.arm(os.environ):
        log.warning("a fault point is armed", point=point)
    metrics = Metrics()
    endpoints = load_endpoints(settings.notify_config) if settings.notify_config else {}
    notifier = Notifier(endpoints, SystemClock(), Random(), metrics.registry)  # noqa: S311 - jitter
    cluster = load_kubeconfig(settings.kubeconfig, settings.context, env=os.environ)
    connection = Connection(cluster, user_agent=AGENT, observe=metrics.request_observed)
    try:
        around = Surroundings(
            connection,
            Discovery(connection),
            SystemClock(),
            metrics,
            AGENT,
            _election(settings),
            settings.grace,
            notifier,
            settings.watch_namespaces,
        )
        manager = Manager(around, definitions)
        await around.discovery.refresh()  # whoever cannot reach the cluster at start should hear it at once
        stop = stop or stop_on_signals()  # until here there is nothing to finish
        checks = Checks(ready={"caches": manager.not_ready})
        probes = Probes(
            settings.addresses, metrics, checks, {"/debug/queues": queues_page([unit.queue for unit in manager.units])}
        )
        await probes.start()
        gc.freeze()  # what was imported stays: there is no need to look through it again and again
        log.info(
            "started", version=__version__, server=cluster.server, controllers=[unit.name for unit in manager.units]
        )
        try:
            async with notifier.running():
                await manager.run(stop)
        finally:
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
