"""`virt-steward crds` and `virt-steward rbac`: manifests that follow from the code."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
import typer

from virt_steward.apis import CRDS
from virt_steward.controllers import CONTROLLERS
from virt_steward.objects.yamltext import yaml_text
from virt_steward.runtime.access import NAMESPACE, Installation, manifests
from virt_steward.settings import chosen

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


def rbac(
    controllers: Annotated[str, typer.Option(metavar="NAME[,NAME]", help="Whose ServiceAccounts and roles.")],
    namespace: Annotated[str, typer.Option(help="Where the controllers run.")] = NAMESPACE,
    target_namespaces: Annotated[
        str | None, typer.Option(metavar="NAME[,NAME]", help="A Role in each of these, instead of cluster-wide rights.")
    ] = None,
    output: FormatOption = Format.YAML,
) -> None:
    """Print the ServiceAccount and the roles that controllers need: what they declare, and nothing more."""
    targets = () if target_namespaces is None else names_in(target_namespaces)
    installation = Installation(namespace, target_namespaces=targets)
    definitions = chosen(CONTROLLERS, names_in(controllers))
    found = [manifest for definition in definitions for manifest in manifests(definition.access, installation)]
    typer.echo(written(found, output), nl=False)


def names_in(text: str) -> tuple[str, ...]:
    """The names of a comma-separated list. Empty ones stay, to be refused: left out, they could widen what is meant."""
    return tuple(name.strip() for name in text.split(","))


def written(objects: Sequence[dict[str, Any]], output: Format) -> str:
    if output is Format.JSON:
        listed = {"apiVersion": "v1", "kind": "List", "items": objects}
        return msgspec.json.format(msgspec.json.encode(listed), indent=2).decode() + "\n"
    return "---\n".join(yaml_text(obj) for obj in objects)
