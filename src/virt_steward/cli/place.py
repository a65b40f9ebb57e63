"""`virt-steward place`: what would be chosen for machines that wait, without choosing it."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Annotated

import typer

from virt_steward.cli import placement_flags, placements
from virt_steward.cli.arguments import ContextOption, KubeconfigOption, namespaced
from virt_steward.cli.output import Output, OutputOption, answer
from virt_steward.settings import BadSetting

if TYPE_CHECKING:
    from virt_steward.controllers.placement.options import PlacementRules
    from virt_steward.insight.placements import PlacementExplanation
    from virt_steward.objects.identity import Key


def place(
    *,
    machine: Annotated[str | None, typer.Argument(metavar="NAMESPACE/NAME", help="The Machine.")] = None,
    every: Annotated[bool, typer.Option("--all", help="All Machines that have no cluster yet.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Needed: a choice is the controller's to record.")] = False,
    default_kubevirt_config: placement_flags.DefaultConfigOption = "",
    placement_strategy: placement_flags.StrategyOption = "none",
    search: placement_flags.SearchOption = placement_flags.SearchMode.FOUND,
    vm_name: placement_flags.VmNameOption = "vm-{machine}",
    spread_label: placement_flags.SpreadLabelOption = "topology.kubernetes.io/region",
    kubeconfig: KubeconfigOption = None,
    context: ContextOption = None,
    output: OutputOption = Output.TEXT,
) -> None:
    """Say where Machines would be placed by these settings, and write nothing."""
    if not dry_run:
        raise BadSetting("place only foretells: add --dry-run; to choose yourself, annotate the Machine")
    if (machine is None) is not every:
        raise BadSetting("place takes one Machine, as NAMESPACE/NAME, or --all")
    rules = placement_flags.rules(default_kubevirt_config, placement_strategy, search, vm_name, spread_label)
    found = asyncio.run(_foretold(namespaced(machine) if machine else None, rules, kubeconfig, context))
    answer(output, "\n".join(placements.headlines(found)) or "every Machine has a cluster", found)


async def _foretold(
    machine: Key | None, rules: PlacementRules, kubeconfig: str | None, context: str | None
) -> tuple[PlacementExplanation, ...]:
    if machine is None:
        return await placements.asked_for_all(rules, kubeconfig, context)
    return (await placements.asked(machine, rules, kubeconfig, context),)
