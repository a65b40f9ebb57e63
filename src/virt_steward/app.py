"""The composition root: settings → connection → controllers → manager."""

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
from virt_steward.platform.tls_profile import INTERMEDIATE, PROFILES
from virt_steward.runtime.clock import SystemClock
from virt_steward.runtime.debug import queues_page
from virt_steward.runtime.http_server import raise_open_files_limit
from virt_steward.runtime.lag import LagMonitor, LagReporter
from virt_steward.runtime.manager import Election, Environment, Manager
from virt_steward.runtime.matters import MatterSettings
from virt_steward.runtime.metrics import Metrics
from virt_steward.runtime.metrics_auth import (
    AnyoneMayScrape,
    ClientNames,
    MetricsAuth,
    TokenReviews,
    follow_client_authority,
)
from virt_steward.runtime.notification_endpoints import load_endpoints
from virt_steward.runtime.notifier import Notifier
from virt_steward.runtime.probes import Checks, MetricsAccess, Probes
from virt_steward.runtime.serving_tls import ServingTls
from virt_steward.settings import check_endpoints
from virt_steward.ssa import managers

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterable

    from virt_steward.console.server import Console
    from virt_steward.kube.kubeconfig import ClusterConfig
    from virt_steward.objects.tls_parameters import TlsParameters
    from virt_steward.runtime.controller import ControllerDefinition
    from virt_steward.runtime.metrics_auth import ScrapeAuthorizer
    from virt_steward.settings import Settings

log = structlog.get_logger()

AGENT = f"virt-steward/{__version__}"
_SIGNALS = (signal.SIGTERM, signal.SIGINT)


def say(text: str) -> None:
    """Print to the user who started the process, not to the log, which others may read."""
    print(text, file=sys.stderr, flush=True)  # noqa: T201 - for the terminal


async def run(
    settings: Settings,
    definitions: Iterable[ControllerDefinition],
    stop: asyncio.Event | None = None,
    tell: Callable[[str], None] = say,
) -> None:
    """Run the controllers until SIGTERM, SIGINT or `stop`. `tell` gets one-time links to the console."""
    if point := faults.arm(os.environ):
        log.warning("fault point armed", point=point)
    raise_open_files_limit()
    metrics = Metrics()
    endpoints = load_endpoints(settings.notify_config) if settings.notify_config else {}
    check_endpoints(settings.notify, endpoints)
    notifier = Notifier(endpoints, SystemClock(), Random(), metrics.registry, settings.console_url)  # noqa: S311 - jitter
    cluster = load_kubeconfig(settings.kubeconfig, settings.context, env=os.environ)
    connection = Connection(cluster, user_agent=AGENT, observe=metrics.request_observed)
    tls = _serving_tls(settings, metrics)
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
            MatterSettings(settings.notify, settings.namespace, managers.NOTIFIED.name),
            settings.stand_by,
            _use_tls(settings, tls),
        )
        manager = Manager(around, definitions)
        console = _console(settings, around, manager, cluster, tell)
        await around.discovery.refresh()  # fail at once if the cluster is unreachable at start
        stop = stop or stop_on_signals()  # before this, a signal ends the process
        access = MetricsAccess(tls, _authorizer(settings, around, manager, tls)) if tls else MetricsAccess()
        checks = Checks(
            alive={
                "controllers": manager.failure,
                "console": console.failure,
                "notifications": notifier.failure,
                **({"certificates": tls.failure} if tls else {}),
            },
            ready={"caches": manager.not_ready},
        )
        pages = {path: page for unit in manager.units for path, page in unit.pages.items()}
        pages["/debug/queues"] = queues_page([unit.queue for unit in manager.units])
        probes = Probes(settings.addresses, metrics, checks, pages, access)
        try:
            await probes.start()
            await console.start()
            gc.freeze()  # imported objects are never garbage
            log.info(
                "started", version=__version__, server=cluster.server, controllers=[unit.name for unit in manager.units]
            )
            with LagMonitor(LagReporter(metrics.loop_blocked)).running():
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
    """Stands in for the console where it is not enabled."""

    async def start(self) -> None:
        """Do nothing."""

    async def stop(self) -> None:
        """Do nothing."""

    def failure(self) -> None:
        """Never."""


def _console(
    settings: Settings, around: Environment, manager: Manager, cluster: ClusterConfig, tell: Callable[[str], None]
) -> Console | NoConsole:
    wanted = settings.console
    if wanted is None:
        return NoConsole()
    # Imported only if enabled, so that controllers alone use less memory.
    from virt_steward.console.authentication import Authenticator, SignInLink  # noqa: PLC0415
    from virt_steward.console.cache import PlatformOptions  # noqa: PLC0415
    from virt_steward.console.server import Console, ConsoleParts  # noqa: PLC0415

    owner = load_kubeconfig(wanted.owner_kubeconfig, env=os.environ) if wanted.owner_kubeconfig else cluster
    # One-time links sign in as the kubeconfig's user: not for a pod's account, and not beyond loopback.
    is_personal = owner.context != IN_CLUSTER and wanted.address.is_loopback
    parts = ConsoleParts(
        manager.informers,
        Client(around.connection, around.discovery, Caller(f"{AGENT} console")),
        Authenticator(cluster, around.discovery, around.metrics.request_observed, around.clock.utc),
        around.clock,
        PlatformOptions(
            settings.options.autopilot,
            advisor=settings.options.advisor,
            approver=settings.options.approver,
            namespace=settings.namespace,
        ),
        SignInLink(owner, lambda url: tell(f"console: {url} (works once)")) if is_personal else None,
    )
    return Console(wanted, parts)


def _serving_tls(settings: Settings, metrics: Metrics) -> ServingTls | None:
    wanted = settings.metrics
    if wanted.files is None:
        return None
    verifies = wanted.auth is MetricsAuth.CLIENT_CERTIFICATE
    parameters = wanted.tls or PROFILES[INTERMEDIATE]
    return ServingTls(wanted.files, parameters, SystemClock(), metrics.registry, verifies_clients=verifies)


def _use_tls(settings: Settings, tls: ServingTls | None) -> Callable[[TlsParameters], None]:
    """What is set explicitly is not changed by the platform's profile."""
    return tls.use_parameters if tls and settings.metrics.tls is None else lambda _: None


def _authorizer(settings: Settings, around: Environment, manager: Manager, tls: ServingTls) -> ScrapeAuthorizer:
    wanted = settings.metrics
    match wanted.auth:
        case MetricsAuth.NONE:
            return AnyoneMayScrape()
        case MetricsAuth.TOKEN:
            return TokenReviews(Client(around.connection, around.discovery, Caller(f"{AGENT} metrics")), around.clock)
        case MetricsAuth.CLIENT_CERTIFICATE:
            if wanted.files and not wanted.files.client_authority:
                follow_client_authority(manager.informers, tls)
            return ClientNames(wanted.client_names)


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
