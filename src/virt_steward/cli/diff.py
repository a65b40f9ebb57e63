"""`virt-steward diff`: what the autopilot would change on a cluster, without installing anything there."""

from __future__ import annotations

import asyncio
import sys
from collections import Counter
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

import typer

from virt_steward.apis.virtplatformconfig import BlastRadius
from virt_steward.catalog.aliases import current_name
from virt_steward.catalog.load import load
from virt_steward.cli import advisor_flags, autopilot_flags, completion
from virt_steward.cli.arguments import ContextOption, KubeconfigOption, quiet_client
from virt_steward.cli.output import Output, OutputOption, encoded, say, show, wrapped
from virt_steward.controllers.autopilot.annotation_keys import SCOPE
from virt_steward.controllers.autopilot.overrides.scope import Activation, Idle, Only, parse
from virt_steward.insight.assets.changes import WRITES, ChangeAction, preview_changes
from virt_steward.insight.assets.explain import find_asset
from virt_steward.insight.assets.impact import find_impacts
from virt_steward.insight.assets.survey import survey
from virt_steward.insight.reading import dry_run_client
from virt_steward.objects.document import JsonDocument
from virt_steward.objects.field_changes import FieldChange, field_changes

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from virt_steward.catalog.load import Catalog
    from virt_steward.controllers.autopilot.options import AutopilotOptions
    from virt_steward.controllers.autopilot.overrides.scope import Scope
    from virt_steward.insight.assets.changes import AssetChange
    from virt_steward.insight.assets.impact import RebootImpact
    from virt_steward.objects.identity import Ref

NOTHING, CANNOT_TELL, SOMETHING = 0, 1, 2
MARKS = {
    ChangeAction.CREATE: "+",
    ChangeAction.UPDATE: "~",
    ChangeAction.DELETE: "-",
    ChangeAction.OWN: "=",
    ChangeAction.REPORT: "!",
    ChangeAction.UNKNOWN: "?",
}
LEGEND = "+ create   ~ update   - delete   = own   ! only reported   ? cannot tell"
TEXTS = {
    ChangeAction.OWN: "no value changes; the autopilot would own its fields",
    ChangeAction.REPORT: "differs, and that is only reported, by request",
    ChangeAction.UNKNOWN: "cannot tell",
}
LEFT_OUT = (ChangeAction.SKIP, ChangeAction.WAIT)
MOST_FIELDS = 20
"""Fields of one object in the text: some objects are dashboards."""


class ChangedObject(JsonDocument, frozen=True):
    group: str
    kind: str
    namespace: str
    name: str


class DiffEntry(JsonDocument, frozen=True):
    """What would happen to one object."""

    asset: str
    object: ChangedObject
    action: ChangeAction
    message: str
    staged: bool
    staged_until: str
    fields: tuple[FieldChange, ...]
    pools: tuple[str, ...]
    impact: str
    blast_radius: BlastRadius | None


class DiffDocument(JsonDocument, frozen=True):
    """The answer of `virt-steward diff`."""

    exit_code: int
    idle: str
    """Why the autopilot changes nothing at all; empty if it is on."""
    counts: dict[ChangeAction, int]
    """How many objects there are of each action, also of those that are not listed."""
    staged_count: int
    changes: tuple[DiffEntry, ...]


@dataclass(frozen=True, slots=True)
class ChangeReport:
    """The whole answer."""

    changes: tuple[AssetChange, ...]
    impacts: Mapping[Ref, RebootImpact]
    idle: str = ""
    """Why the autopilot changes nothing at all; empty if it is on."""
    groups: Mapping[str, str] = field(default_factory=dict)
    """By asset, the group by which the allow-list selects it, if it does not name the asset itself."""

    @property
    def exit_code(self) -> int:
        """An incomplete answer is no answer, even if it has changes: there may be more."""
        actions = {one.action for one in self.changes}
        if ChangeAction.UNKNOWN in actions:
            return CANNOT_TELL
        return SOMETHING if actions & set(WRITES) else NOTHING


def diff(
    *,
    assets: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[ASSET]...",
            help="Assets to preview; all by default.",
            show_default=False,
            autocompletion=completion.assets,
        ),
    ] = None,
    scope: Annotated[
        str | None,
        typer.Option(
            metavar="VALUE",
            help=f"Preview as if {SCOPE} on the HyperConverged had this value: true, or names of assets.",
        ),
    ] = None,
    show_excluded: Annotated[
        bool, typer.Option("--show-excluded", help="Also list assets that are left out, and why.")
    ] = False,
    hyperconverged: advisor_flags.HcoOption = advisor_flags.HCO,
    activation: autopilot_flags.ActivationOption = Activation.OPT_IN,
    kubeconfig: KubeconfigOption = None,
    context: ContextOption = None,
    output: OutputOption = Output.TEXT,
) -> None:
    """Preview what the autopilot would change now.

    Reads and dry runs only; nothing of virt-steward need be installed. Lists each object with its changed fields,
    whether the change is staged, and which nodes reboot. Exit code: 0 if nothing would change, 2 if something would, 1
    if that is unknown. Images come from RELATED_IMAGE_ variables, as for the autopilot itself.
    """
    catalog = load()
    names = tuple(find_asset(catalog, current_name(name)).name for name in assets or ())
    options = autopilot_flags.options(hyperconverged, activation)
    report = asyncio.run(_preview(names, scope, options, (kubeconfig, context)))
    if output is Output.JSON:
        typer.echo(encoded(document(report, show_excluded=show_excluded)))
    else:
        show(report_lines(report, show_excluded=show_excluded or bool(names)))
    raise typer.Exit(report.exit_code)


