"""Steps after somebody else has changed a status, or our own write of it is missing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from virt_steward.controllers.advisor.phases import PHASES
from virt_steward.controllers.advisor.steps.base import PhaseReason, StatusStep, history_with

if TYPE_CHECKING:
    from datetime import datetime

    from virt_steward.apis.virtplatformconfig import Phase, VirtPlatformConfigStatus
    from virt_steward.controllers.advisor.observation import AdvisorObservation
    from virt_steward.controllers.advisor.steps.base import Changes


@dataclass(frozen=True, slots=True)
class RestoreStatus(StatusStep):
    """Write the status as it was recorded; then go on from there."""

    message: str
    allowed_in = frozenset(PHASES)

    def next_phase(self, before: Phase | None) -> Phase:
        return before or "Pending"

    def summary(self, observation: AdvisorObservation) -> str:
        return self.message


@dataclass(frozen=True, slots=True)
class FailTampered(StatusStep):
    """Somebody else has changed the status of a plan that was being executed, or would be next."""

    altered: str
    """Which fields."""
    to = "Failed"
    ends_execution = True

    def phase_reason(self, status: VirtPlatformConfigStatus) -> PhaseReason:
        return PhaseReason("PlanTampered", tampered(self.altered))

    def changes(self, observation: AdvisorObservation, status: VirtPlatformConfigStatus, now: datetime) -> Changes:
        executed = {"history": history_with(status, "Failed", now)} if status.phase == "InProgress" else {}
        return {"plan_action": observation.config.spec.action, **executed}


def tampered(altered: str) -> str:
    return (
        f"Somebody else changed the status ({altered}); it is restored, and nothing of the change was executed."
        " Check who may write virtplatformconfigs/status, then set action to DryRun for a new plan"
    )


def restored(altered: str) -> str:
    return (
        f"Somebody else changed the status ({altered}); it is restored, and nothing of the change is executed."
        " Check who may write virtplatformconfigs/status"
    )
