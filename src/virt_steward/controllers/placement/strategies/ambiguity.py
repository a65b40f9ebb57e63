"""Nobody could tell: say so, and how to help."""

from __future__ import annotations

from typing import TYPE_CHECKING

from virt_steward.controllers.placement.seen import CONFIG_ANNOTATION
from virt_steward.controllers.placement.strategies.environment_default import VARIABLE
from virt_steward.controllers.placement.verdicts import Blocked, Reason

if TYPE_CHECKING:
    from virt_steward.controllers.placement.case import Case
    from virt_steward.controllers.placement.verdicts import Verdict


def ambiguity(case: Case) -> Verdict:
    return Blocked(
        Reason.AMBIGUOUS,
        f"{case.subject} and {len(case.candidates)} configs are available - cannot determine placement. "
        f"Please set annotation '{CONFIG_ANNOTATION}' or {VARIABLE} env var",
    )
