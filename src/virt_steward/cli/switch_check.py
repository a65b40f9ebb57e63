"""`virt-steward switch-check`: what would change if virt-steward took over from the Go operators of a cluster."""

from __future__ import annotations

import asyncio
from collections import Counter
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

import typer

from virt_steward.cli import advisor_flags, approver_flags, autopilot_flags, completion, placement_flags
from virt_steward.cli.arguments import ContextOption, KubeconfigOption, quiet_client
from virt_steward.cli.output import Output, OutputOption, encoded, show, wrapped
from virt_steward.cli.plan import coloured
from virt_steward.controllers import NAMES
from virt_steward.controllers.autopilot.overrides.scope import Activation
from virt_steward.controllers.options import ControllerOptions
from virt_steward.controllers.placement.options import PlacementOptions
from virt_steward.insight.switchover.check import check_switch
from virt_steward.insight.switchover.findings import Effect, SwitchReport, SwitchVerdict, verdict_on
from virt_steward.insight.switchover.operators import OPERATORS
from virt_steward.objects.document import JsonDocument
from virt_steward.runtime.access import NAMESPACE
from virt_steward.settings import chosen

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from virt_steward.insight.switchover.findings import SwitchFinding

EXIT_CODES = {SwitchVerdict.SAME: 0, SwitchVerdict.CHANGES: 2, SwitchVerdict.UNKNOWN: 1}
MARKS = {Effect.CHANGE: "~", Effect.NOTE: "-", Effect.UNKNOWN: "?"}
NOUNS = {
    Effect.CHANGE: ("change", "changes"),
    Effect.NOTE: ("note", "notes"),
    Effect.UNKNOWN: ("unknown", "unknown"),
}
LONGEST_DIFF = 30
"""Lines: some objects are dashboards."""
LEGEND = "~ would change   - good to know   ? cannot tell"


class SwitchDocument(JsonDocument, frozen=True):
    """The answer of `virt-steward switch-check`."""

    verdict: SwitchVerdict
    counts: dict[Effect, int]
    """How many findings there are of each effect."""
    controllers: tuple[SwitchReport, ...]


def switch_check(
    *,
    controllers: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[CONTROLLER]...",
            help="Controllers to check; all by default.",
            show_default=False,
            autocompletion=completion.controllers,
        ),
    ] = None,
    hyperconverged: advisor_flags.HcoOption = advisor_flags.HCO,
    activation: autopilot_flags.ActivationOption = Activation.OPT_IN,
    namespace: approver_flags.InstallationOption = NAMESPACE,
    policy_namespaces: approver_flags.PolicyNamespacesOption = None,
    vm_name: placement_flags.VmNameOption = "vm-{machine}",
    kubeconfig: KubeconfigOption = None,
    context: ContextOption = None,
    output: OutputOption = Output.TEXT,
) -> None:
    """Preview a switch from the Go operators to virt-steward.

    Reads and dry runs only; nothing of virt-steward need be installed. Exit code: 0 if nothing would change, 2 if
    something would, 1 if that is unknown, for example because a right is missing.
    """
    selected = chosen(NAMES, tuple(controllers)) if controllers else NAMES
    rules = placement_flags.rules(
        "", "none", placement_flags.SearchMode.FOUND, vm_name, "topology.kubernetes.io/region"
    )
    options = ControllerOptions(
        advisor=advisor_flags.asking(hyperconverged),
        autopilot=autopilot_flags.options(hyperconverged, activation),
        approver=approver_flags.options(namespace, policy_namespaces, ()),
        placement=PlacementOptions(rules),
    )
    reports = asyncio.run(_check(selected, options, (kubeconfig, context)))
    verdict = verdict_on(reports)
    if output is Output.JSON:
        typer.echo(encoded(document(reports, verdict)))
    else:
        show(report_lines(reports, verdict))
    raise typer.Exit(EXIT_CODES[verdict])


async def _check(
    selected: Sequence[str], options: ControllerOptions, cluster: tuple[str | None, str | None]
) -> tuple[SwitchReport, ...]:
    async with quiet_client(*cluster) as client:
        return await check_switch(client, selected, options, datetime.now(UTC))


def document(reports: Sequence[SwitchReport], verdict: SwitchVerdict) -> SwitchDocument:
    """The answer for programs."""
    counts = Counter(finding.effect for report in reports for finding in report.findings)
    return SwitchDocument(verdict, {effect: counts[effect] for effect in Effect}, tuple(reports))


def report_lines(reports: Sequence[SwitchReport], verdict: SwitchVerdict) -> Iterator[str]:
    """Print the findings of each controller, then the verdict."""
    for report in reports:
        yield from _report(report)
        yield ""
    if any(report.findings for report in reports):
        yield LEGEND
    yield f"Verdict: {verdict}. Nothing was changed"


def _report(report: SwitchReport) -> Iterator[str]:
    operator = next(one for one in OPERATORS if one.controller == report.controller)
    yield typer.style(f"{report.controller}: {_summary(report, operator.name)}", bold=True)
    for trace in report.found:
        yield from wrapped(f"found: {trace}", "  ", "    ")
    for finding in report.findings:
        yield from _finding(finding)


def _summary(report: SwitchReport, operator: str) -> str:
    if not report.found and not report.findings:
        return f"no trace of {operator}"
    counts = Counter(finding.effect for finding in report.findings)
    texts = [f"{counts[effect]} {NOUNS[effect][counts[effect] != 1]}" for effect in Effect if counts[effect]]
    return ", ".join(texts) or "nothing would change"


def _finding(finding: SwitchFinding) -> Iterator[str]:
    yield from wrapped(f"{MARKS[finding.effect]} {finding.subject}: {finding.message}", "  ", "    ")
    if finding.disruption:
        yield from wrapped(finding.disruption, "    ")
    lines = finding.diff.splitlines()
    yield from (f"      {coloured(line)}" for line in lines[:LONGEST_DIFF])
    if len(lines) > LONGEST_DIFF:
        yield f"      {len(lines) - LONGEST_DIFF} more lines; -o json has all of them"
