"""`virt-steward uninstall`: removes what is ours from a cluster, and hands the rest over."""

from __future__ import annotations

import asyncio
import os
from collections import Counter
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import msgspec
import typer

from virt_steward.cli import advisor_flags
from virt_steward.cli.arguments import ContextOption, KubeconfigOption, YesOption, quiet_client, require_consent
from virt_steward.cli.output import CommandFailed, Output, OutputOption, encoded, show, wrapped
from virt_steward.kube import faults
from virt_steward.kube.whoami import server_time
from virt_steward.removal.act import take_step
from virt_steward.removal.decide import RemovalAction, decide_removal, refusal
from virt_steward.removal.found import Part
from virt_steward.removal.observe import observe_installation
from virt_steward.runtime.access import NAMESPACE

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from virt_steward.cli.arguments import ClusterChoice
    from virt_steward.objects.identity import Key, Ref
    from virt_steward.removal.decide import RemovalStep
    from virt_steward.removal.found import InstallationSeen

MARKS = {RemovalAction.DELETE: "-", RemovalAction.RELEASE: "~", RemovalAction.KEEP: "="}
LEGEND = "- deleted   ~ stays, and its fields are released   = stays as it is"


class RemovalResult(StrEnum):
    """How a removal ended."""

    NOTHING = "nothing to do"
    PLANNED = "planned"
    DONE = "done"
    INCOMPLETE = "incomplete"


EXIT_CODES = {
    RemovalResult.NOTHING: 0,
    RemovalResult.DONE: 0,
    RemovalResult.PLANNED: 2,
    RemovalResult.INCOMPLETE: 1,
}


class RemovalRow(msgspec.Struct, frozen=True, rename="camel"):
    """What is done, or was done, with one object."""

    action: RemovalAction
    part: Part
    """What the object is to virt-steward."""
    group: str
    kind: str
    namespace: str
    name: str
    removes: tuple[str, ...] = ()
    """Field managers and annotations that are removed from an object that stays."""
    keeps: tuple[str, ...] = ()
    """Annotations and labels of ours, or for us, that stay on it."""
    reason: str = ""
    error: str = ""
    """Why the step was not taken."""


class RemovalReport(msgspec.Struct, frozen=True, rename="camel"):
    """The answer of `uninstall -o json`."""

    result: RemovalResult
    dry_run: bool
    running: tuple[str, ...]
    """Why controllers seem to run; then only a dry run is possible."""
    steps: tuple[RemovalRow, ...]
    problems: tuple[str, ...]
    """What could not be read."""


def uninstall(
    *,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only list what would be deleted or released, and what would stay.")
    ] = False,
    delete_crds: Annotated[
        bool,
        typer.Option(
            "--delete-crds",
            help="Also delete the CRDs, and with them all VirtPlatformConfigs and InstallPlanApprovers.",
        ),
    ] = False,
    yes: YesOption = False,
    namespace: Annotated[str, typer.Option(metavar="NAME", help="Namespace of the controllers.")] = NAMESPACE,
    hyperconverged: advisor_flags.HcoOption = advisor_flags.HCO,
    kubeconfig: KubeconfigOption = None,
    context: ContextOption = None,
    output: OutputOption = Output.TEXT,
) -> None:
    """Remove virt-steward from a cluster.

    Deletes roles, Deployments, admission policies, Leases and records of virt-steward. What its controllers created or
    changed stays with its values, and virt-steward releases its ownership of fields: no node reboots. Controllers must
    be stopped first. It can be repeated at any time, for example after an interruption. Exit code: 0 if all was done or
    nothing was to do; 1 if something could not be read or removed, or controllers run; 2 if a dry run found something
    to do.
    """
    faults.arm(os.environ)
    request = _RemovalRequest(namespace, advisor_flags.hco(hyperconverged), dry_run, delete_crds, yes)
    report = asyncio.run(_uninstall(request, (kubeconfig, context)))
    if output is Output.JSON:
        typer.echo(encoded(report))
    else:
        show(report_lines(report))
    raise typer.Exit(EXIT_CODES[report.result])


