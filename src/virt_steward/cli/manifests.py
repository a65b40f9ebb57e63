"""`virt-steward crds`, `rbac`, `policies` and `manifests`: what an installation is made of, generated from the code."""

from __future__ import annotations

from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
import typer

from virt_steward.apis.crds import CRDS
from virt_steward.cli import (
    advisor_flags,
    approver_flags,
    autopilot_flags,
    completion,
    hold_flags,
    monitoring_flags,
    notify_flags,
    operation_flags,
)
from virt_steward.cli.output import CommandFailed
from virt_steward.controllers import NAMES
from virt_steward.controllers.autopilot.options import OPT_OUT_DELETES
from virt_steward.controllers.autopilot.overrides.scope import Activation
from virt_steward.holds.gate_board import load_gates
from virt_steward.objects.document import JsonDocument
from virt_steward.packaging import parts
from virt_steward.packaging.bundle import bundle
from virt_steward.packaging.chart import chart
from virt_steward.packaging.operation import PRIORITY_CLASS
from virt_steward.packaging.overlay import all_in_one_overlay
from virt_steward.packaging.parts import (
    IMAGE,
    POLICIES,
    InstallOptions,
    access_of,
    documents,
    installed,
    kustomization,
)
from virt_steward.packaging.parts import monitoring as monitoring_files
from virt_steward.packaging.roles import aggregated, people
from virt_steward.runtime import access
from virt_steward.runtime.access import NAMESPACE, Installation
from virt_steward.runtime.matters import NOTIFICATION_MEMORY
from virt_steward.runtime.metrics_auth import MetricsAuth, optional_grants
from virt_steward.settings import CONSOLE, BadSetting, chosen, names_in

if TYPE_CHECKING:
    from collections.abc import Sequence


class ManifestFormat(StrEnum):
    """How manifests are printed."""

    YAML = "yaml"
    JSON = "json"


class PackageFormat(StrEnum):
    """Which tool the files are for."""

    KUSTOMIZE = "kustomize"
    HELM = "helm"
    OLM = "olm"
    ALL_IN_ONE = "all-in-one"
    PROMETHEUS = "prometheus"


class ManifestList(JsonDocument, frozen=True):
    """The answer of commands that print objects of Kubernetes."""

    api_version: str
    kind: str
    items: tuple[dict[str, Any], ...]


FormatOption = Annotated[ManifestFormat, typer.Option("--output", "-o", help="YAML documents, or one JSON list.")]


def crds(output: FormatOption = ManifestFormat.YAML) -> None:
    """Print the CustomResourceDefinitions of virt-steward."""
    typer.echo(printed([crd.manifest() for crd in CRDS], output), nl=False)


def policies(output: FormatOption = ManifestFormat.YAML) -> None:
    """Print the admission policies that protect decisions.

    They are ValidatingAdmissionPolicies: the API server enforces them without a webhook.
    """
    typer.echo(printed(POLICIES, output), nl=False)


def roles(output: FormatOption = ManifestFormat.YAML) -> None:
    """Print the roles of people.

    Viewer, requester, approver and administrator, from the least to the most.

    They are ClusterRoles. Bind them to users and groups; what they grant on our own kinds is also added to the roles
    view, edit and admin of Kubernetes.
    """
    typer.echo(printed([*people(Installation()), *aggregated(Installation())], output), nl=False)


