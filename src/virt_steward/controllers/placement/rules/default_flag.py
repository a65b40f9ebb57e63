"""A KubevirtConfig says that it is the default."""

from __future__ import annotations

from typing import TYPE_CHECKING

from virt_steward.controllers.placement.candidates import take
from virt_steward.controllers.placement.verdicts import Abstain, Blocked, PlacementReason

if TYPE_CHECKING:
    from virt_steward.controllers.placement.candidates import PlacementCase
    from virt_steward.controllers.placement.verdicts import Verdict


def default_flag(case: PlacementCase) -> Verdict:
    match [one for one in case.candidates if one.default]:
        case []:
            return Abstain("no KubevirtConfig is marked as default")
        case [cluster]:
            return take(cluster, "it is marked as default")
        case several:
            names = " and ".join(one.name for one in several)
            return Blocked(PlacementReason.TWO_DEFAULTS, f"{names} are all marked as default: leave the mark on one")
