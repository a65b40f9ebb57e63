"""How the command line asks for plans and prints them: with colours on a terminal, and without in a pipe."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import typer

from virt_steward import logs
from virt_steward.app import connected
from virt_steward.cli.output import table
from virt_steward.insight.plans import explain_plan
from virt_steward.kube.client import Reader
from virt_steward.kube.errors import one_line
from virt_steward.objects.wallclock import rfc3339
from virt_steward.objects.yamltext import yaml_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from virt_steward.apis.virtplatformconfig import PlanItem
    from virt_steward.controllers.advisor.options import AdvisorOptions
    from virt_steward.insight.plans import PlanExplanation, PlannedChanges

COLOURS = {"+": typer.colors.GREEN, "-": typer.colors.RED, "@": typer.colors.CYAN}
MARKS = {"Pending": "[ ]", "InProgress": "[>]", "Completed": "[+]", "Failed": "[-]"}
SHOWN = 5
"""Nodes and machines that are named; the rest is counted."""


async def asked(profile: str, options: AdvisorOptions, kubeconfig: str | None, context: str | None) -> PlanExplanation:
    logs.configure("auto", "error")  # what goes wrong on the way is part of the answer
    async with connected(kubeconfig, context) as client:
        return await explain_plan(Reader(client.connection, client.discovery), profile, options, datetime.now(UTC))


def show(lines: Iterable[str], *, err: bool = False) -> None:
    """Print, without colours for whoever is no terminal or wants none."""
    typer.echo("\n".join(lines), err=err, color=False if os.environ.get("NO_COLOR") else None)


def plan_lines(plan: PlannedChanges) -> Iterator[str]:
    if not plan.changes:
        yield f"{plan.profile}: nothing to do"
        yield from (f"  {item.name}: {one_line(item.message)}" for item in plan.items)
        return
    yield from item_lines(plan.items)
    count = len(plan.changes)
    yield f"{plan.profile}: {count} change{'s' if count > 1 else ''}, impact {plan.impact}; nothing was changed yet"
    yield f"plan {plan.plan_hash}"


def item_lines(items: Sequence[PlanItem]) -> Iterator[str]:
    """Each item with what it changes and costs, then all of them at a glance."""
    for item in items:
        if item.diff:
            yield from _item(item)
            yield ""
    yield from table(("item", "impact", "state", "target"), [_row(item) for item in items])
    yield ""


def manifests(plan: PlannedChanges) -> str:
    """All that the profile wants, for those who deliver it by other means; what is said of it stands in comments."""
    documents = (
        f"# {item.name}: {item.impact_severity}. {one_line(item.message)}\n{yaml_text(item.desired_state)}"
        for item in plan.items
        if item.desired_state
    )
    return "---\n".join(documents)


def why_lines(found: PlanExplanation) -> Iterator[str]:
    reason = f" ({found.reason})" if found.reason else ""
    yield f"VirtPlatformConfig {found.profile}: {found.phase}{reason}, action {found.action}"
    if found.because:
        yield f"  {one_line(found.because)}"
    if found.waits_for:
        yield f"  waits for {one_line(found.waits_for)}"
    if found.plan_hash:
        yield f"  plan {found.plan_hash}, impact {found.impact}, made by {found.version}"
    if found.approval:
        yield f"  approved by {_signed(found.approval.by, found.approval.at, found.approval.comment)}"
    for item in found.items:
        yield f"  {MARKS[item.state]} {item.name} ({item.impact_severity}): {one_line(item.message)}"
        if item.state in ("Pending", "InProgress"):
            yield from (f"      {line}" for line in _cost(item))
    if found.conditions:
        yield ""
        yield from table(("condition", "status", "since", "reason", "message"), _conditions(found))
    if found.history:
        yield ""
        yield from table(("ended", "outcome", "plan", "version", "by"), _history(found))
    yield ""
    yield "What the advisor would do now, rule by rule:"
    yield from (f"  [+] {one.rule}: {one_line(one.says)}" if one.says else f"  [ ] {one.rule}" for one in found.rules)


def _item(item: PlanItem) -> Iterator[str]:
    yield typer.style(f"{item.name} ({item.impact_severity})", bold=True)
    yield f"  {one_line(item.message)}"
    yield from (f"  {line}" for line in _cost(item))
    yield from (_coloured(line) for line in item.diff.splitlines())


def _cost(item: PlanItem) -> Iterator[str]:
    """Which pools and nodes reboot, in how many rounds, and what becomes of the virtual machines."""
    cost = item.blast_radius
    if cost is None:
        return
    for pool in cost.pools:
        paused = ", once it is resumed" if pool.paused else ""
        yield f"pool {pool.name}: {pool.nodes} nodes reboot in {pool.rounds} rounds{paused}"
    yield f"nodes: {_named(cost.nodes, cost.node_count)}"
    yield f"virtual machines that move: {cost.virtual_machines}"
    if cost.immovable_count:
        yield f"virtual machines that cannot move, and stop: {_named(cost.immovable, cost.immovable_count)}"


def _named(names: Sequence[str], count: int) -> str:
    shown = ", ".join(names[:SHOWN])
    more = count - min(count, SHOWN)
    return f"{count}" + (f" ({shown}{f', and {more} more' if more else ''})" if shown else "")


def _coloured(text: str) -> str:
    line = "".join(char if char.isprintable() else "?" for char in text)  # a terminal must not obey what it shows
    colour = None if line.startswith(("+++", "---")) else COLOURS.get(line[:1])
    return typer.style(line, fg=colour) if colour else line


def _row(item: PlanItem) -> tuple[str, ...]:
    target = item.target_ref
    name = f"{target.namespace}/{target.name}" if target.namespace else target.name
    return item.name, item.impact_severity, item.state, f"{target.kind} {name}"


def _conditions(found: PlanExplanation) -> list[tuple[str, ...]]:
    """Phases that it is not in say nothing."""
    return [
        (one.type, one.status, rfc3339(one.last_transition_time), one.reason, one_line(one.message))
        for one in found.conditions
        if one.status == "True" or not one.reason.startswith(f"Not{one.type}")
    ]


def _history(found: PlanExplanation) -> list[tuple[str, ...]]:
    return [
        (rfc3339(one.at), one.outcome, one.plan_hash[:12], one.version, one_line(_person(one.by, one.comment)))
        for one in found.history
    ]


def _signed(by: str, at: datetime, comment: str) -> str:
    return one_line(f"{by or 'action Apply'} at {rfc3339(at)}" + (f": {comment}" if comment else ""))


def _person(by: str, comment: str) -> str:
    return (by or "action Apply") + (f": {comment}" if comment else "")
