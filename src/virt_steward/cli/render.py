"""`virt-steward render`: what the autopilot would apply, on a cluster or without one."""

from __future__ import annotations

import asyncio
import os
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from virt_steward.app import connected
from virt_steward.catalog.images import related_images
from virt_steward.catalog.load import Catalog, load
from virt_steward.catalog.offline import BadFile
from virt_steward.catalog.printed import as_json, as_table, as_yaml
from virt_steward.catalog.report import AssetStatus
from virt_steward.cli import advisor_flags
from virt_steward.cli.arguments import ContextOption, KubeconfigOption  # noqa: TC001 - typer reads annotations
from virt_steward.cli.output import CommandFailed
from virt_steward.controllers.autopilot import annotation_keys
from virt_steward.controllers.autopilot.options import AutopilotOptions
from virt_steward.insight.assets.survey import AssetRendition, rendered, rendered_offline
from virt_steward.kube.client import Reader
from virt_steward.settings import BadSetting

if TYPE_CHECKING:
    from virt_steward.catalog.report import AssetReport


class RenderFormat(StrEnum):
    """How a report is printed."""

    YAML = "yaml"
    JSON = "json"
    STATUS = "status"


def render(
    *,
    hco_file: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="Instead of a cluster: the HyperConverged, and what else of the cluster assets may look at.",
        ),
    ] = None,
    kubeconfig: KubeconfigOption = None,
    context: ContextOption = None,
    hyperconverged: advisor_flags.HcoOption = advisor_flags.HCO,
    asset: Annotated[str | None, typer.Option(metavar="NAME", help="Only this one.")] = None,
    show_excluded: Annotated[
        bool, typer.Option("--show-excluded", help="Also tell which assets are left out, and why.")
    ] = False,
    output: Annotated[
        RenderFormat, typer.Option("--output", "-o", help="Manifests, a JSON list, or a table.")
    ] = RenderFormat.YAML,
) -> None:
    """Print the objects that the autopilot would apply, and apply none. Ends with 1 if an asset cannot be rendered.

    Images come from RELATED_IMAGE_ variables, as for the autopilot itself.
    """
    shipped = load()
    if asset is not None and shipped.find(asset) is None:
        raise CommandFailed(f"there is no asset {asset}: --output status lists all of them")
    if hco_file is None:
        options = AutopilotOptions(advisor_flags.hco(hyperconverged), related_images(os.environ))
        found = asyncio.run(_online(shipped, options, kubeconfig, context))
    elif kubeconfig or context:
        raise BadSetting("--hco-file stands for a cluster: leave --kubeconfig and --context away, or --hco-file")
    else:
        found = rendered_offline(_text(hco_file), shipped, related_images(os.environ), datetime.now(UTC))
    lines = [line for line in _allowed(found) if asset in (None, line.asset.name)]
    shown = [line for line in lines if show_excluded or line.status in (AssetStatus.INCLUDED, AssetStatus.ERROR)]
    match output:
        case RenderFormat.YAML:
            typer.echo(as_yaml(shown), nl=False)
        case RenderFormat.JSON:
            typer.echo(as_json(shown), nl=False)
        case RenderFormat.STATUS:
            typer.echo(as_table(lines), nl=False)
    if any(line.status is AssetStatus.ERROR for line in lines):
        raise typer.Exit(1)


async def _online(
    catalog: Catalog, options: AutopilotOptions, kubeconfig: str | None, context: str | None
) -> AssetRendition:
    async with connected(kubeconfig, context) as client:
        return await rendered(Reader(client.connection, client.discovery), catalog, options, datetime.now(UTC))


def _text(file: str) -> str:
    try:
        return Path(file).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise BadFile(f"{file} cannot be read: {error}") from None


def _allowed(found: AssetRendition) -> tuple[AssetReport, ...]:
    if found.idle:
        typer.echo(f"The autopilot would do nothing: {found.idle}. This is what it would do if it were on:", err=True)
    if found.held:
        raise CommandFailed(f"nothing would be applied before {annotation_keys.EXCLUDED} can be read: {found.held}")
    return found.lines
