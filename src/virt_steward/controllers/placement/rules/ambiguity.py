"""No other rule has decided: an error that says how to choose."""

from __future__ import annotations

from typing import TYPE_CHECKING

from virt_steward.controllers.placement.observation import CONFIG_ANNOTATION
from virt_steward.controllers.placement.rules.environment_default import VARIABLE
from virt_steward.controllers.placement.verdicts import Blocked, PlacementReason

if TYPE_CHECKING:
    from virt_steward.controllers.placement.candidates import PlacementCase
    from virt_steward.controllers.placement.verdicts import Verdict


def ambiguity(case: PlacementCase) -> Verdict:
    return Blocked(
        PlacementReason.AMBIGUOUS,
        f"{case.subject} and {len(case.candidates)} configs are available - cannot determine placement. "
        f"Please set annotation '{CONFIG_ANNOTATION}' or {VARIABLE} env var",
    )
