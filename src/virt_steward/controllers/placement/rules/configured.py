"""The installation or the Machine names a placement strategy."""

from __future__ import annotations

from typing import TYPE_CHECKING

from virt_steward.controllers.placement.candidates import quoted, without_kubevirt
from virt_steward.controllers.placement.strategies import NO_STRATEGY, STRATEGIES, STRATEGY_NAMES
from virt_steward.controllers.placement.verdicts import Abstain, Blocked, Chosen, PlacementReason

if TYPE_CHECKING:
    from virt_steward.controllers.placement.candidates import PlacementCase
    from virt_steward.controllers.placement.verdicts import Verdict


def configured(case: PlacementCase) -> Verdict:
    name = case.observation.strategy
    if name == NO_STRATEGY:
        return Abstain("No placement strategy is configured")
    strategy = STRATEGIES.get(name)
    if strategy is None:
        message = f"placement strategy {quoted(name)} does not exist: use one of {', '.join(STRATEGY_NAMES)}"
        return Blocked(PlacementReason.UNKNOWN_STRATEGY, message)
    reachable = (one for one in case.candidates if not one.unusable and not one.unreachable)
    suitable = tuple(one for one in reachable if one.schedulable and case.has_kubevirt(one))
    if not suitable:
        names = ", ".join(one.name for one in case.candidates)
        needed = "is schedulable and reachable, and has KubeVirt and valid credentials"
        return Blocked(PlacementReason.NO_ROOM, f"none of {names} {needed}{without_kubevirt(case)}")
    ranked = strategy.rank(suitable, case.rules)
    return Chosen(ranked[0].cluster, f"{name}: {ranked[0].words}", ranked)
