"""`virt-steward render`: what the autopilot applies, to a cluster or to the objects in a file."""

from __future__ import annotations

import asyncio
import sys
from collections import Counter
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from virt_steward.catalog.aliases import current_name
from virt_steward.catalog.load import Catalog, load
from virt_steward.catalog.offline import BadFile
from virt_steward.cli import advisor_flags, autopilot_flags, completion
from virt_steward.cli.arguments import ContextOption, KubeconfigOption, quiet_reader
from virt_steward.cli.output import CommandFailed, table
from virt_steward.controllers.autopilot.asset_report import AssetStatus, as_json, as_yaml
from virt_steward.controllers.autopilot.decide import unreadable_exclusions
from virt_steward.controllers.autopilot.overrides.scope import Activation
from virt_steward.insight.assets.survey import AssetRendition, render_offline, render_online
from virt_steward.settings import BadSetting

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from virt_steward.controllers.autopilot.asset_report import AssetReport
    from virt_steward.controllers.autopilot.options import AutopilotOptions


LONGEST_REASON = 35


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
    activation: autopilot_flags.ActivationOption = Activation.OPT_IN,
    asset: Annotated[
        str | None, typer.Option(metavar="NAME", help="Only this asset.", autocompletion=completion.assets)
    ] = None,
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
    if asset is not None and (current := current_name(asset)) != asset:
        typer.echo(f"{asset} is called {current} here", err=True)
        asset = current
    if asset is not None and catalog.find(asset) is None:
        raise CommandFailed(f"Asset {asset} not found; --output status lists all assets")
    options = autopilot_flags.options(hyperconverged, activation)
    if hco_file is None:
        found = asyncio.run(_render(catalog, options, kubeconfig, context))
    elif kubeconfig or context:
        raise BadSetting("--hco-file replaces the cluster: remove --kubeconfig and --context, or remove --hco-file")
    else:
        found = render_offline(_text(hco_file), catalog, options, datetime.now(UTC))
    reports = [report for report in _reports(found) if asset in (None, report.asset.name)]
    shown = [one for one in reports if show_excluded or one.status in (AssetStatus.INCLUDED, AssetStatus.ERROR)]
    if asset is not None and not shown and output is not RenderFormat.STATUS:
        typer.echo(hidden_asset(reports[0]), err=True)
    match output:
        case RenderFormat.YAML:
            typer.echo(as_yaml(shown), nl=False)
        case RenderFormat.JSON:
            typer.echo(as_json(shown), nl=False)
        case RenderFormat.STATUS:
            typer.echo(as_table(reports), nl=False)
    if any(report.status is AssetStatus.ERROR for report in reports):
        raise typer.Exit(1)


async def _render(
    catalog: Catalog, options: AutopilotOptions, kubeconfig: str | None, context: str | None
) -> AssetRendition:
    async with quiet_reader(kubeconfig, context) as reader:
        return await render_online(reader, catalog, options, datetime.now(UTC))


def _text(file: str) -> str:
    try:
        return Path(file).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise BadFile(f"Cannot read {file}: {error}") from None


def hidden_asset(report: AssetReport) -> str:
    """Explain why a single asset is not in the output, and how to see it."""
    facts = ", ".join(f"{name}: {fact}" for name, fact in report.details.items())
    reason = f"{report.reason} ({facts})" if facts else report.reason
    return f"{report.asset.name} is not applied: {reason}. Add --show-excluded to see it in the output."


def as_table(reports: Iterable[AssetReport]) -> str:
    known = tuple(reports)
    return "\n".join((*_rows(known), "", _summary(known), ""))


def _rows(reports: Iterable[AssetReport]) -> Iterator[str]:
    rows = ((one.asset.name, one.status, one.asset.object.kind.name, _short(one.reason)) for one in reports)
    return table(("asset", "status", "component", "reason"), rows)


def _short(reason: str) -> str:
    """On a terminal a row is one line; in a pipe or a file nothing is left out."""
    if len(reason) <= LONGEST_REASON or not sys.stdout.isatty():
        return reason
    return f"{reason[: LONGEST_REASON - 1]}…"


def _summary(reports: Iterable[AssetReport]) -> str:
    count = Counter(report.status for report in reports)
    return (
        f"Summary: {count[AssetStatus.INCLUDED]} included, {count[AssetStatus.EXCLUDED]} excluded, "
        f"{count[AssetStatus.FILTERED]} filtered, {count[AssetStatus.ERROR]} errors"
    )


def _reports(found: AssetRendition) -> tuple[AssetReport, ...]:
    if found.idle:
        typer.echo(f"The autopilot is off: {found.idle}. If it were on, it would apply:", err=True)
    if found.held:
        raise CommandFailed(unreadable_exclusions(found.held))
    return found.reports
