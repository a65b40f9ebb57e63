"""`virt-steward run`: the controllers, in this process."""

from __future__ import annotations

import asyncio
import os
from typing import Annotated

import typer

from virt_steward import app, logs
from virt_steward.cli import advisor_flags, placement_flags
from virt_steward.controllers import NAMES, definition
from virt_steward.controllers.autopilot.options import AutopilotOptions, related_images
from virt_steward.controllers.options import ControllerOptions
from virt_steward.controllers.placement.options import PlacementOptions
from virt_steward.runtime.access import NAMESPACE
from virt_steward.runtime.addresses import parse_address
from virt_steward.runtime.probes import Addresses
from virt_steward.settings import CONSOLE, Settings, chosen, console_settings, lease_times, names_in, watched

CLUSTER = "Which cluster"
ELECTION = "Election"
SERVERS = "HTTP servers (ADDRESS is [HOST]:PORT; 0 turns one off)"
LOGS = "Logs"
ALL = "all"
CONSOLE_ADDRESS = "127.0.0.1:8090"


def run(
    *,
    names: Annotated[
        str,
        typer.Option(
            "--controllers",
            metavar="NAME[,NAME]",
            help="Which controllers to run; console serves the console, also alone.",
            envvar="VIRT_STEWARD_CONTROLLERS",
        ),
    ] = ALL,
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
    console_bind_address: Annotated[
        str | None,
        typer.Option(
            metavar="ADDRESS",
            help=f"Serves the console; {CONSOLE_ADDRESS} if --controllers names it.",
            rich_help_panel=SERVERS,
        ),
    ] = None,
    console_url: Annotated[
        str,
        typer.Option(
            metavar="URL", help="Where browsers find the console behind a proxy with TLS.", rich_help_panel=SERVERS
        ),
    ] = "",
    console_proxies: Annotated[
        str | None,
        typer.Option(
            metavar="NETWORK[,NETWORK]",
            help="Proxies that may sign viewers in by the header X-Forwarded-Access-Token.",
            rich_help_panel=SERVERS,
        ),
    ] = None,
    hyperconverged: advisor_flags.HcoOption = advisor_flags.HCO,
    operator_version: advisor_flags.VersionOption = advisor_flags.VERSION,
    profile_docs_url: advisor_flags.DocsOption = advisor_flags.DOCS,
    default_kubevirt_config: placement_flags.DefaultConfigOption = "",
    placement_strategy: placement_flags.StrategyOption = "none",
    search: placement_flags.SearchOption = placement_flags.SearchMode.FOUND,
    vm_name: placement_flags.VmNameOption = "vm-{machine}",
    spread_label: placement_flags.SpreadLabelOption = "topology.kubernetes.io/region",
    cluster_timeout: placement_flags.TimeoutOption = 5.0,
    cluster_retry: placement_flags.RetryOption = 60.0,
    search_deadline: placement_flags.DeadlineOption = 10.0,
    search_memory: placement_flags.MemoryOption = 15.0,
    probe_interval: placement_flags.ProbeOption = 60.0,
    log_format: Annotated[
        logs.Format, typer.Option(help="auto is console on a terminal, else json.", rich_help_panel=LOGS)
    ] = "auto",
    log_level: Annotated[logs.Level, typer.Option(rich_help_panel=LOGS)] = "info",
) -> None:
    """Run controllers against a cluster until SIGTERM or Ctrl-C."""
    asked = NAMES if names == ALL else chosen((*NAMES, CONSOLE), names_in(names))
    console_address = console_bind_address or (CONSOLE_ADDRESS if CONSOLE in asked else "0")
    advice = advisor_flags.options(hyperconverged, operator_version, profile_docs_url, namespace)
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
        options=ControllerOptions(
            advisor=advice,
            autopilot=AutopilotOptions(advice.hco, related_images(os.environ)),
            placement=PlacementOptions(
                placement_flags.rules(default_kubevirt_config, placement_strategy, search, vm_name, spread_label),
                placement_flags.limits(cluster_timeout, cluster_retry),
                placement_flags.patience(cluster_timeout, search_deadline, search_memory),
                probe_interval,
            ),
        ),
        console=console_settings(console_address, console_url, names_in(console_proxies) if console_proxies else ()),
    )
    definitions = [definition(name, settings.options) for name in asked if name != CONSOLE]
    logs.configure(log_format, log_level)
    asyncio.run(app.run(settings, definitions))
