"""Why an asset is applied or not: every filter and check with its verdict, the overrides in force, the live object."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from virt_steward.controllers.autopilot.decide import Wanted
from virt_steward.controllers.autopilot.overrides.governed import NothingLeft, without_governed
from virt_steward.controllers.autopilot.overrides.mask import masked
from virt_steward.controllers.autopilot.overrides.scope import Idle
from virt_steward.insight.assetstates import state_of
from virt_steward.objects.complaints import Complaint
from virt_steward.objects.coverage import lacking
from virt_steward.objects.wallclock import rfc3339
from virt_steward.ssa.managers import AUTOPILOT

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from virt_steward.catalog.asset import Asset
    from virt_steward.catalog.load import Catalog
    from virt_steward.controllers.autopilot.decide import Decision
    from virt_steward.controllers.autopilot.sighted import Sighted
    from virt_steward.insight.assets import Survey

Object = dict[str, Any]

IN_PLACE, DIFFERS, IDLE = "In place", "Differs", "Idle"


class NoAsset(Complaint):
    """The catalog has no asset of this name: one line that says so."""


@dataclass(frozen=True, slots=True)
class Step:
    """One filter or check, in words, and what it has to say."""

    check: str
    objects: bool
    """Whether it decides against the asset."""
    because: str


@dataclass(frozen=True, slots=True)
class Live:
    """The object as it is there."""

    uid: str
    made_by_us: bool
    others: tuple[str, ...]
    """Who else manages fields of it."""
    paused_at: str | None


@dataclass(frozen=True, slots=True)
class Why:
    """The whole answer on one asset."""

    asset: str
    summary: str
    object: str
    state: str
    because: str
    steps: tuple[Step, ...]
    overrides: Mapping[str, str]
    """The annotations on the object that count now."""
    until: str | None
    """When they end."""
    remarks: tuple[str, ...]
    governed: tuple[str, ...]
    """Fields that are the advisor's."""
    differences: tuple[str, ...]
    """What the object lacks of what is wanted, as JSON pointers."""
    live: Live | None
    """None: it is not there."""


def checked(catalog: Catalog, name: str) -> Asset:
    """Find an asset by its name. Raises NoAsset."""
    if found := catalog.find(name):
        return found
    raise NoAsset(f"there is no asset {name}: `virt-steward render --output status` lists all of them")


def why(survey: Survey, name: str) -> Why:
    """Judge one asset as the controller would. Raises NoAsset."""
    asset = checked(survey.outlook.catalog, name)
    decision, sighted = survey.decision(asset), survey.outlook.sighted(name)
    aim = _aim(survey, asset, decision)
    state, because = _state(survey, asset, decision, aim)
    return Why(
        asset=name,
        summary=asset.summary,
        object=str(survey.outlook.ref(asset)),
        state=state,
        because=because,
        steps=(_activation(survey), *_checks(decision), *aim.steps),
        overrides=dict(decision.overrides),
        until=rfc3339(decision.until) if decision.until else None,
        remarks=tuple(f"{one.reason}: {one.why}" for one in decision.remarks),
        governed=tuple(sorted(survey.outlook.governed(asset).paths)),
        differences=aim.differences,
        live=_live(sighted) if sighted else None,
    )


def states(survey: Survey) -> Iterator[tuple[Asset, str, str]]:
    """Walk all assets, each with its state in a word and a sentence."""
    for asset in survey.outlook.catalog.assets:
        decision = survey.decision(asset)
        yield asset, *_state(survey, asset, decision, _aim(survey, asset, decision))


@dataclass(frozen=True, slots=True)
class _Aim:
    """What is left to be wanted of the live object, after masks and the advisor's part."""

    steps: tuple[Step, ...] = ()
    differences: tuple[str, ...] = ()


def _aim(survey: Survey, asset: Asset, decision: Decision) -> _Aim:
    live = survey.live(asset)
    if live is None or not isinstance(decision.outcome, Wanted):
        return _Aim()
    kept = masked(decision.outcome.intent, live, AUTOPILOT, decision.outcome.mask)
    left = without_governed(kept.intent, live, survey.outlook.governed(asset))
    steps = [Step("ignored fields are left as they are", objects=False, because=note) for note in kept.notes]
    if isinstance(left, NothingLeft):
        return _Aim((*steps, Step("something is left to be wanted", objects=True, because=left.why)))
    found = tuple(str(pointer) for pointer in lacking(left, live))
    because = f"it lacks {', '.join(found)}" if found else ""
    return _Aim((*steps, Step("the live object is as wanted", objects=bool(found), because=because)), found)


def _state(survey: Survey, asset: Asset, decision: Decision, aim: _Aim) -> tuple[str, str]:
    if isinstance(survey.seen.scope, Idle):
        return IDLE, survey.seen.scope.why
    if problem := survey.outlook.unreadable(asset.name):
        return "Fails", f"the live object cannot be read: {problem}"
    sighted = survey.outlook.sighted(asset.name)
    found = state_of(asset, survey.outlook.ref(asset), decision, sighted, ())
    if found.word == IN_PLACE and aim.differences:
        return DIFFERS, f"it lacks {', '.join(aim.differences)}"
    return found.word, found.why


def _activation(survey: Survey) -> Step:
    idle = survey.seen.scope.why if isinstance(survey.seen.scope, Idle) else ""
    return Step("the autopilot is on", objects=bool(idle), because=idle)


def _checks(decision: Decision) -> Iterator[Step]:
    for step in decision.steps:
        yield Step(step.check.replace("_", " "), objects=bool(step.objection), because=step.objection)


def _live(sighted: Sighted) -> Live:
    return Live(sighted.metadata.uid, sighted.is_made_by_us, sighted.others, sighted.paused_at or None)
