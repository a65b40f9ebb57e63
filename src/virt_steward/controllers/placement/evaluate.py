"""Decides on a Machine, and asks the clusters for its VM where the rules need to know.

The search remembers what clusters answered (15 s by default), so that many Machines cost one list per cluster. A
remembered answer may be out of date, and so it may only confirm what is known already. Example: `db` has no VM, and its
search remembers "no vm-web in east or west". A moment later somebody creates vm-web in west, and then the Machine
`web`. From memory alone, `web` would be reported as ambiguous although its VM runs in west. So `evaluate` decides
twice: first by what is remembered; and where that would choose a cluster, or report an error that is not reported yet,
again by answers to questions that began after the Machine was last changed. Only a Machine whose reported error is
still the same keeps waiting without a new question.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from virt_steward.controllers.placement.decide import decide
from virt_steward.controllers.placement.observe import observe
from virt_steward.controllers.placement.rules import STRATEGY_RULE
from virt_steward.controllers.placement.strategies import STRATEGIES
from virt_steward.controllers.placement.verdicts import Ask

if TYPE_CHECKING:
    from virt_steward.controllers.placement.decide import PlacementDecision
    from virt_steward.controllers.placement.observation import Finding, PlacementObservation
    from virt_steward.controllers.placement.observe import PlacementClusterView
    from virt_steward.controllers.placement.search import Search
    from virt_steward.controllers.placement.verdicts import Blocked
    from virt_steward.objects.identity import Key

ANY_TIME = -math.inf


@dataclass(frozen=True, slots=True)
class Evaluation:
    """What was observed, and what was decided on it."""

    observation: PlacementObservation
    decision: PlacementDecision


async def evaluate(
    view: PlacementClusterView, search: Search, machine: Key, since: float, reported: Blocked | None = None
) -> Evaluation | None:
    """Decide by answers that began at `since` or later, unless the Machine is still blocked by what is `reported`.

    None: there is no such Machine.
    """
    evaluation = await _evaluate(view, search, machine, ANY_TIME)
    if evaluation is None or not evaluation.observation.findings or evaluation.decision.outcome == reported:
        return evaluation
    if _needs_capacity(evaluation):
        await view.capacities.refresh()
    return await _evaluate(view, search, machine, since)


def _needs_capacity(evaluation: Evaluation) -> bool:
    strategy = STRATEGIES.get(evaluation.observation.strategy)
    return evaluation.decision.rule is STRATEGY_RULE and strategy is not None and strategy.needs_capacity


async def _evaluate(view: PlacementClusterView, search: Search, machine: Key, since: float) -> Evaluation | None:
    findings: dict[str, Finding] = {}
    while observation := observe(view, machine, findings):
        decision = decide(observation)
        if not isinstance(decision.outcome, Ask):
            return Evaluation(observation, decision)
        vms = observation.rules.vms_of(observation.machine)
        findings |= await search.find(machine.namespace, vms, decision.outcome.clusters, since=since)
    return None
