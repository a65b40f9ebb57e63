"""The installation, or the machine itself, has named a way to choose among equals."""

from __future__ import annotations

from typing import TYPE_CHECKING

from virt_steward.controllers.placement.candidates import shown, unequipped
from virt_steward.controllers.placement.strategies import STRATEGIES
from virt_steward.controllers.placement.verdicts import Abstain, Blocked, Chosen, PlacementReason

if TYPE_CHECKING:
    from virt_steward.controllers.placement.candidates import PlacementCase
    from virt_steward.controllers.placement.verdicts import Verdict


def configured(case: PlacementCase) -> Verdict:
    name = case.seen.strategy
    if name == "none":
        return Abstain("no placement strategy is configured")
    preference = STRATEGIES.get(name)
    if preference is None:
        known = ", ".join(("none", *STRATEGIES))
        return Blocked(
            PlacementReason.UNKNOWN_STRATEGY, f"there is no placement strategy {shown(name)}: use one of {known}"
        )
    reachable = (one for one in case.candidates if not one.unusable and not one.silent)
    open_ones = tuple(one for one in reachable if one.schedulable and case.is_equipped(one))
    if not open_ones:
        names = ", ".join(one.name for one in case.candidates)
        needed = "is schedulable and reachable, and has KubeVirt and usable credentials"
        return Blocked(PlacementReason.NO_ROOM, f"none of {names} {needed}{unequipped(case)}")
    ranked = preference(open_ones, case.rules)
    best = ranked[0]
    return Chosen(best.cluster, f"{name}: {best.words}", tuple((one.cluster, one.words) for one in ranked))
