"""A KubevirtConfig is marked as the default."""

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
            return Abstain("No KubevirtConfig has spec.default: true")
        case [cluster]:
            return take(cluster, "its KubevirtConfig has spec.default: true")
        case several:
            names = " and ".join(one.name for one in several)
            message = f"{names} all have spec.default: true; keep it on one of these KubevirtConfigs"
            return Blocked(PlacementReason.TWO_DEFAULTS, message)
