"""`virt-steward render`: what the autopilot applies, to a cluster or to the objects in a file."""

from __future__ import annotations

import asyncio
import os
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from virt_steward.catalog.images import related_images
from virt_steward.catalog.load import Catalog, load
from virt_steward.catalog.offline import BadFile
from virt_steward.catalog.printed import as_json, as_table, as_yaml
from virt_steward.catalog.report import AssetStatus
from virt_steward.cli import advisor_flags
from virt_steward.cli.arguments import ContextOption, KubeconfigOption, quiet_reader
from virt_steward.cli.output import CommandFailed
from virt_steward.controllers.autopilot import annotation_keys
from virt_steward.controllers.autopilot.options import AutopilotOptions
from virt_steward.insight.assets.survey import AssetRendition, rendered, rendered_offline
from virt_steward.settings import BadSetting

if TYPE_CHECKING:
    from virt_steward.catalog.report import AssetReport


class RenderFormat(StrEnum):
    """How rendered assets are printed."""

    YAML = "yaml"
    JSON = "json"
    STATUS = "status"


def render(
    *,
    hco_file: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="Read the HyperConverged, and other objects that assets read, from this file instead of a cluster.",
        ),
    ] = None,
    kubeconfig: KubeconfigOption = None,
    context: ContextOption = None,
    hyperconverged: advisor_flags.HcoOption = advisor_flags.HCO,
    asset: Annotated[str | None, typer.Option(metavar="NAME", help="Only this asset.")] = None,
    show_excluded: Annotated[
        bool, typer.Option("--show-excluded", help="Also list excluded assets, and why they are.")
    ] = False,
    output: Annotated[
        RenderFormat, typer.Option("--output", "-o", help="Manifests, a JSON list, or a table.")
    ] = RenderFormat.YAML,
) -> None:
    """Print the objects that the autopilot would apply.

    Nothing is applied. Exit code: 1 if an asset cannot be rendered. Images come from RELATED_IMAGE_ variables, as for
    the autopilot itself.
    """
    catalog = load()
    if asset is not None and catalog.find(asset) is None:
        raise CommandFailed(f"Asset {asset} not found; --output status lists all assets")
    if hco_file is None:
        options = AutopilotOptions(advisor_flags.hco(hyperconverged), related_images(os.environ))
        found = asyncio.run(_render(catalog, options, kubeconfig, context))
    elif kubeconfig or context:
        raise BadSetting("--hco-file replaces the cluster: remove --kubeconfig and --context, or remove --hco-file")
    else:
        found = rendered_offline(_text(hco_file), catalog, related_images(os.environ), datetime.now(UTC))
    lines = [line for line in _reports(found) if asset in (None, line.asset.name)]
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


async def _render(
    catalog: Catalog, options: AutopilotOptions, kubeconfig: str | None, context: str | None
) -> AssetRendition:
    async with quiet_reader(kubeconfig, context) as reader:
        return await rendered(reader, catalog, options, datetime.now(UTC))


def _text(file: str) -> str:
    try:
        return Path(file).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise BadFile(f"Cannot read {file}: {error}") from None


def _reports(found: AssetRendition) -> tuple[AssetReport, ...]:
    if found.idle:
        typer.echo(f"The autopilot is off: {found.idle}. If it were on, it would apply:", err=True)
    if found.held:
        raise CommandFailed(f"The autopilot applies nothing until {annotation_keys.EXCLUDED} is valid: {found.held}")
    return found.lines