def rbac(
    *,
    controllers: Annotated[
        str,
        typer.Option(
            metavar="NAME[,NAME]",
            help="Controllers to print ServiceAccounts and roles for, or console.",
            autocompletion=completion.controller_list,
        ),
    ],
    namespace: Annotated[str, typer.Option(metavar="NAME", help="Namespace of the controllers.")] = NAMESPACE,
    target_namespaces: Annotated[
        str | None,
        typer.Option(
            metavar="NAME[,NAME]", help="Print a Role in each of these namespaces, instead of cluster-wide rights."
        ),
    ] = None,
    secret_namespaces: Annotated[
        str | None,
        typer.Option(
            metavar="NAME[,NAME]",
            help="Namespaces with the kubeconfig Secrets of clusters: a Role in each lets the placement read Secrets.",
        ),
    ] = None,
    opt_out_deletes: Annotated[
        bool,
        typer.Option(
            "--opt-out-deletes",
            help="Also let the autopilot delete what it created, for platform.kubevirt.io/on-opt-out: delete.",
        ),
    ] = False,
    metrics_auth: Annotated[
        MetricsAuth, typer.Option(help="Also grant, in a role of its own, what run --metrics-auth needs.")
    ] = MetricsAuth.NONE,
    notify: Annotated[
        bool,
        typer.Option(
            "--notify", help="Also let autopilot and placement remember what they have notified, for run --notify."
        ),
    ] = False,
    hyperconverged: advisor_flags.HcoOption = advisor_flags.HCO,
    example_profile: advisor_flags.ExampleOption = False,
    gates: hold_flags.GatesOption = None,
    all_in_one: Annotated[
        bool,
        typer.Option("--all-in-one", help="For an installation with one Deployment: bind the roles to its account."),
    ] = False,
    output: FormatOption = ManifestFormat.YAML,
) -> None:
    """Print the least-privilege RBAC of controllers.

    Their namespace comes first. The roles grant what the controllers declare in code, and nothing more.
    """
    installation = Installation(
        namespace,
        target_namespaces=() if target_namespaces is None else names_in(target_namespaces),
        secret_namespaces=() if secret_namespaces is None else names_in(secret_namespaces),
        extras=(*((OPT_OUT_DELETES,) if opt_out_deletes else ()), *optional_grants(metrics_auth)),
    )
    hco = advisor_flags.hco(hyperconverged)
    names = chosen((*NAMES, CONSOLE), names_in(controllers))
    known_gates = load_gates(gates)
    declared = {name: access_of(name, hco, known_gates, example_profile=example_profile) for name in names}
    rights = {
        name: access.manifests(one, _remembering(installation, one, notify=notify)) for name, one in declared.items()
    }
    console_too = rights.pop(CONSOLE, [])  # it has an account of its own in every installation
    found = [obj for objects in rights.values() for obj in objects]
    if all_in_one and found:
        found = parts.rbac_of_all_in_one(found, installation)
    typer.echo(printed([_namespace(installation), *found, *console_too], output), nl=False)


def _remembering(installation: Installation, rights: access.Access, *, notify: bool) -> Installation:
    """Only the controllers that need it have this optional grant."""
    if not notify or NOTIFICATION_MEMORY not in rights.extras:
        return installation
    return replace(installation, extras=(*installation.extras, NOTIFICATION_MEMORY))


def _namespace(installation: Installation) -> dict[str, Any]:
    """As `manifests` prints it. A namespace of another name may be in use for other pods, so it gets no labels."""
    manifest = parts.namespace(installation)
    return (
        manifest if installation.namespace == NAMESPACE else {**manifest, "metadata": {"name": installation.namespace}}
    )


