"""`virt-steward run`: runs controllers in this process."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Annotated

import typer

from virt_steward import app, logs
from virt_steward.cli import (
    advisor_flags,
    approver_flags,
    autopilot_flags,
    completion,
    hold_flags,
    metrics_flags,
    notify_flags,
    placement_flags,
)
from virt_steward.cli.seconds import seconds_option, whole_seconds_option
from virt_steward.controllers import NAMES, definition
from virt_steward.controllers.autopilot.overrides.scope import Activation
from virt_steward.controllers.options import ControllerOptions
from virt_steward.controllers.placement.options import PlacementOptions
from virt_steward.holds.gate_board import load_gates
from virt_steward.runtime.access import NAMESPACE
from virt_steward.runtime.addresses import parse_address
from virt_steward.runtime.metrics_auth import MetricsAuth
from virt_steward.runtime.probes import Addresses
from virt_steward.settings import (
    CONSOLE,
    Settings,
    chosen,
    console_link,
    console_settings,
    lease_times,
    names_in,
    watched,
)

ALL = "all"
CONSOLE_ADDRESS = "127.0.0.1:8090"


def run(
    *,
    names: Annotated[
        str,
        typer.Option(
            "--controllers",
            metavar="NAME[,NAME]",
            help="Controllers to run, or console for the web console.",
            autocompletion=completion.controller_list,
            envvar="VIRT_STEWARD_CONTROLLERS",
        ),
    ] = ALL,
    kubeconfig: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="Path of a kubeconfig, instead of $KUBECONFIG, ~/.kube/config or the pod's service account.",
        ),
    ] = None,
    context: Annotated[
        str | None, typer.Option(metavar="NAME", help="Context to use instead of the current one.")
    ] = None,
    namespace: Annotated[
        str,
        typer.Option(
            metavar="NAME", help="Namespace of our own objects: leases, plan records, freezes.", envvar="POD_NAMESPACE"
        ),
    ] = NAMESPACE,
    watch_namespaces: Annotated[
        str | None,
        typer.Option(
            metavar="NAME[,NAME]",
            help="Watch only these namespaces; see rbac --target-namespaces for their roles.",
        ),
    ] = None,
    notify_config: Annotated[
        str | None, typer.Option(metavar="FILE", help="Path of a file with the endpoints of notifications.")
    ] = None,
    notify: notify_flags.NotifyOption = None,
    gates: hold_flags.GatesOption = None,
    leader_elect: Annotated[bool, typer.Option(help="Let only one of several replicas act.")] = True,
    stand_by: Annotated[
        bool, typer.Option(help="Write nothing while a Go operator that does the same work renews its Lease.")
    ] = True,
    lease_duration: Annotated[int, whole_seconds_option("Time without renewal after which a leader is replaced.")] = 15,
    lease_retry: Annotated[
        float, seconds_option("Time between renewals of the lease, and between attempts to acquire it.", least=0)
    ] = 2.0,
    grace: Annotated[float, seconds_option("Time for running work to end at shutdown.", least=0)] = 20.0,
    metrics_bind_address: Annotated[
        str, typer.Option(metavar="ADDRESS", help="[HOST]:PORT of /metrics; 0 turns it off.")
    ] = ":8080",
    metrics_secure: metrics_flags.SecureOption = False,
    metrics_cert_path: metrics_flags.CertPathOption = "",
    metrics_cert_name: metrics_flags.CertNameOption = "tls.crt",
    metrics_cert_key: metrics_flags.CertKeyOption = "tls.key",
    metrics_auth: metrics_flags.AuthOption = MetricsAuth.NONE,
    metrics_client_ca_file: metrics_flags.ClientCaOption = None,
    metrics_client_names: metrics_flags.ClientNamesOption = metrics_flags.CLIENT_NAMES,
    tls_min_version: metrics_flags.MinVersionOption = None,
    tls_cipher_suites: metrics_flags.CiphersOption = None,
    debug_bind_address: Annotated[
        str, typer.Option(metavar="ADDRESS", help="[HOST]:PORT of /debug/, on loopback only; 0 turns it off.")
    ] = "127.0.0.1:8081",
    health_probe_bind_address: Annotated[
        str, typer.Option(metavar="ADDRESS", help="[HOST]:PORT of /healthz and /readyz; 0 turns them off.")
    ] = ":8082",
    console_bind_address: Annotated[
        str | None,
        typer.Option(
            metavar="ADDRESS",
            help=f"[HOST]:PORT of the console; {CONSOLE_ADDRESS} if --controllers names console.",
        ),
    ] = None,
    console_url: Annotated[
        str,
        typer.Option(
            metavar="URL",
            help="Address of the console for browsers, if it is behind a TLS proxy; notifications link to it.",
        ),
    ] = "",
    console_proxies: Annotated[
        str | None,
        typer.Option(
            metavar="NETWORK[,NETWORK]",
            help="Networks of proxies whose X-Forwarded-Access-Token header signs users in.",
        ),
    ] = None,
    hyperconverged: advisor_flags.HcoOption = advisor_flags.HCO,
    activation: autopilot_flags.ActivationOption = Activation.OPT_IN,
    operator_version: advisor_flags.VersionOption = advisor_flags.VERSION,
    profile_docs_url: advisor_flags.DocsOption = advisor_flags.DOCS,
    example_profile: advisor_flags.ExampleOption = False,
    policy_namespaces: approver_flags.PolicyNamespacesOption = None,
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
    log_format: Annotated[logs.Format, typer.Option(help="auto: console on a terminal, else json.")] = "auto",
    log_level: Annotated[logs.Level, typer.Option(help="Least severe level to log.")] = "info",
) -> None:
    """Run controllers against a cluster until SIGTERM or Ctrl-C."""
    selected = NAMES if names == ALL else chosen((*NAMES, CONSOLE), names_in(names))
    console_address = console_bind_address or (CONSOLE_ADDRESS if CONSOLE in selected else "0")
    known_gates = load_gates(gates)
    advice = advisor_flags.options(
        hyperconverged, operator_version, profile_docs_url, namespace, example_profile=example_profile
    )
    watch = () if watch_namespaces is None else watched(names_in(watch_namespaces))
    settings = Settings(
        kubeconfig=kubeconfig,
        context=context,
        namespace=namespace,
        leader_elect=leader_elect,
        stand_by=stand_by,
        lease=lease_times(lease_duration, lease_retry),
        grace=grace,
        addresses=Addresses(
            parse_address("--metrics-bind-address", metrics_bind_address),
            parse_address("--debug-bind-address", debug_bind_address),
            parse_address("--health-probe-bind-address", health_probe_bind_address),
        ),
        metrics=metrics_flags.options(
            metrics_flags.CertificateFlags(
                metrics_cert_path, metrics_cert_name, metrics_cert_key, metrics_client_ca_file
            ),
            metrics_auth,
            metrics_client_names,
            metrics_flags.tls_parameters(tls_min_version, tls_cipher_suites),
            secure=metrics_secure,
        ),
        watch_namespaces=watch,
        notify_config=notify_config,
        notify=notify_flags.endpoints(notify),
        console_url=console_link(console_url),
        options=ControllerOptions(
            advisor=replace(advice, gates=known_gates),
            autopilot=autopilot_flags.options(hyperconverged, activation, namespace, known_gates),
            approver=approver_flags.options(namespace, policy_namespaces, watch, known_gates),
            placement=PlacementOptions(
                placement_flags.rules(default_kubevirt_config, placement_strategy, search, vm_name, spread_label),
                placement_flags.limits(cluster_timeout, cluster_retry),
                placement_flags.patience(cluster_timeout, search_deadline, search_memory),
                namespace,
                probe_interval,
            ),
        ),
        console=console_settings(console_address, console_url, names_in(console_proxies) if console_proxies else ()),
    )
    definitions = [definition(name, settings.options) for name in selected if name != CONSOLE]
    logs.configure(log_format, log_level)
    asyncio.run(app.run(settings, definitions))
