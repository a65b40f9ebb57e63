"""The conditions of a config: exactly one phase is True, and beside it the facts that hold whatever the phase."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from virt_steward.apis.meta import Condition
from virt_steward.controllers.advisor.adoption import Adopted
from virt_steward.controllers.advisor.phases import PHASES

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from datetime import datetime

    from virt_steward.apis.virtplatformconfig import VirtPlatformConfigStatus
    from virt_steward.controllers.advisor.observation import AdvisorObservation

INPUT_DRIFT = "InputDependencyDrift"
"""True: what the plan was made from has changed since it was executed, so there is a new plan to review."""
UPGRADE = "UpgradeAvailable"
"""True: this version plans it differently than the version that applied it."""
PREREQUISITES = "PrerequisitesMet"
"""False: a kind or an object that the profile needs is missing; the message names it."""
STALE = "PlanStale"
"""True: a target has changed since the plan was made."""
ACTIVE = "ProfileActive"
"""True: the cluster has what the profile wants."""
WINDOW = "WaitingForWindow"
"""True: the next item starts when spec.window opens; the message says when."""
FREEZE = "Frozen"
"""True: a freeze keeps the next item from starting."""
GATES = "WaitingForGates"
"""True: the next item starts when the gates are open; the message names those that are closed."""
ADOPTED = "Adopted"
"""True: another advisor has completed it, and nothing of it was changed."""
NOTIFYING = "Notifying"
"""False: spec.notify names an endpoint that is not configured."""

LONGEST_MESSAGE = 32768
HOLDS = {FREEZE: "NotFrozen", WINDOW: "NotWaiting", GATES: "NotWaiting"}
"""Conditions of what keeps the next item from starting, and their reason when it does not."""
_OURS = frozenset({*PHASES, INPUT_DRIFT, UPGRADE, PREREQUISITES, STALE, ACTIVE, WINDOW, FREEZE, GATES, ADOPTED})
"""Conditions that are kept until a step has more to say about them; those of others are removed."""
_RANKS: dict[str, int] = {phase: rank for rank, phase in enumerate(PHASES)}
_NOT = {"Drifted": "NoDrift"}
"""Reasons of a phase that is not the present one, where they are not simply Not and its name."""


@dataclass(frozen=True, slots=True)
class Fact:
    """A condition before it has times."""

    type: str
    holds: bool
    reason: str
    message: str = ""


def updated_conditions(
    observation: AdvisorObservation, status: VirtPlatformConfigStatus, facts: Iterable[Fact], now: datetime
) -> tuple[Condition, ...]:
    """The conditions of the status with these facts; of several facts of one type the last one counts.

    Whether notifications can be sent is always judged again: which endpoints exist depends on the process.
    """
    latest = {fact.type: fact for fact in (*facts, *_notifying(observation))}
    generation = observation.config.metadata.generation
    kept = {one.type: one for one in status.conditions if one.type in _OURS}
    fresh = {fact.type: _condition(fact, generation, now).carrying_on(status.conditions) for fact in latest.values()}
    return tuple(sorted({**kept, **fresh}.values(), key=_order))


def phase_facts(phase: str, reason: str, message: str) -> Iterator[Fact]:
    """The present phase as True, and all others as False."""
    for name in PHASES:
        yield Fact(name, True, reason, message) if name == phase else Fact(name, False, _NOT.get(name, f"Not{name}"))


def is_holding(condition: Condition) -> bool:
    """Whether the condition says what keeps the next item from starting."""
    return condition.type in HOLDS and condition.status == "True"


def active_fact(status: VirtPlatformConfigStatus) -> Fact:
    """Whether the cluster has what the profile wants."""
    match status.phase:
        case "Completed" if status.plan_action == "Rollback":
            return Fact(ACTIVE, False, "RolledBack", "The changes of this profile are rolled back")
        case "Completed" | "CompletedWithUpgrade":
            return Fact(ACTIVE, True, "InSync", "The cluster is configured as this profile wants it")
        case "Drifted":
            return Fact(ACTIVE, False, "ConfigurationDrifted", "Fields that this profile set were changed by others")
    return Fact(ACTIVE, False, str(status.phase))


def default_facts(observation: AdvisorObservation, status: VirtPlatformConfigStatus) -> Iterator[Fact]:
    """What holds after a step that has nothing else to say about it.

    Input drift, upgrades and staleness keep what an earlier step reported; they only start with a default.
    """
    yield active_fact(status)
    yield Fact(PREREQUISITES, True, "AllPresent")
    known = {one.type for one in observation.config.status.conditions}
    starts = (
        Fact(INPUT_DRIFT, False, "NoChange"),
        Fact(UPGRADE, False, "NoLogicChange"),
        Fact(STALE, False, "PlanCurrent"),
    )
    yield from (fact for fact in starts if fact.type not in known)
    yield from (Fact(hold, False, reason) for hold, reason in HOLDS.items() if hold in known)
    if isinstance(observation.integrity, Adopted):
        yield Fact(ADOPTED, True, "OtherAdvisor", adopted(observation.integrity))


def adopted(found: Adopted) -> str:
    return (
        f"Adopted from {found} in phase {found.status.phase}. What was applied stays as it is,"
        " and nothing changes until somebody requests it"
    )


def _notifying(observation: AdvisorObservation) -> Iterator[Fact]:
    """Only where somebody is to be notified."""
    spec = observation.config.spec
    if not spec.notify or spec.action == "Ignore":
        return
    if spec.notify in observation.endpoints:
        yield Fact(NOTIFYING, True, "EndpointKnown")
        return
    known = ", ".join(sorted(observation.endpoints)) or "none"
    yield Fact(NOTIFYING, False, "UnknownEndpoint", unknown_endpoint(spec.notify, known))


def unknown_endpoint(name: str, known: str) -> str:
    return f"Endpoint {name} is not configured, so no notification is sent; configured endpoints: {known}"


def _order(condition: Condition) -> tuple[int, str]:
    """Phases first, and always the same: another order would be a change of the status."""
    return (_RANKS.get(condition.type, len(_RANKS)), condition.type)


def _condition(fact: Fact, generation: int, now: datetime) -> Condition:
    return Condition(
        type=fact.type,
        status="True" if fact.holds else "False",
        reason=fact.reason,
        message=fact.message[:LONGEST_MESSAGE],
        last_transition_time=now,
        observed_generation=generation,
    )