def manifests(
    *,
    namespace: Annotated[str, typer.Option(metavar="NAME", help="Namespace of the controllers.")] = NAMESPACE,
    image: operation_flags.ImageOption = IMAGE,
    hyperconverged: advisor_flags.HcoOption = advisor_flags.HCO,
    activation: autopilot_flags.ActivationOption = Activation.OPT_IN,
    example_profile: advisor_flags.ExampleOption = False,
    policy_namespaces: approver_flags.PolicyNamespacesOption = None,
    gates: hold_flags.GatesOption = None,
    notifications: notify_flags.NotificationsOption = False,
    notify: notify_flags.NotifyOption = None,
    console: Annotated[bool, typer.Option("--console", help="Include the console, as its own Deployment.")] = False,
    all_in_one: operation_flags.AllInOneOption = False,
    priority_class: operation_flags.PriorityOption = PRIORITY_CLASS,
    network_policies: operation_flags.NetworkOption = True,
    egress_ports: operation_flags.PortsOption = operation_flags.PORTS,
    only: Annotated[
        str | None,
        typer.Option(
            metavar="PART[,PART]",
            help="Print only these parts, such as console or crds: the others stay as they are on the cluster.",
        ),
    ] = None,
    monitoring: monitoring_flags.ApisOption = None,
    prometheus: monitoring_flags.PrometheusOption = monitoring_flags.PROMETHEUS,
    runbooks: monitoring_flags.RunbooksOption = monitoring_flags.RUNBOOKS,
    into: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="Write files there and print nothing.", file_okay=False)
    ] = None,
    package: Annotated[
        PackageFormat,
        typer.Option(
            "--for",
            help="With --into: a kustomization, a Helm chart, an OLM bundle, an overlay of ../base with one Deployment,"
            " or (prometheus) alerts, ServiceMonitor and dashboards alone.",
        ),
    ] = PackageFormat.KUSTOMIZE,
    output: FormatOption = ManifestFormat.YAML,
) -> None:
    """Print all manifests of an installation.

    Namespace, CRDs, admission policies, for each controller its RBAC and Deployment, and what monitors them. What is
    not given gets its default, also the image: to change an installation, repeat its options, or print only the part
    that is added.
    """
    parts_chosen = None if only is None else names_in(only)
    hco = advisor_flags.hco(hyperconverged)
    policies = approver_flags.policy_namespaces(policy_namespaces)
    load_gates(gates)  # a mistake in it is reported before anything is printed
    options = InstallOptions(
        Installation(namespace),
        operation_flags.checked_image(image),
        hco,
        console or CONSOLE in (parts_chosen or ()),
        example_profile,
        policies,
        gates=Path(gates).read_text(encoding="utf-8") if gates else "",
        activation=activation,
        notifications=notifications or bool(notify),
        notify=tuple(notify_flags.endpoints(notify).items()),
        monitoring=monitoring_flags.monitoring_options(
            monitoring, prometheus, runbooks, olm=package is PackageFormat.OLM
        ),
        operation=operation_flags.operation_options(
            priority_class, egress_ports, all_in_one=all_in_one, network_policies=network_policies
        ),
    )
    if into is not None and parts_chosen is not None:
        raise BadSetting("--only prints parts, and --into writes all of them as files: leave one of them out")
    if into is not None:
        _write(into, files_of(package, options))
        return
    if package is not PackageFormat.KUSTOMIZE:
        raise BadSetting(f"--for {package} makes several files: add --into FOLDER")
    found = installed(options)
    names = chosen(tuple(found), parts_chosen, "part") if parts_chosen is not None else tuple(found)
    typer.echo(printed([obj for name in names for obj in found[name]], output), nl=False)


def printed(objects: Sequence[dict[str, Any]], output: ManifestFormat) -> str:
    if output is ManifestFormat.JSON:
        items = ManifestList("v1", "List", tuple(objects))
        return msgspec.json.format(msgspec.json.encode(items), indent=2).decode() + "\n"
    return documents(objects)


def files_of(package: PackageFormat, options: InstallOptions) -> dict[str, str]:
    match package:
        case PackageFormat.KUSTOMIZE:
            return kustomization(options)
        case PackageFormat.HELM:
            if options != InstallOptions():
                raise BadSetting(
                    "--for helm: set namespace, image, HyperConverged, console and others as chart values instead"
                )
            return chart()
        case PackageFormat.OLM:
            return bundle(options)
        case PackageFormat.ALL_IN_ONE:
            return all_in_one_overlay(options)
        case PackageFormat.PROMETHEUS:
            return monitoring_files(options)


def _write(folder: Path, files: dict[str, str]) -> None:
    try:
        for name, text in files.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise CommandFailed(f"Cannot write to {folder}: {error.strerror}") from None
