"""`virt-steward plan`: what a profile would change on a cluster, without installing anything there."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from enum import StrEnum
from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from virt_steward.cli import advisor_flags
from virt_steward.cli.arguments import ContextOption, KubeconfigOption, ProfileArgument, quiet_client
from virt_steward.cli.output import CommandFailed, encoded, show, table, wrapped
from virt_steward.cli.profile_options import set_options
from virt_steward.insight.plans import preview_plan, profile_named
from virt_steward.kube.client import Selection
from virt_steward.kube.errors import one_line
from virt_steward.objects.meta import Existing
from virt_steward.objects.yamltext import yaml_text
from virt_steward.platform.hco import HYPERCONVERGED

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from virt_steward.apis.virtplatformconfig import PlanItem
    from virt_steward.controllers.advisor.options import AdvisorOptions
    from virt_steward.insight.plans import PlannedChanges, PlanRequest
    from virt_steward.kube.client import Reader
    from virt_steward.objects.identity import Key

CHANGES = 2
"""Exit code if the plan changes something."""
COLOURS = {"+": typer.colors.GREEN, "-": typer.colors.RED, "@": typer.colors.CYAN}
SHOWN = 5
"""Nodes and VMs that are named; the rest is counted."""


class PlanFormat(StrEnum):
    """How a plan is printed."""

    DIFF = "diff"
    JSON = "json"
    MANIFESTS = "manifests"


def plan(
    *,
    profile: ProfileArgument,
    sets: Annotated[
        list[str] | None,
        typer.Option(
            "--set", metavar="NAME=VALUE", help="Set an option of the profile, as in spec.options; may be repeated."
        ),
    ] = None,
    hyperconverged: advisor_flags.HcoOption = advisor_flags.HCO,
    example_profile: advisor_flags.ExampleOption = False,
    kubeconfig: KubeconfigOption = None,
    context: ContextOption = None,
    output: Annotated[
        PlanFormat, typer.Option("--output", "-o", help="Diffs, a JSON document, or the desired objects as YAML.")
    ] = PlanFormat.DIFF,
) -> None:
    """Preview what a profile changes and its impact.

    Nothing is changed. Exit code: 0 if there is nothing to change, 2 if the plan changes something, 1 on errors.
    With -o manifests it is 0 in both cases, so that a pipe into another command goes on.
    Options in the cluster's VirtPlatformConfig apply unless --set overrides them.
    """
    options = advisor_flags.asking(hyperconverged, example_profile=example_profile)
    profile_named(profile, options)  # an unknown profile is reported before an unknown option of it
    change = partial(set_options, profile, sets or ())
    found = asyncio.run(_preview(profile, change, options, (kubeconfig, context)))
    match output:
        case PlanFormat.DIFF:
            show(plan_lines(found))
        case PlanFormat.JSON:
            typer.echo(encoded(found))
        case PlanFormat.MANIFESTS:
            typer.echo(desired_manifests(found), nl=False)
            return
    if found.changes:
        raise typer.Exit(CHANGES)


async def _preview(
    profile: str, change: PlanRequest, options: AdvisorOptions, cluster: tuple[str | None, str | None]
) -> PlannedChanges:
    async with quiet_client(*cluster) as client:
        if str(options.hco) != advisor_flags.HCO:
            await _require_platform(client, options.hco)
        return await preview_plan(client, profile, change, options, datetime.now(UTC))


async def _require_platform(reader: Reader, hco: Key) -> None:
    """A HyperConverged that somebody names has to exist: a plan from defaults is not what they asked for."""
    found = await reader.list(HYPERCONVERGED, Selection(metadata_only=True), Existing)
    names = sorted(str(one.metadata.key) for one in found)
    if str(hco) not in names:
        raise CommandFailed(f"HyperConverged {hco} not found; existing: {', '.join(names) or 'none'}")


def plan_lines(plan: PlannedChanges) -> Iterator[str]:
    if not plan.changes:
        yield f"{plan.profile}: nothing to change"
        for item in plan.items:
            yield from wrapped(f"{item.name}: {item.message}", "  ", "    ")
        yield from _notes(plan)
        return
    yield from item_lines(plan.items)
    count = len(plan.changes)
    yield f"{plan.profile}: {count} change{'s' if count > 1 else ''}, impact {plan.impact}. Nothing was changed yet"
    yield f"plan {plan.plan_hash}"
    yield from _notes(plan)


def _notes(plan: PlannedChanges) -> Iterator[str]:
    for note in plan.notes:
        yield from wrapped(f"Note: {note}", "", "  ")


def item_lines(items: Sequence[PlanItem]) -> Iterator[str]:
    """Print each item with its diff and impact, then a table of all items."""
    for item in items:
        if item.diff:
            yield from _item(item)
            yield ""
    yield from table(("item", "impact", "state", "target"), [_row(item) for item in items])
    yield ""


def desired_manifests(plan: PlannedChanges) -> str:
    """Print all desired objects, for those who deliver them by other means; impact and message are comments."""
    documents = (
        f"# {item.name}: {item.impact_severity}. {one_line(item.message)}\n{yaml_text(item.desired_state)}"
        for item in plan.items
        if item.desired_state
    )
    return "---\n".join(documents)


def impact_lines(item: PlanItem) -> Iterator[str]:
    """Which pools and nodes reboot, in how many rounds, and which VMs migrate or stop."""
    impact = item.blast_radius
    if impact is None:
        return
    for pool in impact.pools:
        paused = ", once it is resumed" if pool.paused else ""
        yield f"pool {pool.name}: {_counted(pool.nodes, 'node')} reboot in {_counted(pool.rounds, 'round')}{paused}"
    yield f"nodes: {_named(impact.nodes, impact.node_count)}"
    yield f"VMs to migrate: {impact.virtual_machines}"
    if impact.immovable_count:
        yield f"VMs that cannot migrate and will stop: {_named(impact.immovable, impact.immovable_count)}"


def _item(item: PlanItem) -> Iterator[str]:
    yield typer.style(f"{item.name} ({item.impact_severity})", bold=True)
    yield from wrapped(item.message, "  ")
    yield from (f"  {line}" for line in impact_lines(item))
    yield from (coloured(line) for line in item.diff.splitlines())


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _named(names: Sequence[str], count: int) -> str:
    shown = ", ".join(names[:SHOWN])
    more = count - min(count, SHOWN)
    return f"{count}" + (f" ({shown}{f', and {more} more' if more else ''})" if shown else "")


def coloured(text: str) -> str:
    line = "".join(char if char.isprintable() else "?" for char in text)  # no escape sequence reaches the terminal
    colour = None if line.startswith(("+++", "---")) else COLOURS.get(line[:1])
    return typer.style(line, fg=colour) if colour else line


def _row(item: PlanItem) -> tuple[str, ...]:
    target = item.target_ref
    name = f"{target.namespace}/{target.name}" if target.namespace else target.name
    return item.name, item.impact_severity, item.state, f"{target.kind} {name}"
