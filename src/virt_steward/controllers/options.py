"""What the command line says to each controller."""

from __future__ import annotations

from dataclasses import dataclass, field

from virt_steward.controllers.advisor.options import AdvisorOptions
from virt_steward.controllers.approver.options import ApproverOptions
from virt_steward.controllers.autopilot.options import AutopilotOptions
from virt_steward.controllers.placement.options import PlacementOptions


@dataclass(frozen=True, slots=True)
class ControllerOptions:
    """One field per controller that has options."""

    advisor: AdvisorOptions = field(default_factory=AdvisorOptions)
    autopilot: AutopilotOptions = field(default_factory=AutopilotOptions)
    approver: ApproverOptions = field(default_factory=ApproverOptions)
    placement: PlacementOptions = field(default_factory=PlacementOptions)
