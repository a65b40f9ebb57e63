"""There is one cluster, or none."""

from __future__ import annotations

from typing import TYPE_CHECKING

from virt_steward.controllers.placement.candidates import take
from virt_steward.controllers.placement.verdicts import Abstain, Blocked, PlacementReason

if TYPE_CHECKING:
    from virt_steward.controllers.placement.candidates import PlacementCase
    from virt_steward.controllers.placement.verdicts import Verdict


def the_only_one(case: PlacementCase) -> Verdict:
    match case.candidates:
        case ():
            return Blocked(PlacementReason.NO_CONFIGS, f"{case.subject} and no KubevirtConfigs are available")
        case (cluster,):
            return take(cluster, "it is the only cluster")
        case several:
            return Abstain(f"{len(several)} clusters are available")
