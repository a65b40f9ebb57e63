"""What the status of another implementation of the advisor means here. Pure, and nothing is executed by any of it.

The Go advisor writes the same kind, and its work stands: what it completed is completed. Its status is recognised by
what it lacks (`is_of_another_advisor`) and translated into one of ours without a plan (`adopted_status`). Then a plan
of this version is drafted, and waits for somebody to ask for it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import msgspec

from virt_steward.apis.virtplatformconfig import GovernedTarget, PlanItem, VirtPlatformConfigStatus
from virt_steward.controllers.advisor.phases import SETTLED
from virt_steward.plans.drift import drift_lines, drift_of
from virt_steward.plans.fingerprint import fields_hash, plan_hash
from virt_steward.plans.intent import ref_to
from virt_steward.ssa.managers import ADVISOR

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from virt_steward.apis.virtplatformconfig import Execution
    from virt_steward.controllers.advisor.observation import AdvisorObservation, VirtPlatformConfig
    from virt_steward.objects.identity import Ref
    from virt_steward.plans.intent import Intent

    Targets = Mapping[Ref, dict[str, Any] | None]

_FIELDS_OF_BOTH = frozenset(
    {
        "phase",
        "impactSeverity",
        "observedGeneration",
        "sourceSnapshotHash",
        "operatorVersion",
        "appliedOptions",
        "items",
        "conditions",
    }
)
"""All that the Go advisor writes. A plan of ours also has a hash, an action, hashes of its targets and more."""
_STARTED = ("InProgress", "Completed")


@dataclass(frozen=True, slots=True)
class Adopted:
    """Another implementation of the advisor wrote the status, and we have no record of the config."""

    status: VirtPlatformConfigStatus
    """As it was read."""

    def __str__(self) -> str:
        return f"another version of the advisor ({self.status.operator_version or 'unknown'})"


def is_of_another_advisor(status: VirtPlatformConfigStatus) -> bool:
    """Whether a status has a phase, and nothing that only this advisor writes.

    Who may write the status can feign that. It is asked only if there is no record of the config, and what follows is
    less than otherwise: not even a plan that action Apply requests is executed.
    """
    fields = msgspec.to_builtins(status).keys()
    has_hashes = any(item.hash or item.planned_hash for item in status.items)
    return status.phase is not None and fields <= _FIELDS_OF_BOTH and not has_hashes


def adopted_status(
    config: VirtPlatformConfig, executions: int, history: tuple[Execution, ...]
) -> VirtPlatformConfigStatus:
    """A status of ours in the same phase, without a plan; all else that the other advisor wrote is gone.

    The history of plans that we executed before goes on. It is as if action and options had been there when the last
    plan was made, so they request no other one.
    """
    status, action = config.status, config.spec.action
    return VirtPlatformConfigStatus(
        phase=status.phase,
        observed_generation=status.observed_generation,
        executions=executions,
        history=history,
        plan_action=action if action != "Rollback" else None,
        plan_generation=config.metadata.generation,
        operator_version=status.operator_version,
        applied_options=config.options,
    )


def started_items(items: Iterable[PlanItem], intents: Iterable[Intent]) -> tuple[PlanItem, ...]:
    """What the other advisor has applied, under our names for it: waited for, never written."""
    started = {ref_to(item.target_ref): item for item in items if item.state in _STARTED}
    return tuple(
        PlanItem(
            name=intent.name,
            target_ref=intent.target,
            impact_severity=item.impact_severity,
            state=item.state,
            message="Applied by another version of the advisor",
            last_transition_time=item.last_transition_time,
        )
        for intent in intents
        if (item := started.get(intent.ref))
    )


def has_offer(status: VirtPlatformConfigStatus) -> bool:
    """Whether there is a plan that nobody has asked for, beside what another version has completed."""
    return status.phase in SETTLED and any(item.state == "Pending" for item in status.items)


def changed_since_adoption(status: VirtPlatformConfigStatus, targets: Targets) -> tuple[str, ...]:
    """Governed targets that are no longer as they were applied, in words."""
    return tuple(
        f"{one.target_ref.kind} {one.target_ref.name} has changed"
        for one in status.governed
        if _is_changed(one, targets)
    )


def with_adoption(
    observation: AdvisorObservation, drafted: tuple[PlanItem, ...], targets: Targets
) -> AdvisorObservation:
    """The observation with what the other advisor has applied, and with what has drifted of it.

    An approval that names the drafted plan was given to an equal plan, before the other advisor took over. So one more
    execution is counted, which makes it another plan.
    """
    if not isinstance(observation.integrity, Adopted):
        return observation
    config, status = observation.config, observation.config.status
    items = _expected(observation.integrity.status, targets)
    governed = tuple(_governed(item) for item in items)
    drifted = [item for item, one in zip(items, governed, strict=True) if _is_changed(one, targets)]
    is_used = config.approved_plan == plan_hash(config.metadata.name, drafted, executions=status.executions)
    adopted = msgspec.structs.replace(status, governed=governed, executions=status.executions + is_used)
    return replace(
        observation,
        config=msgspec.structs.replace(config, status=adopted),
        changed_since_adoption=tuple(
            line
            for item in drifted
            for line in drift_lines(item, drift_of(item, targets[ref_to(item.target_ref)], ADVISOR))
        ),
    )


def _expected(status: VirtPlatformConfigStatus, targets: Targets) -> list[PlanItem]:
    """What the other advisor has applied, each with all of its target as it should be.

    A target was fine if the other advisor said so. If it said Drifted, the fields of its plan should have their values;
    whatever else is in a managed field stays. A target in another API version cannot be compared.
    """
    applied = [item for item in status.items if item.state == "Completed" and ref_to(item.target_ref) in targets]
    expected = []
    for item in applied if status.phase in SETTLED else ():
        live = targets[ref_to(item.target_ref)]
        is_comparable = status.phase == "Drifted" and (live or item.desired_state).get("apiVersion") == (
            item.desired_state.get("apiVersion")
        )
        desired = _overlaid(live or {}, item.desired_state) if is_comparable else live or {}
        expected.append(msgspec.structs.replace(item, desired_state=desired))
    return expected


def _governed(item: PlanItem) -> GovernedTarget:
    return GovernedTarget(item.target_ref, item.managed_fields, fields_hash(item.desired_state, item.managed_fields))


def _is_changed(one: GovernedTarget, targets: Targets) -> bool:
    ref = ref_to(one.target_ref)
    return ref in targets and fields_hash(targets[ref], one.managed_fields) != one.hash


def _overlaid(live: Any, desired: Any) -> Any:
    if not isinstance(live, dict) or not isinstance(desired, dict):
        return desired
    return {**live, **{name: _overlaid(live.get(name), value) for name, value in desired.items()}}
