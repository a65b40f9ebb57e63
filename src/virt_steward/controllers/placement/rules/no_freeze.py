"""A freeze of the installation that names the placement: no Machine gets a cluster until it ends."""

from __future__ import annotations

from typing import TYPE_CHECKING

from virt_steward.controllers.placement.verdicts import Blocked, Permitted, PlacementReason
from virt_steward.holds.freezes import Frozen

if TYPE_CHECKING:
    from virt_steward.controllers.placement.candidates import PlacementCase
    from virt_steward.controllers.placement.verdicts import Verdict


def no_freeze(case: PlacementCase) -> Verdict:
    freeze = case.observation.freeze
    if isinstance(freeze, Frozen):
        return Blocked(PlacementReason.FROZEN, f"no cluster is chosen: {freeze.message}")
    return Permitted("No freeze holds the placement")
