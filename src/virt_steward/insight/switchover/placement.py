"""The placement's part: vitistack's operator names VMs as their Machines, and goes on to create them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from virt_steward.insight.placements import find_vms
from virt_steward.insight.switchover.findings import Effect, SwitchFinding, unknown
from virt_steward.kube.errors import Forbidden, NotServed

if TYPE_CHECKING:
    from collections.abc import Iterator

    from virt_steward.controllers.placement.observation import Machine
    from virt_steward.controllers.placement.options import PlacementOptions, PlacementRules
    from virt_steward.insight.placements import VmWhereabouts
    from virt_steward.kube.client import Reader

THEIR_NAME = "{machine}"
SHOWN = 5


@dataclass(frozen=True, slots=True)
class PlacementSeen:
    machines: tuple[VmWhereabouts, ...] = ()
    problem: str = ""

    @property
    def traces(self) -> tuple[str, ...]:
        return (f"Machines: {len(self.machines)}",) if self.machines else ()


async def observe_placement(reader: Reader, options: PlacementOptions) -> PlacementSeen:
    """Search the clusters for VMs of our names, and of theirs where there is none of ours."""

    def names(machine: Machine) -> tuple[str, ...]:
        return (*options.rules.vms_of(machine), machine.metadata.name)

    try:
        return PlacementSeen(await find_vms(reader, options, names))
    except NotServed:
        return PlacementSeen()
    except Forbidden as error:
        return PlacementSeen(problem=str(error))


def placement_findings(seen: PlacementSeen, rules: PlacementRules) -> Iterator[SwitchFinding]:
    if seen.problem:
        yield unknown("Machines", seen.problem)
    for cluster, why in sorted({one for machine in seen.machines for one in machine.unknown.items()}):
        yield unknown(f"Cluster {cluster}", why)
    if THEIR_NAME not in rules.vm_names:
        renamed = [str(one.machine) for one in seen.machines if one.machine.name in one.found.values()]
        if renamed:
            yield _named_otherwise(renamed, rules)
    if seen.machines:
        message = "keep it running: it creates the VMs, virt-steward only chooses their clusters"
        yield SwitchFinding(Effect.NOTE, "vitistack's kubevirt-operator", message)


def _named_otherwise(machines: list[str], rules: PlacementRules) -> SwitchFinding:
    named = ", ".join(machines[:SHOWN]) + (f" and {len(machines) - SHOWN} more" if len(machines) > SHOWN else "")
    searched = ",".join(rules.vm_names)
    message = (
        f"the VMs of {named} have the names of their Machines. virt-steward searches for {searched} and would not "
        "find them, so a Machine without a cluster could be placed twice. Run virt-steward with "
        f"--vm-name '{searched},{THEIR_NAME}'"
    )
    return SwitchFinding(Effect.CHANGE, "Names of VMs", message)
