"""`virt-steward status`: whether each controller is well, and the state of its objects."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import typer

from virt_steward.cli import advisor_flags, approver_flags, autopilot_flags
from virt_steward.cli.arguments import ContextOption, KubeconfigOption, quiet_client
from virt_steward.cli.output import Output, OutputOption, answer, wrapped, wrapped_table
from virt_steward.controllers.autopilot.overrides.scope import Activation
from virt_steward.controllers.options import ControllerOptions
from virt_steward.insight.assets.explain import LEFT_ALONE
from virt_steward.insight.health import LeaderState, Verdict
from virt_steward.insight.health_survey import StatusOptions, read_status
from virt_steward.insight.inbox_survey import InboxOptions
from virt_steward.objects.wallclock import rfc3339
from virt_steward.runtime.access import NAMESPACE

if TYPE_CHECKING:
    from collections.abc import Iterator

    from virt_steward.cli.arguments import ClusterChoice
    from virt_steward.insight.health import Leading
    from virt_steward.insight.health_survey import ControllerStatus, InstallationStatus
    from virt_steward.insight.status import ProfileRow, Section

EXIT_CODES = {Verdict.WELL: 0, Verdict.NEEDS_PERSON: 2, Verdict.CANNOT_TELL: 1}
WAITING_SHOWN = 5
"""Items of the inbox in the text; `inbox` lists all."""
UNPLACED_SHOWN = 20
"""Machines in the text; JSON has all."""


def status(
    *,
    hyperconverged: advisor_flags.HcoOption = advisor_flags.HCO,
    activation: autopilot_flags.ActivationOption = Activation.OPT_IN,
    namespace: approver_flags.InstallationOption = NAMESPACE,
    policy_namespaces: approver_flags.PolicyNamespacesOption = None,
    kubeconfig: KubeconfigOption = None,
    context: ContextOption = None,
    output: OutputOption = Output.TEXT,
) -> None:
    """Check the health of the controllers and list their objects.

    For each controller: whether it is installed, who leads since when, its last success, what waits for a person, and
    what you or the controller may not read. Nothing is changed.

    Exit code: 0 if all is well, 2 if something needs a person, 1 if that is unknown. What needs a person counts
    first.
    """
    autopilot = autopilot_flags.options(hyperconverged, activation, namespace)
    approver = approver_flags.options(namespace, policy_namespaces)
    options = StatusOptions(
        ControllerOptions(
            advisor=advisor_flags.asking(hyperconverged, namespace=namespace), autopilot=autopilot, approver=approver
        ),
        InboxOptions(autopilot, approver),
    )
    found = asyncio.run(_read(options, (kubeconfig, context)))
    answer(output, "\n".join(status_lines(found)), found)
    raise typer.Exit(EXIT_CODES[found.verdict])


async def _read(options: StatusOptions, cluster: ClusterChoice) -> InstallationStatus:
    async with quiet_client(*cluster) as client:
        return await read_status(client, options)


def status_lines(found: InstallationStatus) -> Iterator[str]:
    for one in found.controllers:
        yield from _health_lines(one)
        yield from _object_lines(one.objects)
        yield ""
    yield from wrapped(_conclusion(found), hanging="  ")


def _conclusion(found: InstallationStatus) -> str:
    if all(one.health.installed is False for one in found.controllers):
        return (
            f"No controller is installed in namespace {found.namespace}: name another one by --namespace, "
            "or install them: virt-steward manifests"
        )
    named = ", ".join(one.health.controller for one in found.controllers if one.health.verdict is found.verdict)
    match found.verdict:
        case Verdict.WELL:
            return "All is well"
        case Verdict.NEEDS_PERSON:
            return f"Needs a person: {named}"
        case Verdict.CANNOT_TELL:
            return f"Cannot tell: {named}"


def _health_lines(found: ControllerStatus) -> Iterator[str]:
    health = found.health
    is_well = health.verdict is Verdict.WELL
    words = (*(("not installed",) if health.installed is False else ()), *(() if is_well else (health.verdict,)))
    yield f"{health.controller}: {', '.join(words) or health.verdict}"
    if health.installed is not False:
        yield from _fact("leading", _leading(health.leading))
        yield from _fact("last success", rfc3339(health.last_success) if health.last_success else "none recorded")
    if found.waiting:
        yield from _fact("waiting", f"{len(found.waiting)} for a person; decide: virt-steward inbox")
        for item in found.waiting[:WAITING_SHOWN]:
            yield from wrapped(f"{item.tag}: {item.message}", "    ", "      ")
        if len(found.waiting) > WAITING_SHOWN:
            yield f"    and {len(found.waiting) - WAITING_SHOWN} more"
    for title, texts in (("problem", health.problems), ("note", health.notes), ("cannot read", health.unread)):
        for text in texts:
            yield from _fact(title, text)


def _fact(title: str, text: str) -> list[str]:
    return wrapped(f"{title}: {text}", "  ", "    ")


def _leading(leading: Leading) -> str:
    match leading.state:
        case LeaderState.LEADING:
            return leading.holder + (f" since {rfc3339(leading.since)}" if leading.since else "")
        case LeaderState.STANDING_BY | LeaderState.NO_ELECTION:
            return leading.message
        case LeaderState.UNKNOWN:
            return "unknown"
        case LeaderState.NOBODY | LeaderState.EXPIRED:
            return f"nobody ({leading.message})"


def _object_lines(section: Section) -> Iterator[str]:
    if section.frozen:
        yield from _fact("frozen", section.frozen)
    if section.summary:
        yield from wrapped(section.summary, "  ", "    ")
    if any(one.state == LEFT_ALONE for one in section.assets):
        yield from wrapped("why assets are left alone: virt-steward diff --show-excluded", "  ", "    ")
    for head, rows in _tables(section):
        yield from wrapped_table(head, rows, "    ")
    if len(section.machines) > UNPLACED_SHOWN:
        yield f"    and {len(section.machines) - UNPLACED_SHOWN} more; -o json lists all"
    for one in section.decisions:
        yield from wrapped(f"{rfc3339(one.at)} {one.object}: {one.sentence}", "    ", "      ")


def _impact(row: ProfileRow) -> str:
    """An inactive profile has no plan, so nothing is known of its impact on this cluster."""
    return f"usually {row.impact}" if row.phase == "Ignored" else row.impact


def _tables(section: Section) -> Iterator[tuple[tuple[str, ...], list[tuple[str, ...]]]]:
    """Each with its columns; the last one holds sentences."""
    if section.profiles:
        yield (
            ("profile", "action", "phase", "impact", "message"),
            [(one.profile, one.action, one.phase, _impact(one), one.message) for one in section.profiles],
        )
    if any(one.state != LEFT_ALONE for one in section.assets):
        assets = [one for one in section.assets if one.state != LEFT_ALONE]
        yield ("asset", "state", "why"), [(one.asset, one.state, one.why) for one in assets]
    if section.install_plans:
        plans = section.install_plans
        yield ("plan", "reason", "message"), [(one.plan, one.reason, one.message) for one in plans]
    if section.clusters:
        yield (
            ("cluster", "state", "machines", "version", "message"),
            [
                (
                    one.cluster,
                    one.state if one.schedulable else f"{one.state}, cordoned",
                    str(one.machines),
                    one.version,
                    one.message,
                )
                for one in section.clusters
            ],
        )
    if section.machines:
        machines = section.machines[:UNPLACED_SHOWN]
        yield ("machine", "reason", "message"), [(one.machine, one.reason, one.message) for one in machines]
