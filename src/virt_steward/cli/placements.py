"""How the command line asks for a machine's cluster, and prints the answer."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from virt_steward import logs
from virt_steward.app import connected
from virt_steward.cli.output import table
from virt_steward.controllers.placement.options import PlacementOptions
from virt_steward.insight.placements import explain_placement, preview_placements
from virt_steward.kube.client import Reader

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator, Sequence

    from virt_steward.controllers.placement.observation import PlacementRules
    from virt_steward.insight.placements import Candidate, PlacementExplanation
    from virt_steward.objects.identity import Key

MARKS = {"chooses": "[+]", "narrows": "[>]", "abstains": "[ ]", "blocks": "[-]"}


async def asked(
    machine: Key, rules: PlacementRules, kubeconfig: str | None, context: str | None
) -> PlacementExplanation:
    async with _reader(kubeconfig, context) as reader:
        return await explain_placement(reader, machine, PlacementOptions(rules))


async def asked_for_all(
    rules: PlacementRules, kubeconfig: str | None, context: str | None
) -> tuple[PlacementExplanation, ...]:
    async with _reader(kubeconfig, context) as reader:
        return await preview_placements(reader, PlacementOptions(rules))


@asynccontextmanager
async def _reader(kubeconfig: str | None, context: str | None) -> AsyncIterator[Reader]:
    logs.configure("auto", "error")  # what goes wrong on the way to a cluster is part of the answer
    async with connected(kubeconfig, context) as client:
        yield Reader(client.connection, client.discovery)


def headline(found: PlacementExplanation) -> str:
    if found.recorded and found.cluster:
        return f"Machine {found.machine} is placed on {found.recorded}"
    if found.recorded:
        return f"Machine {found.machine} is placed on {found.recorded}, but: {found.because}"
    if found.cluster:
        return f"Machine {found.machine} goes to {found.cluster}: {found.because}"
    return f"Machine {found.machine} is not placed: {found.because}"


def headlines(found: Sequence[PlacementExplanation]) -> Iterator[str]:
    yield from map(headline, found)
    if found:
        yield assumptions(found[0].assumed)


def lines(found: PlacementExplanation) -> Iterator[str]:
    yield headline(found)
    if found.recorded_because:
        yield f"  chosen then: {found.recorded_because}"
    yield from (f"  {MARKS[step.verdict]} {step.strategy}: {step.because}" for step in found.steps)
    if found.scores:
        yield ""
        yield from table(("cluster", "score"), [(one.cluster, one.words) for one in found.scores])
    if found.clusters:
        yield ""
        yield from table(("cluster", "machines", "VM", "state"), [_row(one) for one in found.clusters])
    yield ""
    yield assumptions(found.assumed)


def assumptions(rules: PlacementRules) -> str:
    """An answer by other settings than the controller's may be another one."""
    over = f" over {rules.spread_label}" if rules.strategy == "spread" else ""
    search = "strict" if rules.strict_search else "found"
    return (
        f"Assumed: strategy {rules.strategy}{over}, default config {rules.default_config or 'none'}, search {search}, "
        f"VM name {rules.vm_name}; the controller's settings may differ"
    )


def _row(cluster: Candidate) -> tuple[str, ...]:
    state = cluster.trouble or ("ready" if cluster.schedulable else "cordoned")
    return cluster.name, str(cluster.machines), cluster.vm or "not asked", state
