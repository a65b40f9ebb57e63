"""The status after a step. Pure: the same step on the same status gives the same, so that nothing is written twice."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from virt_steward.controllers.advisor.conditions import phase_facts, updated_conditions
from virt_steward.controllers.advisor.phases import transition
from virt_steward.controllers.advisor.steps import RestoreStatus, Stay
from virt_steward.controllers.advisor.steps.base import history_with
from virt_steward.plans.fingerprint import snapshot_hash
from virt_steward.plans.intent import worst

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from virt_steward.apis.virtplatformconfig import PlanItem, VirtPlatformConfigStatus
    from virt_steward.controllers.advisor.observation import AdvisorObservation
    from virt_steward.controllers.advisor.steps import StatusStep


def with_plan(observation: AdvisorObservation, items: Sequence[PlanItem], plan_hash: str) -> VirtPlatformConfigStatus:
    """The status with a new plan in the place of the old one; phase and conditions follow by the next step."""
    config = observation.config
    approval = config.status.approval
    return msgspec.structs.replace(
        config.status,
        items=tuple(items),
        plan_hash=plan_hash,
        plan_action=config.spec.action,
        plan_generation=config.metadata.generation,
        source_snapshot_hash=snapshot_hash(items),
        operator_version=observation.version,
        applied_options=config.options,
        inputs=observation.inputs,
        approval=approval if approval and approval.plan_hash == plan_hash else None,
    )


def next_status(
    observation: AdvisorObservation, status: VirtPlatformConfigStatus, step: StatusStep, now: datetime
) -> VirtPlatformConfigStatus:
    """The status after a step. Raises IllegalTransition if the step is not allowed in its phase.

    `status` is the one that was observed, or the same with a new plan (`with_plan`).
    """
    if isinstance(step, RestoreStatus):
        return status
    generation = observation.config.metadata.generation
    if isinstance(step, Stay):
        conditions = updated_conditions(observation, status, (), now)
        return msgspec.structs.replace(status, observed_generation=generation, conditions=conditions)
    phase = transition(status.phase, step)
    changes = step.changes(observation, status, now)
    changed = msgspec.structs.replace(status, phase=phase, observed_generation=generation, **changes)
    if not step.ends_execution and _is_interrupted(observation.config.status, changed):
        changed = msgspec.structs.replace(changed, history=history_with(observation.config.status, "Interrupted", now))
    impact = observation.impact if phase == "Ignored" else worst(item.impact_severity for item in changed.items)
    present = step.phase_reason(changed)
    facts = (*phase_facts(phase, present.reason, present.message), *step.all_facts(observation, changed))
    return msgspec.structs.replace(
        changed, impact_severity=impact, conditions=updated_conditions(observation, changed, facts, now)
    )


def _is_interrupted(before: VirtPlatformConfigStatus, after: VirtPlatformConfigStatus) -> bool:
    """Whether the plan that was being executed no longer is."""
    is_executed = before.phase == "InProgress" and bool(before.plan_hash)  # what another advisor executed has none
    return is_executed and (after.phase, after.plan_hash) != ("InProgress", before.plan_hash)
