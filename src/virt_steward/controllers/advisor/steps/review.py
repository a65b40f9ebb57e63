"""Steps up to the start of a plan: what is missing, how drafting ended, and what a review waits for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from virt_steward.controllers.advisor.conditions import (
    ADOPTED,
    INPUT_DRIFT,
    PREREQUISITES,
    STALE,
    UPGRADE,
    Fact,
    active_fact,
)
from virt_steward.controllers.advisor.phases import EXECUTING, IN_REVIEW, STARTING
from virt_steward.controllers.advisor.steps.base import SOON, PhaseReason, StatusStep, after_rollback, history_with
from virt_steward.runtime.outcomes import RequeueAfter

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from datetime import datetime

    from virt_steward.apis.virtplatformconfig import PlanApproval, PlanItem, VirtPlatformConfigStatus
    from virt_steward.controllers.advisor.observation import AdvisorObservation
    from virt_steward.controllers.advisor.steps.base import Changes
    from virt_steward.runtime.outcomes import Outcome

ENFORCEMENT_AGAIN = 30.0
"""Seconds until the admission policy is looked for again: it is not watched."""
PREREQUISITES_AGAIN = 300.0
"""Seconds until prerequisites are checked again though nothing happened: events should make it needless."""


@dataclass(frozen=True, slots=True)
class Ignore(StatusStep):
    """Leave everything as it is."""

    to = "Ignored"

    def phase_reason(self, status: VirtPlatformConfigStatus) -> PhaseReason:
        return PhaseReason(
            "Ignored",
            "action is Ignore: nothing is planned, watched or changed; applied objects stay as they are. The impact is"
            " the usual one of the profile; action DryRun plans it for this cluster",
        )

    def changes(self, observation: AdvisorObservation, status: VirtPlatformConfigStatus, now: datetime) -> Changes:
        return {"applied_inputs": (), "plan_action": None}

    def all_facts(self, observation: AdvisorObservation, status: VirtPlatformConfigStatus) -> Iterable[Fact]:
        adopted = (Fact(ADOPTED, False, "Ignored"),) if observation.config.is_true(ADOPTED) else ()
        return (active_fact(status), *adopted)


@dataclass(frozen=True, slots=True)
class Settle(StatusStep):
    """Look again in a moment: not all inputs have been read."""

    message: str
    to = "Pending"
    allowed_in = STARTING

    def phase_reason(self, status: VirtPlatformConfigStatus) -> PhaseReason:
        return PhaseReason("NotReady", self.message)

    def all_facts(self, observation: AdvisorObservation, status: VirtPlatformConfigStatus) -> Iterable[Fact]:
        return ()

    def requeue(self, observation: AdvisorObservation, now: datetime) -> Outcome:
        return RequeueAfter(SOON, self.message)


@dataclass(frozen=True, slots=True)
class LackPrerequisites(StatusStep):
    """Something that the profile needs is not on the cluster."""

    missing: tuple[str, ...]
    to = "PrerequisiteFailed"

    def phase_reason(self, status: VirtPlatformConfigStatus) -> PhaseReason:
        return PhaseReason("PrerequisitesFailed", f"Prerequisites: {'; '.join(self.missing)}")

    def facts(self, observation: AdvisorObservation, status: VirtPlatformConfigStatus) -> Iterable[Fact]:
        return (Fact(PREREQUISITES, False, "MissingDependency", "\n".join(self.missing)),)

    def summary(self, observation: AdvisorObservation) -> str:
        return "; ".join(self.missing)

    def requeue(self, observation: AdvisorObservation, now: datetime) -> Outcome:
        return RequeueAfter(PREREQUISITES_AGAIN, "prerequisites are missing")


@dataclass(frozen=True, slots=True)
class Redraft:
    """Draft a new plan, which changes nothing on the cluster. What comes of it decides the next step."""

    reason: str

    def summary(self, observation: AdvisorObservation) -> str:
        return f"{self.reason}; a new plan is drafted"

    def is_success(self) -> bool:
        return False


@dataclass(frozen=True, slots=True)
class RedraftLater(StatusStep):
    """A target changed while the plan was drafted."""

    message: str
    to = "Drafting"

    def phase_reason(self, status: VirtPlatformConfigStatus) -> PhaseReason:
        return PhaseReason("TargetsMoving", self.message)

    def requeue(self, observation: AdvisorObservation, now: datetime) -> Outcome:
        return RequeueAfter(SOON, self.message)


@dataclass(frozen=True, slots=True)
class RejectPlan(StatusStep):
    """The API server refuses an item, so there is no plan."""

    item: str
    message: str
    to = "Failed"

    def phase_reason(self, status: VirtPlatformConfigStatus) -> PhaseReason:
        return PhaseReason("PlanRejected", f"{self.item} cannot be planned: {self.message}")


@dataclass(frozen=True, slots=True)
class NothingToDo(StatusStep):
    """The new plan changes nothing."""

    to = "Completed"

    def phase_reason(self, status: VirtPlatformConfigStatus) -> PhaseReason:
        if status.plan_action == "Rollback":
            return PhaseReason("RolledBack", "There is nothing to roll back")
        return PhaseReason("InDesiredState", "The cluster is already configured as this profile wants it")

    def changes(self, observation: AdvisorObservation, status: VirtPlatformConfigStatus, now: datetime) -> Changes:
        return {"applied_inputs": status.inputs, **after_rollback(status)}

    def facts(self, observation: AdvisorObservation, status: VirtPlatformConfigStatus) -> Iterator[Fact]:
        yield Fact(STALE, False, "PlanCurrent")
        if observation.config.is_true(INPUT_DRIFT):
            yield Fact(INPUT_DRIFT, False, "DriftResolved")
        yield from upgrade_applied(observation, status)


@dataclass(frozen=True, slots=True)
class AwaitReview(StatusStep):
    """A person must review the plan."""

    reason: str
    message: str
    stale: str = ""
    """Which targets have changed since the plan was made; empty if none has."""
    to = "ReviewRequired"

    def phase_reason(self, status: VirtPlatformConfigStatus) -> PhaseReason:
        return PhaseReason(self.reason, self.message)

    def facts(self, observation: AdvisorObservation, status: VirtPlatformConfigStatus) -> Iterator[Fact]:
        yield Fact(STALE, True, "TargetsChanged", self.stale) if self.stale else Fact(STALE, False, "PlanCurrent")
        if changed := observation.changed_inputs:
            yield Fact(INPUT_DRIFT, True, "InputChanged", "; ".join(changed))
        elif observation.config.is_true(INPUT_DRIFT):
            yield Fact(INPUT_DRIFT, False, "DriftResolved")


@dataclass(frozen=True, slots=True)
class AwaitEnforcement(AwaitReview):
    """Enough people approved the plan, but the API server does not hold approvals to their names."""

    def requeue(self, observation: AdvisorObservation, now: datetime) -> Outcome:
        return RequeueAfter(ENFORCEMENT_AGAIN, "the admission policy is missing")


@dataclass(frozen=True, slots=True)
class Begin(StatusStep):
    """Execute the plan."""

    approval: PlanApproval
    to = "InProgress"

    def phase_reason(self, status: VirtPlatformConfigStatus) -> PhaseReason:
        return PhaseReason("Executing", f"Approved by {self.approval.by or 'action Apply'}; {progress(status.items)}")

    def changes(self, observation: AdvisorObservation, status: VirtPlatformConfigStatus, now: datetime) -> Changes:
        return {
            "approval": self.approval,
            "plan_action": observation.config.spec.action,
            "executions": status.executions + 1,
        }

    def facts(self, observation: AdvisorObservation, status: VirtPlatformConfigStatus) -> Iterator[Fact]:
        yield Fact(STALE, False, "PlanCurrent")
        if observation.config.is_true(INPUT_DRIFT):
            yield Fact(INPUT_DRIFT, False, "Acknowledged")
        if observation.config.is_true(ADOPTED):
            yield Fact(ADOPTED, False, "PlanStarted")

    def is_success(self) -> bool:
        return True


@dataclass(frozen=True, slots=True)
class FailStale(StatusStep):
    """A target has changed since the plan was made: nothing more is written."""

    message: str
    to = "Failed"
    allowed_in = IN_REVIEW | EXECUTING
    ends_execution = True

    def phase_reason(self, status: VirtPlatformConfigStatus) -> PhaseReason:
        return PhaseReason("PlanStale", self.message)

    def changes(self, observation: AdvisorObservation, status: VirtPlatformConfigStatus, now: datetime) -> Changes:
        executed = {"history": history_with(status, "Failed", now)} if status.phase == "InProgress" else {}
        return {"plan_action": observation.config.spec.action, **executed}

    def facts(self, observation: AdvisorObservation, status: VirtPlatformConfigStatus) -> Iterable[Fact]:
        return (Fact(STALE, True, "TargetsChanged", self.message),)


def progress(items: Iterable[PlanItem]) -> str:
    """How many items are done, in words."""
    states = [item.state for item in items]
    return f"{sum(state in ('Completed', 'Failed') for state in states)} of {len(states)} items are done"


def upgrade_applied(observation: AdvisorObservation, status: VirtPlatformConfigStatus) -> Iterator[Fact]:
    """An upgrade that was offered is over once a plan of this version has ended."""
    if observation.config.is_true(UPGRADE) and status.operator_version == observation.version:
        yield Fact(UPGRADE, False, "Applied")
