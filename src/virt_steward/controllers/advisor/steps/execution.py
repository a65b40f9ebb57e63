"""Steps of an execution: items are written one by one, in a maintenance window, and waited for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import msgspec

from virt_steward.apis.meta import FreezeOverride
from virt_steward.apis.virtplatformconfig import PlanApproval
from virt_steward.controllers.advisor.conditions import FREEZE, GATES, WINDOW, Fact
from virt_steward.controllers.advisor.phases import EXECUTING
from virt_steward.controllers.advisor.steps.base import (
    PhaseReason,
    StatusStep,
    after_rollback,
    history_with,
    moved,
    replaced,
)
from virt_steward.controllers.advisor.steps.review import progress, upgrade_applied
from virt_steward.plans.fields import governing, without
from virt_steward.plans.fingerprint import record_name
from virt_steward.runtime.outcomes import Done, RequeueAfter

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime

    from virt_steward.apis.virtplatformconfig import Phase, PlanItem, VirtPlatformConfigStatus
    from virt_steward.controllers.advisor.observation import AdvisorObservation
    from virt_steward.controllers.advisor.steps.base import Changes
    from virt_steward.holds.gates import NotEvaluated
    from virt_steward.runtime.outcomes import Outcome


@dataclass(frozen=True, slots=True)
class ApplyItem:
    """Write one object. What comes of it decides the next step."""

    item: PlanItem

    def summary(self, observation: AdvisorObservation) -> str:
        return f"{self.item.name} is applied now"

    def is_success(self) -> bool:
        return True


@dataclass(frozen=True, slots=True)
class _HeldStep(StatusStep):
    """Nothing but the time, the state of the cluster or a person keeps the next item from starting."""

    reason: str
    message: str
    until: datetime | None
    to = "InProgress"
    allowed_in = EXECUTING
    condition: ClassVar[str]

    def phase_reason(self, status: VirtPlatformConfigStatus) -> PhaseReason:
        return PhaseReason(self.reason, self.message)

    def facts(self, observation: AdvisorObservation, status: VirtPlatformConfigStatus) -> Iterable[Fact]:
        return (Fact(self.condition, True, self.reason, self.message),)

    def requeue(self, observation: AdvisorObservation, now: datetime) -> Outcome:
        """Look again when it ends, or when a freeze begins: that counts before a window and gates."""
        times = [time for time in (self.until, observation.freeze.until) if time]
        return _at(min(times, default=None), now, self.message)


class AwaitFreeze(_HeldStep):
    """The next item starts after the freeze."""

    __slots__ = ()
    condition = FREEZE


class AwaitWindow(_HeldStep):
    """The next item starts when the maintenance window opens."""

    __slots__ = ()
    condition = WINDOW


class AwaitGates(_HeldStep):
    """The next item starts when all gates are open."""

    __slots__ = ()
    condition = GATES


@dataclass(frozen=True, slots=True)
class EvaluateGates:
    """Ask the gates. What they answer decides the next step."""

    gates: NotEvaluated

    def summary(self, observation: AdvisorObservation) -> str:
        return self.gates.message

    def is_success(self) -> bool:
        return False


@dataclass(frozen=True, slots=True)
class RecordOverride(StatusStep):
    """Record who let the plan go on in spite of a freeze, before it goes on."""

    by: str
    comment: str
    to = "InProgress"
    allowed_in = EXECUTING

    def phase_reason(self, status: VirtPlatformConfigStatus) -> PhaseReason:
        return PhaseReason("FreezeOverridden", f"{self.by} lets the plan go on in spite of a freeze: {self.comment}")

    def changes(self, observation: AdvisorObservation, status: VirtPlatformConfigStatus, now: datetime) -> Changes:
        approval = status.approval or PlanApproval(status.plan_hash, now)
        override = FreezeOverride(self.by, now, self.comment)
        return {"approval": msgspec.structs.replace(approval, override_freeze=override)}

    def is_success(self) -> bool:
        return True


class _ItemStep(StatusStep):
    """A step of one item, after which the plan goes on."""

    __slots__ = ()

    item: PlanItem
    message: str
    to: ClassVar[Phase] = "InProgress"
    allowed_in = EXECUTING

    def phase_reason(self, status: VirtPlatformConfigStatus) -> PhaseReason:
        return PhaseReason("Executing", f"{progress(status.items)}; last change: {self.item.name}")

    def summary(self, observation: AdvisorObservation) -> str:
        return f"{self.item.name}: {self.message}"


@dataclass(frozen=True, slots=True)
class AwaitItem(_ItemStep):
    """The item was written, and is not ready yet."""

    item: PlanItem
    message: str
    deadline: datetime | None

    def changes(self, observation: AdvisorObservation, status: VirtPlatformConfigStatus, now: datetime) -> Changes:
        return _written(observation, status, self.item, moved(self.item, "InProgress", self.message, now))

    def requeue(self, observation: AdvisorObservation, now: datetime) -> Outcome:
        return _at(self.deadline, now, "an item may time out")


@dataclass(frozen=True, slots=True)
class CompleteItem(_ItemStep):
    """The item was written, and is ready."""

    item: PlanItem
    message: str

    def changes(self, observation: AdvisorObservation, status: VirtPlatformConfigStatus, now: datetime) -> Changes:
        return _written(observation, status, self.item, moved(self.item, "Completed", self.message, now))

    def is_success(self) -> bool:
        return True


@dataclass(frozen=True, slots=True)
class FailItem(_ItemStep):
    """The item failed, and the plan goes on without it."""

    item: PlanItem
    message: str

    def changes(self, observation: AdvisorObservation, status: VirtPlatformConfigStatus, now: datetime) -> Changes:
        return {"items": replaced(status.items, moved(self.item, "Failed", self.message, now))}


@dataclass(frozen=True, slots=True)
class Abort(_ItemStep):
    """The item failed, and the plan ends with it."""

    item: PlanItem
    message: str
    to = "Failed"
    ends_execution = True

    def phase_reason(self, status: VirtPlatformConfigStatus) -> PhaseReason:
        return PhaseReason("ItemFailed", f"{self.item.name} failed, no later item was started: {self.message}")

    def changes(self, observation: AdvisorObservation, status: VirtPlatformConfigStatus, now: datetime) -> Changes:
        items = replaced(status.items, moved(self.item, "Failed", self.message, now))
        return {"items": items, "history": history_with(status, "Failed", now)}


@dataclass(frozen=True, slots=True)
class Finish(StatusStep):
    """No item is left."""

    failed: tuple[str, ...] = ()
    allowed_in = EXECUTING
    ends_execution = True

    def next_phase(self, before: Phase | None) -> Phase:
        return "CompletedWithErrors" if self.failed else "Completed"

    def phase_reason(self, status: VirtPlatformConfigStatus) -> PhaseReason:
        if self.failed:
            return PhaseReason("CompletedWithErrors", f"All items were tried; failed: {', '.join(self.failed)}")
        if status.plan_action == "Rollback":
            return PhaseReason("RolledBack", "All changes of this profile are rolled back")
        return PhaseReason("Applied", "All items are applied and ready")

    def changes(self, observation: AdvisorObservation, status: VirtPlatformConfigStatus, now: datetime) -> Changes:
        history = history_with(status, "CompletedWithErrors" if self.failed else "Completed", now)
        return {"applied_inputs": status.inputs, "history": history} | after_rollback(status)

    def facts(self, observation: AdvisorObservation, status: VirtPlatformConfigStatus) -> Iterable[Fact]:
        return upgrade_applied(observation, status)

    def is_success(self) -> bool:
        return not self.failed


def failed_item(observation: AdvisorObservation, item: PlanItem, message: str) -> FailItem | Abort:
    """What the failure of an item leads to, by spec.failurePolicy."""
    is_continued = observation.config.spec.failure_policy == "Continue"
    return FailItem(item, message) if is_continued else Abort(item, message)


def _written(
    observation: AdvisorObservation, status: VirtPlatformConfigStatus, item: PlanItem, after: PlanItem
) -> Changes:
    """An item was written: its fields are governed now, and a rollback restores what the record of this plan says.

    One that was not Pending was written by an earlier plan, and recorded then.
    """
    changed: Changes = {"items": replaced(status.items, after)}
    if item.state != "Pending":
        return changed
    if status.plan_action == "Rollback":
        return changed | {"governed": without(status.governed, item)}
    record = record_name(observation.config.metadata.name, status.plan_hash)
    return changed | {"governed": governing(status.governed, item), "pre_image": record}


def _at(time: datetime | None, now: datetime, reason: str) -> Outcome:
    return RequeueAfter(max((time - now).total_seconds(), 0.0), reason) if time else Done()
