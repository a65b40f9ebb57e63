"""The conditions of a config: exactly one phase is True, and what else there is to say beside it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from virt_steward.apis.meta import Condition
from virt_steward.controllers.advisor.decide import INPUT_DRIFT, forced_by
from virt_steward.controllers.advisor.phases import PHASES
from virt_steward.controllers.advisor.steps import (
    AdoptVersion,
    AwaitReview,
    AwaitWindow,
    Begin,
    FailStale,
    Finish,
    Ignore,
    LackPrerequisites,
    MarkDrifted,
    NothingToDo,
    OfferUpgrade,
    Settle,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from datetime import datetime

    from virt_steward.apis.virtplatformconfig import VirtPlatformConfigStatus
    from virt_steward.controllers.advisor.observation import AdvisorObservation
    from virt_steward.controllers.advisor.steps import Said

UPGRADE = "UpgradeAvailable"
PREREQUISITES = "PrerequisitesMet"
STALE = "PlanStale"
ACTIVE = "ProfileActive"
WINDOW = "WaitingForWindow"
NOTIFYING = "Notifying"

_RANKS: dict[str, int] = {phase: rank for rank, phase in enumerate(PHASES)}
_NOT = {"Drifted": "NoDrift"}
"""Reasons of a phase that is not the present one, where they are not simply Not and its name."""


@dataclass(frozen=True, slots=True)
class Fact:
    type: str
    holds: bool
    reason: str
    message: str = ""


def conditions_of(
    seen: AdvisorObservation, status: VirtPlatformConfigStatus, step: Said, phase: Fact, now: datetime
) -> tuple[Condition, ...]:
    """All of them after a step; `phase` is what is said about the present one."""
    return _told(seen, status, (*_phases(phase), *_facts(seen, status, step), *_notices(seen)), now)


def with_notices(seen: AdvisorObservation, status: VirtPlatformConfigStatus, now: datetime) -> tuple[Condition, ...]:
    """The same as before but for notices: which endpoints there are depends on the process that looks."""
    return _told(seen, status, _notices(seen), now)


def _told(
    seen: AdvisorObservation, status: VirtPlatformConfigStatus, facts: Iterable[Fact], now: datetime
) -> tuple[Condition, ...]:
    told = {fact.type: fact for fact in facts}
    generation = seen.config.metadata.generation
    known = {one.type: one for one in status.conditions if one.type != NOTIFYING}
    fresh = {fact.type: _condition(fact, generation, now).carrying_on(status.conditions) for fact in told.values()}
    return tuple(sorted({**known, **fresh}.values(), key=_order))


def _order(condition: Condition) -> tuple[int, str]:
    """Always the same, phases first: an order that changes would be a change."""
    kind = condition.type
    return (_RANKS.get(kind, len(_RANKS)), kind)


def _condition(fact: Fact, generation: int, now: datetime) -> Condition:
    return Condition(
        type=fact.type,
        status="True" if fact.holds else "False",
        reason=fact.reason,
        message=fact.message[:32768],
        last_transition_time=now,
        observed_generation=generation,
    )


def _phases(present: Fact) -> Iterator[Fact]:
    for name in PHASES:
        yield present if name == present.type else Fact(name, False, _NOT.get(name, f"Not{name}"))


def _facts(seen: AdvisorObservation, status: VirtPlatformConfigStatus, step: Said) -> Iterator[Fact]:
    """What a step tells besides the phase; on all else, what was said before stands."""
    if isinstance(step, Settle):
        return
    yield _active(status, step)
    if isinstance(step, Ignore):
        return
    yield from _inputs(seen, step)
    yield from _upgrade(seen, status, step)
    yield _prerequisites(step)
    yield from _staleness(seen, step)
    if isinstance(step, AwaitWindow):
        yield Fact(WINDOW, True, step.reason, step.message)
    elif any(one.type == WINDOW for one in status.conditions):
        yield Fact(WINDOW, False, "NotWaiting")


def _active(status: VirtPlatformConfigStatus, step: Said) -> Fact:
    match status.phase:
        case "Completed" if status.plan_action == "Rollback":
            return Fact(ACTIVE, False, "RolledBack", "What this profile had set was taken back")
        case "Completed" | "CompletedWithUpgrade":
            return Fact(ACTIVE, True, "InSync", "The cluster is as this profile wants it")
        case "Drifted":
            return Fact(ACTIVE, False, "ConfigurationDrifted", "Others have changed what this profile has set")
        case None:
            return Fact(ACTIVE, False, type(step).__name__)
    return Fact(ACTIVE, False, status.phase)


def _inputs(seen: AdvisorObservation, step: Said) -> Iterator[Fact]:
    was = seen.config.is_true(INPUT_DRIFT)
    forced = forced_by(seen)
    match step:
        case AwaitReview() if forced:
            yield Fact(INPUT_DRIFT, True, "InputChanged", "; ".join(forced))
        case AwaitReview() | NothingToDo() if was:
            yield Fact(INPUT_DRIFT, False, "DriftResolved")
        case Begin() if was:
            yield Fact(INPUT_DRIFT, False, "Acknowledged")
        case _ if not _is_said(seen, INPUT_DRIFT):
            yield Fact(INPUT_DRIFT, False, "NoChange")


def _upgrade(seen: AdvisorObservation, status: VirtPlatformConfigStatus, step: Said) -> Iterator[Fact]:
    """Drift comes before an upgrade in the phase, and does not hide it here."""
    was = seen.config.is_true(UPGRADE)
    match step:
        case OfferUpgrade() | MarkDrifted() if seen.logic and seen.logic.differs:
            before, now, items = status.operator_version, seen.version, ", ".join(seen.logic.differs)
            text = f"{now} would change {items} (planned by {before}); set action to DryRun to see how"
            yield Fact(UPGRADE, True, "LogicChanged", text)
        case AdoptVersion(reason):
            yield Fact(UPGRADE, False, reason)
        case Finish() | NothingToDo() if was and status.operator_version == seen.version:
            yield Fact(UPGRADE, False, "Applied")
        case _ if not _is_said(seen, UPGRADE):
            yield Fact(UPGRADE, False, "NoLogicChange")


def _prerequisites(step: Said) -> Fact:
    if isinstance(step, LackPrerequisites):
        return Fact(PREREQUISITES, False, "MissingDependency", "\n".join(step.missing))
    return Fact(PREREQUISITES, True, "AllPresent")


def _staleness(seen: AdvisorObservation, step: Said) -> Iterator[Fact]:
    match step:
        case FailStale(why):
            yield Fact(STALE, True, "TargetsChanged", why)
        case AwaitReview(stale=why) if why:
            yield Fact(STALE, True, "TargetsChanged", why)
        case AwaitReview() | Begin() | NothingToDo():
            yield Fact(STALE, False, "PlanCurrent")
        case _ if not _is_said(seen, STALE):
            yield Fact(STALE, False, "PlanCurrent")


def _notices(seen: AdvisorObservation) -> Iterator[Fact]:
    """Said only where somebody is to be notified."""
    spec = seen.config.spec
    if not spec.notify or spec.action == "Ignore":
        return
    if spec.notify in seen.endpoints:
        yield Fact(NOTIFYING, True, "EndpointKnown")
        return
    known = ", ".join(sorted(seen.endpoints)) or "none"
    fault = f"no endpoint is called {spec.notify}, so nobody is notified; the controller's settings have: {known}"
    yield Fact(NOTIFYING, False, "UnknownEndpoint", fault)


def _is_said(seen: AdvisorObservation, type_: str) -> bool:
    return any(one.type == type_ for one in seen.config.status.conditions)
