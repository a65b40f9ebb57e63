"""`virt-steward run`: the controllers, in this process."""

from __future__ import annotations

import asyncio
from typing import Annotated

import typer

from virt_steward import app, logs
from virt_steward.cli.generate import names_in
from virt_steward.controllers import CONTROLLERS
from virt_steward.runtime.access import NAMESPACE
from virt_steward.runtime.addresses import parse_address
from virt_steward.runtime.probes import Addresses
from virt_steward.settings import Settings, chosen, lease_times, watched

CLUSTER = "Which cluster"
ELECTION = "Election"
SERVERS = "HTTP servers (ADDRESS is [HOST]:PORT; 0 turns one off)"
LOGS = "Logs"


def run(
    *,
    controllers: Annotated[
        str, typer.Option(metavar="NAME[,NAME]", help="Which controllers to run.", envvar="VIRT_STEWARD_CONTROLLERS")
    ] = "all",
    kubeconfig: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="Instead of $KUBECONFIG, ~/.kube/config or the pod's service account.",
            rich_help_panel=CLUSTER,
        ),
    ] = None,
    context: Annotated[
        str | None, typer.Option(help="Instead of the current context.", rich_help_panel=CLUSTER)
    ] = None,
    namespace: Annotated[
        str, typer.Option(help="Where the controllers' leases are.", envvar="POD_NAMESPACE", rich_help_panel=CLUSTER)
    ] = NAMESPACE,
    watch_namespaces: Annotated[
        str | None,
        typer.Option(
            metavar="NAME[,NAME]",
            help="Look at these alone; `rbac --target-namespaces` prints the roles for that.",
            rich_help_panel=CLUSTER,
        ),
    ] = None,
    notify_config: Annotated[
        str | None, typer.Option(metavar="FILE", help="Names the endpoints of notifications.")
    ] = None,
    leader_elect: Annotated[
        bool, typer.Option(help="Let one of several replicas act.", rich_help_panel=ELECTION)
    ] = True,
    lease_duration: Annotated[
        int, typer.Option(min=1, help="Seconds until a silent leader is replaced.", rich_help_panel=ELECTION)
    ] = 15,
    lease_retry: Annotated[
        float, typer.Option(help="Seconds between renewals or attempts.", rich_help_panel=ELECTION)
    ] = 2.0,
    grace: Annotated[float, typer.Option(min=0, help="Seconds that running work gets to end.")] = 20.0,
    metrics_bind_address: Annotated[
        str, typer.Option(metavar="ADDRESS", help="Serves /metrics.", rich_help_panel=SERVERS)
    ] = ":8080",
    debug_bind_address: Annotated[
        str, typer.Option(metavar="ADDRESS", help="Serves /debug/, on loopback only.", rich_help_panel=SERVERS)
    ] = "127.0.0.1:8081",
    health_probe_bind_address: Annotated[
        str, typer.Option(metavar="ADDRESS", help="Serves /healthz and /readyz.", rich_help_panel=SERVERS)
    ] = ":8082",
    log_format: Annotated[
        logs.Format, typer.Option(help="auto is console on a terminal, else json.", rich_help_panel=LOGS)
    ] = "auto",
    log_level: Annotated[logs.Level, typer.Option(rich_help_panel=LOGS)] = "info",
) -> None:
    """Run controllers against a cluster until SIGTERM or Ctrl-C."""
    every = tuple(definition.name for definition in CONTROLLERS)
    definitions = chosen(CONTROLLERS, every if controllers == "all" else names_in(controllers))
    settings = Settings(
        kubeconfig=kubeconfig,
        context=context,
        namespace=namespace,
        leader_elect=leader_elect,
        lease=lease_times(lease_duration, lease_retry),
        grace=grace,
        addresses=Addresses(
            parse_address("--metrics-bind-address", metrics_bind_address),
            parse_address("--debug-bind-address", debug_bind_address),
            parse_address("--health-probe-bind-address", health_probe_bind_address),
        ),
        watch_namespaces=() if watch_namespaces is None else watched(names_in(watch_namespaces)),
        notify_config=notify_config,
    )
    logs.configure(log_format, log_level)
    asyncio.run(app.run(settings, definitions))
