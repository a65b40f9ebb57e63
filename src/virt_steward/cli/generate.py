"""`virt-steward crds`, `rbac` and `policies`: manifests that follow from the code."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
import typer

from virt_steward.apis import CRDS
from virt_steward.cli import advisor_flags
from virt_steward.controllers import NAMES
from virt_steward.controllers.advisor.admission import POLICIES
from virt_steward.controllers.autopilot.options import OPT_OUT_DELETES
from virt_steward.packaging import parts
from virt_steward.packaging.parts import access_of, documents
from virt_steward.runtime.access import NAMESPACE, Installation, manifests
from virt_steward.settings import CONSOLE, chosen, names_in

if TYPE_CHECKING:
    from collections.abc import Sequence


class Format(StrEnum):
    """How manifests are written."""

    YAML = "yaml"
    JSON = "json"


FormatOption = Annotated[Format, typer.Option("--output", "-o", help="YAML documents, or one JSON list.")]


def crds(output: FormatOption = Format.YAML) -> None:
    """Print the CustomResourceDefinitions of all our kinds."""
    typer.echo(written([crd.manifest() for crd in CRDS], output), nl=False)


def policies(output: FormatOption = Format.YAML) -> None:
    """Print the admission policies that keep approvals honest. The API server enforces them, without any of ours."""
    typer.echo(written(POLICIES, output), nl=False)


def rbac(
    *,
    controllers: Annotated[
        str, typer.Option(metavar="NAME[,NAME]", help="Whose ServiceAccounts and roles; console has one, too.")
    ],
    namespace: Annotated[str, typer.Option(help="Where the controllers run.")] = NAMESPACE,
    target_namespaces: Annotated[
        str | None, typer.Option(metavar="NAME[,NAME]", help="A Role in each of these, instead of cluster-wide rights.")
    ] = None,
    secret_namespaces: Annotated[
        str | None,
        typer.Option(
            metavar="NAME[,NAME]",
            help="Where the kubeconfigs of clusters are: a Role in each lets the placement read Secrets there.",
        ),
    ] = None,
    opt_out_deletes: Annotated[
        bool,
        typer.Option(
            "--opt-out-deletes",
            help="Also let the autopilot delete what it made, for platform.kubevirt.io/on-opt-out: delete.",
        ),
    ] = False,
    hyperconverged: advisor_flags.HcoOption = advisor_flags.HCO,
    example_profile: advisor_flags.ExampleOption = False,
    output: FormatOption = Format.YAML,
) -> None:
    """Print the namespace, and the ServiceAccount and roles that controllers need: what they declare, and no more."""
    installation = Installation(
        namespace,
        target_namespaces=() if target_namespaces is None else names_in(target_namespaces),
        secret_namespaces=() if secret_namespaces is None else names_in(secret_namespaces),
        extras=(OPT_OUT_DELETES,) if opt_out_deletes else (),
    )
    platform = advisor_flags.hco(hyperconverged)
    asked = chosen((*NAMES, CONSOLE), names_in(controllers))
    wanted = [access_of(name, platform, example_profile=example_profile) for name in asked]
    found = [manifest for access in wanted for manifest in manifests(access, installation)]
    typer.echo(written([_namespace(installation), *found], output), nl=False)


def _namespace(installation: Installation) -> dict[str, Any]:
    """As `manifests` has it. One of another name may be somebody else's, so this adds no labels to it."""
    manifest = parts.namespace(installation)
    return (
        manifest if installation.namespace == NAMESPACE else {**manifest, "metadata": {"name": installation.namespace}}
    )


def written(objects: Sequence[dict[str, Any]], output: Format) -> str:
    if output is Format.JSON:
        listed = {"apiVersion": "v1", "kind": "List", "items": objects}
        return msgspec.json.format(msgspec.json.encode(listed), indent=2).decode() + "\n"
    return documents(objects)
