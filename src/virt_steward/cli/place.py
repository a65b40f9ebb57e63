"""`virt-steward place`: a preview of where Machines would be placed."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Annotated

import typer

from virt_steward.cli import completion, placement_flags
from virt_steward.cli.arguments import ContextOption, KubeconfigOption, namespaced, quiet_reader
from virt_steward.cli.output import Output, OutputOption, answer, wrapped
from virt_steward.controllers.placement.options import PlacementOptions
from virt_steward.insight.placements import PlacementExplanation, explain_placement, preview_placements
from virt_steward.objects.document import JsonDocument
from virt_steward.settings import BadSetting

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from virt_steward.controllers.placement.options import PlacementRules
    from virt_steward.insight.placements import AssumedRules
    from virt_steward.objects.identity import Key


class PlacementsDocument(JsonDocument, frozen=True):
    """The answer of `virt-steward place`."""

    count: int
    placed: int
    """How many of them would get a cluster."""
    machines: tuple[PlacementExplanation, ...]


def place(
    *,
    machine: Annotated[
        str | None, typer.Argument(metavar="NAMESPACE/NAME", help="The Machine.", autocompletion=completion.machines)
    ] = None,
    every: Annotated[bool, typer.Option("--all", help="Preview all Machines that have no cluster yet.")] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Required: only the controller and the annotation place a Machine.")
    ] = False,
    default_kubevirt_config: placement_flags.DefaultConfigOption = "",
    placement_strategy: placement_flags.StrategyOption = "none",
    search: placement_flags.SearchOption = placement_flags.SearchMode.FOUND,
    vm_name: placement_flags.VmNameOption = "vm-{machine}",
    spread_label: placement_flags.SpreadLabelOption = "topology.kubernetes.io/region",
    kubeconfig: KubeconfigOption = None,
    context: ContextOption = None,
    output: OutputOption = Output.TEXT,
) -> None:
    """Preview where Machines would be placed by these settings."""
    if not dry_run:
        raise BadSetting("place only previews: add --dry-run; to choose a cluster yourself, annotate the Machine")
    if (machine is None) is not every:
        raise BadSetting("place needs one Machine, as NAMESPACE/NAME, or --all")
    rules = placement_flags.rules(default_kubevirt_config, placement_strategy, search, vm_name, spread_label)
    found = asyncio.run(_preview(namespaced(machine) if machine else None, rules, kubeconfig, context))
    document = PlacementsDocument(len(found), sum(one.cluster is not None for one in found), found)
    answer(output, "\n".join(_lines(found)) or "Nothing to place: every Machine has a cluster", document)


async def _preview(
    machine: Key | None, rules: PlacementRules, kubeconfig: str | None, context: str | None
) -> tuple[PlacementExplanation, ...]:
    async with quiet_reader(kubeconfig, context) as reader:
        if machine is None:
            return await preview_placements(reader, PlacementOptions(rules))
        return (await explain_placement(reader, machine, PlacementOptions(rules)),)


def _lines(found: Sequence[PlacementExplanation]) -> Iterator[str]:
    for one in found:
        yield from headline(one)
    if found:
        yield from assumptions(found[0].assumed)


def headline(found: PlacementExplanation) -> list[str]:
    """Say in one sentence where a Machine is or goes."""
    if found.recorded and found.cluster:
        text = f"Machine {found.machine} is placed on {found.recorded}"
    elif found.recorded:
        text = f"Machine {found.machine} is placed on {found.recorded}, but: {found.because}"
    elif found.cluster:
        text = f"Machine {found.machine} goes to {found.cluster}: {found.because}"
    else:
        text = f"Machine {found.machine} is not placed: {found.because}"
    return wrapped(text, hanging="  ")


def assumptions(rules: AssumedRules) -> list[str]:
    """Name the settings of the preview, because the controller's settings cannot be read from the cluster."""
    over = f" over {rules.spread_label}" if rules.strategy == "spread" else ""
    search = "strict" if rules.strict_search else "found"
    text = (
        f"Assumed: strategy {rules.strategy}{over}, default config {rules.default_config or 'none'}, search {search}, "
        f"VM name {' or '.join(rules.vm_names)}; the controller's settings may differ"
    )
    return wrapped(text, hanging="  ")