@dataclass(frozen=True, slots=True)
class _RemovalRequest:
    namespace: str
    hco: Key
    dry_run: bool
    delete_crds: bool
    is_confirmed: bool


async def _uninstall(request: _RemovalRequest, cluster: ClusterChoice) -> RemovalReport:
    async with quiet_client(*cluster) as client:
        seen = await observe_installation(client, request.namespace, request.hco, await server_time(client))
        steps = decide_removal(seen, delete_crds=request.delete_crds)
        planned = removal_report(seen, steps, dry_run=request.dry_run)
        if request.dry_run or all(step.action is RemovalAction.KEEP for step in steps):
            return planned
        if reason := refusal(seen):
            raise CommandFailed(f"Nothing was changed: {reason}")
        if not request.is_confirmed:
            show(report_lines(planned), err=True)
        require_consent("Remove it?", is_given=request.is_confirmed, binding="--dry-run")
        errors = {step.ref: failed.message for step in steps if (failed := await take_step(client, step))}
        return removal_report(seen, steps, errors, dry_run=False)


def removal_report(
    seen: InstallationSeen,
    steps: Sequence[RemovalStep],
    errors: Mapping[Ref, str] | None = None,
    *,
    dry_run: bool,
) -> RemovalReport:
    """Report what is planned, or what was done; `errors` are those of steps that were not taken."""
    result = RemovalResult.DONE if errors is not None else RemovalResult.PLANNED
    if all(step.action is RemovalAction.KEEP for step in steps):
        result = RemovalResult.NOTHING
    if errors or seen.problems:
        result = RemovalResult.INCOMPLETE
    rows = tuple(_row(step, (errors or {}).get(step.ref, "")) for step in steps)
    return RemovalReport(result, dry_run, seen.running, rows, seen.problems)


def _row(step: RemovalStep, error: str) -> RemovalRow:
    kind, key = step.ref.kind, step.ref.key
    return RemovalRow(
        action=step.action,
        part=step.part,
        group=kind.group,
        kind=kind.name,
        namespace=key.namespace,
        name=key.name,
        removes=step.removes,
        keeps=step.keeps,
        reason=step.reason,
        error=error,
    )


def report_lines(report: RemovalReport) -> Iterator[str]:
    """Print a line for each object, then how it ended."""
    for row in report.steps:
        yield from _row_lines(row)
    if report.steps:
        yield LEGEND
    for problem in report.problems:
        yield from wrapped(f"? {problem}: what is there is unknown", hanging="  ")
    for reason in report.running:
        yield from wrapped(f"! {reason}: stop it before the removal", hanging="  ")
    failed = sum(bool(row.error) for row in report.steps)
    counts = Counter(row.action for row in report.steps if not row.error)
    deleted, released, kept = (counts[action] for action in RemovalAction)
    summary = f"{deleted} to delete, {released} to release, {kept} stay"
    if report.result is RemovalResult.DONE or failed:
        summary = f"{deleted} deleted, {released} released, {kept} stay, {failed} failed"
    yield f"{report.result}: {summary}" + (". Nothing was changed" if report.dry_run else "")


def _row_lines(row: RemovalRow) -> Iterator[str]:
    name = f"{row.namespace}/{row.name}" if row.namespace else row.name
    text = f"{MARKS[row.action]} {row.kind} {name}" + (f": {row.reason}" if row.reason else "")
    yield from wrapped(text, hanging="    ")
    if row.removes:
        yield from wrapped(f"removed: {', '.join(row.removes)}", "    ", "      ")
    if row.keeps:
        yield from wrapped(f"stays: {', '.join(row.keeps)}", "    ", "      ")
    if row.error:
        yield from wrapped(f"failed: {row.error}", "    ", "      ")
