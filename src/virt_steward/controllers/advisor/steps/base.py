"""What every step is: a frozen record that carries its own phase, reason and message, and its changes of the status."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import msgspec

from virt_steward.apis.virtplatformconfig import HISTORY_KEPT, Execution
from virt_steward.controllers.advisor.conditions import default_facts
from virt_steward.controllers.advisor.phases import ANY
from virt_steward.runtime.outcomes import Done

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime

    from virt_steward.apis.virtplatformconfig import (
        ItemState,
        Outcome,
        Phase,
        PlanItem,
        VirtPlatformConfigStatus,
    )
    from virt_steward.controllers.advisor.conditions import Fact
    from virt_steward.controllers.advisor.observation import AdvisorObservation
    from virt_steward.runtime.outcomes import Outcome as ReconcileOutcome

Changes = dict[str, Any]
"""Fields of the status, by name."""

LONGEST_ITEM_MESSAGE = 2048
SOON = 1.0
"""Seconds until the next look at something that is about to change."""


@dataclass(frozen=True, slots=True)
class PhaseReason:
    """Reason and message of the condition that is named after the phase."""

    reason: str
    message: str


class StatusStep:
    """A step that changes nothing but the status.

    A new step is one class: the phase that it leads to (`to`), the phases in which it may be taken (`allowed_in`), its
    reason and message (`phase_reason`), and if need be its further changes (`changes`, `facts`) and when to look again
    (`requeue`). A rule in `decide.py`, or the outcome of acting, returns it. `RedraftLater` is a small example.
    """

    __slots__ = ()

    to: ClassVar[Phase]
    """The phase that it leads to; a step for which that depends on more overrides `next_phase`."""
    allowed_in: ClassVar[frozenset[Phase | None]] = ANY
    """The phases in which it may be taken; in any other it is an IllegalTransition."""
    ends_execution: ClassVar[bool] = False
    """Whether it records how an execution ended; every other step that leaves InProgress interrupts the execution."""

    def next_phase(self, before: Phase | None) -> Phase:
        return self.to

    def phase_reason(self, status: VirtPlatformConfigStatus) -> PhaseReason:
        """Reason and message of the phase, by the status with the changes of this step."""
        raise NotImplementedError

    def changes(self, observation: AdvisorObservation, status: VirtPlatformConfigStatus, now: datetime) -> Changes:
        """Fields of the status that change, besides phase and conditions."""
        return {}

    def facts(self, observation: AdvisorObservation, status: VirtPlatformConfigStatus) -> Iterable[Fact]:
        """Conditions on which this step has more to say than `default_facts`."""
        return ()

    def all_facts(self, observation: AdvisorObservation, status: VirtPlatformConfigStatus) -> Iterable[Fact]:
        return (*default_facts(observation, status), *self.facts(observation, status))

    def summary(self, observation: AdvisorObservation) -> str:
        """What it means, in a line of an explanation."""
        return self.phase_reason(observation.config.status).message

    def is_success(self) -> bool:
        """Whether the check that returned this step reads as passed."""
        return False

    def requeue(self, observation: AdvisorObservation, now: datetime) -> ReconcileOutcome:
        """When to look again though nothing has happened."""
        return Done()


def moved(item: PlanItem, state: ItemState, message: str, now: datetime) -> PlanItem:
    """The item in a state; its time moves only when the state does."""
    since = item.last_transition_time if item.state == state and item.last_transition_time else now
    return msgspec.structs.replace(
        item, state=state, message=message[:LONGEST_ITEM_MESSAGE], last_transition_time=since
    )


def replaced(items: Iterable[PlanItem], *changed: PlanItem) -> tuple[PlanItem, ...]:
    by_name = {item.name: item for item in changed}
    return tuple(by_name.get(item.name, item) for item in items)


def history_with(status: VirtPlatformConfigStatus, outcome: Outcome, now: datetime) -> tuple[Execution, ...]:
    """The history with the end of the present plan; the same end again, as in bypass mode, replaces the last entry."""
    approval = status.approval
    ended = Execution(
        plan_hash=status.plan_hash,
        at=now,
        outcome=outcome,
        by=approval.by if approval else "",
        comment=approval.comment if approval else "",
        approvers=approval.approvers if approval else (),
        version=status.operator_version,
        override_freeze=approval.override_freeze if approval else None,
    )
    is_repeated = any(msgspec.structs.replace(ended, at=one.at) == one for one in status.history[:1])
    earlier = status.history[1:] if is_repeated else status.history
    return (ended, *earlier)[:HISTORY_KEPT]


def after_rollback(status: VirtPlatformConfigStatus) -> Changes:
    """What the end of a rollback changes; nothing for other plans.

    Objects that were already gone are no longer governed either. Where an item failed, the record of what was there
    before is kept, so that the rollback can be tried again.
    """
    if status.plan_action != "Rollback":
        return {}
    failed = {item.target_ref for item in status.items if item.state == "Failed"}
    ended = {item.target_ref for item in status.items} - failed
    governed = tuple(one for one in status.governed if one.target_ref not in ended)
    if failed:
        return {"governed": governed}
    return {"governed": governed, "pre_image": "", "applied_inputs": ()}
