"""Decides on a machine, and asks the clusters for its VM where that is what it takes."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from virt_steward.controllers.placement.decide import decide
from virt_steward.controllers.placement.observe import observe
from virt_steward.controllers.placement.rules.configured import configured
from virt_steward.controllers.placement.strategies import BY_CAPACITY
from virt_steward.controllers.placement.verdicts import Ask, Chosen

if TYPE_CHECKING:
    from virt_steward.controllers.placement.decide import PlacementDecision
    from virt_steward.controllers.placement.observation import Finding, PlacementObservation
    from virt_steward.controllers.placement.observe import PlacementClusterView
    from virt_steward.controllers.placement.search import Search
    from virt_steward.objects.identity import Key

WHENEVER = -math.inf


@dataclass(frozen=True, slots=True)
class Evaluation:
    """What was seen, and what came of it."""

    seen: PlacementObservation
    decision: PlacementDecision


async def evaluate(view: PlacementClusterView, search: Search, machine: Key, since: float) -> Evaluation | None:
    """Where nothing stands in the way of a choice, clusters are asked anew unless they were asked after `since`.

    What they said before may delay a choice, but never decide one. None: there is no such machine.
    """
    judgement = await _judged(view, search, machine, WHENEVER)
    if not judgement or not judgement.seen.findings or not isinstance(judgement.decision.outcome, Chosen):
        return judgement
    if judgement.decision.strategy == configured.__name__ and judgement.seen.strategy == BY_CAPACITY:
        await view.rooms.refresh()
    return await _judged(view, search, machine, since)


async def _judged(view: PlacementClusterView, search: Search, machine: Key, since: float) -> Evaluation | None:
    findings: dict[str, Finding] = {}
    while seen := observe(view, machine, findings):
        decision = decide(seen)
        if not isinstance(decision.outcome, Ask):
            return Evaluation(seen, decision)
        vm = seen.rules.vm_of(seen.machine)
        findings |= await search.find(machine.namespace, vm, decision.outcome.clusters, since=since)
    return None