async def _preview(
    names: Sequence[str], scope: str | None, options: AutopilotOptions, cluster: tuple[str | None, str | None]
) -> ChangeReport:
    async with quiet_client(*cluster) as client:
        dry_runs = dry_run_client(client)
        _progress("Reading the cluster")
        found = await survey(dry_runs, load(), options, datetime.now(UTC))
        if scope is not None:
            found = replace(found, seen=replace(found.seen, scope=parse(scope, options.activation)))
        if isinstance(found.seen.scope, Idle):
            return ChangeReport((), {}, found.seen.scope.why)
        _progress("Asking the server what would change, by dry run")
        changes = await preview_changes(dry_runs, found, names)
        impacts = await find_impacts(dry_runs, found, changes)
        return ChangeReport(changes, impacts, groups=_groups(found.view.catalog, found.seen.scope))


def _groups(catalog: Catalog, scope: Scope) -> dict[str, str]:
    if not isinstance(scope, Only):
        return {}
    return {one.name: one.group for one in catalog.assets if one.in_scope(scope.names) and one.name not in scope.names}


def _progress(text: str) -> None:
    if sys.stderr.isatty():
        say(f"{text} …")


def document(report: ChangeReport, *, show_excluded: bool) -> DiffDocument:
    """The answer for programs."""
    counts = Counter(one.action for one in report.changes)
    return DiffDocument(
        report.exit_code,
        report.idle,
        {action: counts[action] for action in ChangeAction},
        sum(bool(one.staged) for one in report.changes),
        tuple(
            _entry(one, report.impacts.get(one.ref))
            for one in report.changes
            if one.action in MARKS or (show_excluded and one.action in LEFT_OUT)
        ),
    )


def _entry(change: AssetChange, impact: RebootImpact | None) -> DiffEntry:
    ref = change.ref
    return DiffEntry(
        change.asset,
        ChangedObject(ref.kind.group, ref.kind.name, ref.key.namespace, ref.key.name),
        change.action,
        change.message,
        bool(change.staged),
        change.staged,
        _fields(change),
        tuple(pool.name for pool in change.pools),
        impact.message if impact else "",
        impact.radius if impact else None,
    )


def _fields(change: AssetChange) -> tuple[FieldChange, ...]:
    return field_changes(change.live, change.planned) if change.planned is not None else ()


def report_lines(report: ChangeReport, *, show_excluded: bool) -> Iterator[str]:
    """Print each change, then what is left out if asked for, then a summary."""
    if report.idle:
        yield from wrapped(f"Nothing would change, because the autopilot is off: {report.idle}")
        yield from wrapped("To preview it as if it were on, add --scope true")
        return
    shown = [one for one in report.changes if one.action in MARKS]
    for change in shown:
        yield from _change(change, report.impacts.get(change.ref), report.groups.get(change.asset, ""))
        yield ""
    if show_excluded:
        for change in report.changes:
            if change.action in LEFT_OUT:
                yield from wrapped(f"{change.asset} is left out: {change.message}", "  ", "    ")
    if shown:
        yield LEGEND
    yield from _reboots(report)
    yield from wrapped(_summary(report))


def _reboots(report: ChangeReport) -> Iterator[str]:
    """Sum up whose nodes reboot, at once and later: of many changes, these are the ones to know of."""
    rebooting = [one for one in report.changes if one.reboots]
    for when, some in (
        ("At once", [one for one in rebooting if not one.staged]),
        ("Later, once the change is released or its pool rolls out anyway,", [one for one in rebooting if one.staged]),
    ):
        if pools := sorted({pool.name for one in some for pool in one.pools}):
            causes = ", ".join(dict.fromkeys(one.asset for one in some if one.pools))
            yield from wrapped(f"{when} all nodes of pool {', '.join(pools)} would reboot, because of {causes}")


def _change(change: AssetChange, impact: RebootImpact | None, group: str = "") -> Iterator[str]:
    text = TEXTS.get(change.action, f"would be {change.action}d")
    if change.staged:
        reason = f" ({change.message})" if change.message else ""
        text += f"{reason}, but is staged first: {change.staged}"
    elif change.message:
        text += f": {change.message}"
    name = f" ({change.asset}{f', of group {group}' if group else ''})" if change.asset else ""
    yield from wrapped(f"{MARKS[change.action]} {change.ref}{name}: {text}", "", "    ")
    if impact:
        yield from wrapped(f"impact: {impact.message}", "    ", "      ")
    fields = _fields(change)
    for one in fields[:MOST_FIELDS]:
        yield from wrapped(str(one) if change.live else one.assignment, "    ", "      ")
    if len(fields) > MOST_FIELDS:
        yield f"    and {len(fields) - MOST_FIELDS} more fields; -o json has all of them"


def _summary(report: ChangeReport) -> str:
    counts = Counter(one.action for one in report.changes)
    staged = sum(bool(one.staged) for one in report.changes)
    texts = [f"{counts[action]} to {action}" for action in WRITES if counts[action]]
    texts += [f"{staged} of them staged first"] if staged else []
    texts += [f"{counts[ChangeAction.UNKNOWN]} unknown"] if counts[ChangeAction.UNKNOWN] else []
    same = counts[ChangeAction.NONE] + counts[ChangeAction.OWN]
    left_out = sum(counts[action] for action in LEFT_OUT)
    head = ", ".join(texts) or "Nothing would change"
    return f"{head}; {same} in sync, {left_out} left out. Nothing was changed"
