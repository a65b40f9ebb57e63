"""Steps after a plan was executed: drift, its end, enforcement, and what another version would plan."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import msgspec

from virt_steward.controllers.advisor.adoption import has_offer
from virt_steward.controllers.advisor.conditions import UPGRADE, Fact
from virt_steward.controllers.advisor.phases import PHASES, SETTLED
from virt_steward.controllers.advisor.steps.base import PhaseReason, StatusStep, moved, replaced
from virt_steward.runtime.outcomes import Done, RequeueAfter
from virt_steward.runtime.throttle import Rate

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from datetime import datetime

    from virt_steward.apis.drift import DriftEntry
    from virt_steward.apis.virtplatformconfig import Phase, PlanItem, VirtPlatformConfigStatus
    from virt_steward.controllers.advisor.observation import AdvisorObservation
    from virt_steward.controllers.advisor.steps.base import Changes
    from virt_steward.runtime.outcomes import Outcome

ENFORCEMENTS = Rate(capacity=10, per_second=1 / 6)
"""Per profile: bypass mode must not become an edit war at full speed."""
DRIFTED = "Drifted: changed by others since it was applied"
REPAIRED = "As planned again"


@dataclass(frozen=True, slots=True)
class MarkDrifted(StatusStep):
    """Targets are no longer as planned."""

    items: tuple[PlanItem, ...]
    details: tuple[str, ...] = ()
    """Which object and field, what it is and what was planned; empty if that is not known."""
    to = "Drifted"
    allowed_in = SETTLED

    def phase_reason(self, status: VirtPlatformConfigStatus) -> PhaseReason:
        named = (f"{item.target_ref.kind} {item.target_ref.name} has changed" for item in self.items)
        return PhaseReason("DriftDetected", f"Drifted: {'; '.join(self.details or named)}")

    def changes(self, observation: AdvisorObservation, status: VirtPlatformConfigStatus, now: datetime) -> Changes:
        names = {item.name for item in self.items}
        return {
            "items": tuple(
                _drifted(item, observation.drift.get(item.name, ())) if item.name in names else _repaired(item)
                for item in status.items
            )
        }

    def facts(self, observation: AdvisorObservation, status: VirtPlatformConfigStatus) -> Iterator[Fact]:
        yield from upgrade_offered(observation, status)

    def requeue(self, observation: AdvisorObservation, now: datetime) -> Outcome:
        if observation.config.spec.bypass_optimistic_lock:
            return RequeueAfter(1 / ENFORCEMENTS.per_second, "bypass mode was throttled")
        return Done()


@dataclass(frozen=True, slots=True)
class Recover(StatusStep):
    """What had drifted is as planned again."""

    with_errors: bool
    allowed_in = frozenset({"Drifted"})

    def next_phase(self, before: Phase | None) -> Phase:
        return "CompletedWithErrors" if self.with_errors else "Completed"

    def phase_reason(self, status: VirtPlatformConfigStatus) -> PhaseReason:
        return PhaseReason("DriftCorrected", "All targets are as planned again")

    def changes(self, observation: AdvisorObservation, status: VirtPlatformConfigStatus, now: datetime) -> Changes:
        return {"items": tuple(map(_repaired, status.items))}

    def is_success(self) -> bool:
        return True


@dataclass(frozen=True, slots=True)
class Enforce(StatusStep):
    """Bypass mode: apply again what has drifted."""

    items: tuple[PlanItem, ...]
    to = "InProgress"
    allowed_in = SETTLED

    def phase_reason(self, status: VirtPlatformConfigStatus) -> PhaseReason:
        named = ", ".join(item.name for item in self.items)
        return PhaseReason("Enforcing", f"Applied again, because bypassOptimisticLock is set: {named}")

    def changes(self, observation: AdvisorObservation, status: VirtPlatformConfigStatus, now: datetime) -> Changes:
        drifted = (msgspec.structs.replace(item, drift=()) for item in self.items)
        again = [moved(item, "Pending", "Drifted: applied again", now) for item in drifted]
        return {"items": replaced(status.items, *again)}


@dataclass(frozen=True, slots=True)
class OfferUpgrade(StatusStep):
    """Offer the plan of this version, which differs from what was executed."""

    items: tuple[str, ...]
    to = "CompletedWithUpgrade"
    allowed_in = SETTLED

    def phase_reason(self, status: VirtPlatformConfigStatus) -> PhaseReason:
        return PhaseReason("LogicChanged", f"This version plans it differently: {', '.join(self.items)}")

    def facts(self, observation: AdvisorObservation, status: VirtPlatformConfigStatus) -> Iterator[Fact]:
        yield from upgrade_offered(observation, status)


@dataclass(frozen=True, slots=True)
class OfferPlan(StatusStep):
    """Offer the plan of this version, while what another version has completed stays completed."""

    to = "CompletedWithUpgrade"
    allowed_in = SETTLED

    def phase_reason(self, status: VirtPlatformConfigStatus) -> PhaseReason:
        return PhaseReason("LogicChanged", plan_offered(status.items))

    def facts(self, observation: AdvisorObservation, status: VirtPlatformConfigStatus) -> Iterator[Fact]:
        yield from upgrade_offered(observation, status)


def plan_offered(items: Iterable[PlanItem]) -> str:
    names = ", ".join(item.name for item in items if item.state == "Pending")
    return (
        f"Completed by another version of the advisor; this version plans {names} differently. Nothing changes"
        " until somebody sets action to DryRun, reviews the plan and sets action to Apply"
    )


@dataclass(frozen=True, slots=True)
class KeepFailed(StatusStep):
    """The plan of another advisor has failed: nothing is executed."""

    by: str
    to = "Failed"
    allowed_in = frozenset({"Failed"})

    def phase_reason(self, status: VirtPlatformConfigStatus) -> PhaseReason:
        return PhaseReason(
            "OtherAdvisor", f"The plan of {self.by} failed; set action to DryRun for a plan of this version"
        )


@dataclass(frozen=True, slots=True)
class AdoptVersion(StatusStep):
    """What was executed is what this version plans."""

    reason: str
    items: tuple[PlanItem, ...]
    allowed_in = SETTLED

    def next_phase(self, before: Phase | None) -> Phase:
        return "CompletedWithErrors" if before == "CompletedWithErrors" else "Completed"

    def phase_reason(self, status: VirtPlatformConfigStatus) -> PhaseReason:
        version = status.operator_version
        return PhaseReason(self.reason, f"The cluster is configured as version {version} plans it")

    def changes(self, observation: AdvisorObservation, status: VirtPlatformConfigStatus, now: datetime) -> Changes:
        return {"items": self.items, "operator_version": observation.version, "applied_inputs": status.inputs}

    def facts(self, observation: AdvisorObservation, status: VirtPlatformConfigStatus) -> Iterable[Fact]:
        return (Fact(UPGRADE, False, self.reason),)

    def summary(self, observation: AdvisorObservation) -> str:
        return f"The cluster is configured as version {observation.version} plans it"

    def is_success(self) -> bool:
        return True


@dataclass(frozen=True, slots=True)
class Stay(StatusStep):
    """There is nothing to do: phase and conditions stay as they are."""

    message: str = field(default="", compare=False)
    """Why, in words."""
    allowed_in = frozenset(PHASES)

    def next_phase(self, before: Phase | None) -> Phase:
        return before or "Pending"

    def summary(self, observation: AdvisorObservation) -> str:
        return self.message


def upgrade_offered(observation: AdvisorObservation, status: VirtPlatformConfigStatus) -> Iterator[Fact]:
    """Drift comes before an upgrade in the phase, and does not hide it here."""
    if has_offer(status):
        yield Fact(UPGRADE, True, "LogicChanged", plan_offered(status.items))
    elif observation.logic and observation.logic.differs:
        items = ", ".join(observation.logic.differs)
        yield Fact(
            UPGRADE,
            True,
            "LogicChanged",
            f"{observation.version} plans {items} differently than {status.operator_version};"
            " set action to DryRun to review the changes",
        )


def _drifted(item: PlanItem, entries: tuple[DriftEntry, ...]) -> PlanItem:
    return msgspec.structs.replace(item, message=DRIFTED, drift=entries)


def _repaired(item: PlanItem) -> PlanItem:
    return msgspec.structs.replace(item, message=REPAIRED, drift=()) if item.message == DRIFTED else item
