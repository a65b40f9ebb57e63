"""Why an asset is applied or not: every filter and check with its verdict, the overrides in force, the live object."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from virt_steward.controllers.autopilot.annotation_keys import DRIFT
from virt_steward.controllers.autopilot.decide import Wanted
from virt_steward.controllers.autopilot.overrides.scope import Idle
from virt_steward.controllers.autopilot.verdicts import after_the_hco, until_claims_are_known
from virt_steward.insight.assets.evidence import DryRunRejected, DryRunSkipped, Evidence
from virt_steward.insight.assets.state import pause, state_of
from virt_steward.insight.assets.target import AssetCheckResult, target_state
from virt_steward.objects.errors import UserError
from virt_steward.objects.wallclock import rfc3339

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from virt_steward.catalog.asset import Asset
    from virt_steward.catalog.load import Catalog
    from virt_steward.controllers.autopilot.decide import AssetDecision
    from virt_steward.controllers.autopilot.live_summary import LiveSummary
    from virt_steward.insight.assets.state import AssetState
    from virt_steward.insight.assets.survey import Survey

IN_PLACE, DIFFERS, IDLE = "In place", "Differs", "Idle"
NONE = Evidence()
LATELY = 5
"""How many events are shown."""
PASSES = 2
"""For how many of them an event counts: whatever lasts is told again at each."""


class NoAsset(UserError):
    """The catalog has no asset of this name: one line that says so."""


@dataclass(frozen=True, slots=True)
class LiveObject:
    """The object as it is there."""

    uid: str
    made_by_us: bool
    others: tuple[str, ...]
    """Who else manages fields of it."""
    paused_at: str | None


@dataclass(frozen=True, slots=True)
class AssetExplanation:
    """The whole answer on one asset."""

    asset: str
    summary: str
    object: str
    state: str
    because: str
    steps: tuple[AssetCheckResult, ...]
    overrides: Mapping[str, str]
    """The annotations on the object that count now."""
    until: str | None
    """When they end."""
    remarks: tuple[str, ...]
    governed: tuple[str, ...]
    """Fields that are the advisor's."""
    differences: tuple[str, ...]
    """What the object lacks of what is wanted, as JSON pointers."""
    live: LiveObject | None
    """None: it is not there."""
    told: tuple[str, ...]
    """What the autopilot has told of it lately, the newest first."""


def checked(catalog: Catalog, name: str) -> Asset:
    """Find an asset by its name. Raises NoAsset."""
    if found := catalog.find(name):
        return found
    raise NoAsset(f"there is no asset {name}: `virt-steward render --output status` lists all of them")


def why(survey: Survey, name: str, found: Mapping[str, Evidence]) -> AssetExplanation:
    """Judge one asset as the controller would; `found` is by asset. Raises NoAsset."""
    asset = checked(survey.view.catalog, name)
    decision, sighted = survey.decision(asset), survey.view.sighted(name)
    state, because = _state(survey, asset, found)
    evidence = found.get(name, NONE)
    return AssetExplanation(
        asset=name,
        summary=asset.summary,
        object=str(survey.view.ref(asset)),
        state=state,
        because=because,
        steps=(_activation(survey), *_checks(decision), *_on_the_way(survey, asset, found)),
        overrides=dict(decision.overrides),
        until=rfc3339(decision.until) if decision.until else None,
        remarks=(*(f"{one.reason}: {one.why}" for one in decision.remarks), *_not_known(found)),
        governed=tuple(sorted(survey.view.governed(asset).paths)),
        differences=target_state(survey, asset).differences,
        live=_live(sighted) if sighted else None,
        told=tuple(f"{rfc3339(one.at)} {one.reason}: {one.note}" for one in (evidence.told or ())[:LATELY]),
    )


def states(survey: Survey) -> Iterator[tuple[Asset, str, str]]:
    """Walk all assets, each with its state in a word and a sentence, as far as that shows without a question more."""
    for asset in survey.view.catalog.assets:
        yield asset, *_state(survey, asset, {})


def _state(survey: Survey, asset: Asset, found: Mapping[str, Evidence]) -> tuple[str, str]:
    if isinstance(survey.seen.scope, Idle):
        return IDLE, survey.seen.scope.why
    if isinstance(survey.decision(asset).outcome, Wanted) and (waits := _waits(survey, asset, found)):
        return "Waits", waits
    if problem := _problem(survey, asset, found.get(asset.name, NONE)):
        return "Fails", problem
    told = _told(survey, asset, found.get(asset.name, NONE))
    if told.word == IN_PLACE and (lacks := target_state(survey, asset).differences):
        return DIFFERS, f"it lacks {', '.join(lacks)}"
    return told.word, told.why


def _told(survey: Survey, asset: Asset, evidence: Evidence) -> AssetState:
    decision, sighted = survey.decision(asset), survey.view.sighted(asset.name)
    since = survey.now - timedelta(seconds=PASSES * survey.view.options.period)
    told = (one for one in evidence.told or () if one.at >= since)
    return state_of(asset, survey.view.ref(asset), decision, sighted, told)


def _problem(survey: Survey, asset: Asset, evidence: Evidence) -> str:
    """Why the asset fails; empty if it does not."""
    is_wanted = isinstance(survey.decision(asset).outcome, Wanted)
    if is_wanted and (unreadable := survey.view.unreadable(asset.name)):
        return f"the live object cannot be read: {unreadable}"
    if is_wanted and isinstance(evidence.trial, DryRunRejected):
        return evidence.trial.why
    told = _told(survey, asset, evidence)
    return told.why if told.word == "Fails" else ""


def _waits(survey: Survey, asset: Asset, found: Mapping[str, Evidence]) -> str:
    """Why the asset has to wait; empty if it need not."""
    return _after_the_first(survey, asset, found) or _claims(survey, asset)


def _after_the_first(survey: Survey, asset: Asset, found: Mapping[str, Evidence]) -> str:
    first = survey.view.catalog.assets[0]
    problem = "" if asset is first else _problem(survey, first, found.get(first.name, NONE))
    return after_the_hco(problem).why if problem else ""


def _claims(survey: Survey, asset: Asset) -> str:
    """Why nobody can tell what of it is the advisor's; empty if that is known, or nothing is."""
    why = survey.view.unknown_claims() if survey.view.is_governed(asset) else ""
    return until_claims_are_known(why).why if why else ""


def _on_the_way(survey: Survey, asset: Asset, found: Mapping[str, Evidence]) -> Iterator[AssetCheckResult]:
    """What is between a wanted object and its write."""
    wanted, trial = survey.decision(asset).outcome, found.get(asset.name, NONE).trial
    if not isinstance(wanted, Wanted):
        return
    if asset is not survey.view.catalog.assets[0]:
        yield _step("the HyperConverged is in order", _after_the_first(survey, asset, found))
    if survey.view.is_governed(asset):
        yield _step("what the advisor governs is known", _claims(survey, asset))
    yield from target_state(survey, asset).steps
    if not isinstance(trial, DryRunSkipped):
        yield _step("the server takes it", trial.why if isinstance(trial, DryRunRejected) else "")
    yield _step("it may be written", _held(wanted, survey.view.sighted(asset.name)))


def _held(wanted: Wanted, sighted: LiveSummary | None) -> str:
    """Why a difference is not set right; empty if it is."""
    if sighted and wanted.is_paused:
        return pause(sighted)
    return f"by {DRIFT}, differences are only reported" if wanted.is_only_watched else ""


def _not_known(found: Mapping[str, Evidence]) -> Iterator[str]:
    for evidence in found.values():
        if isinstance(evidence.trial, DryRunSkipped) and evidence.trial.why:
            yield f"NotTried: {evidence.trial.why}"
    if any(evidence.told is None for evidence in found.values()):
        yield "EventsForbidden: you may not read what the autopilot has told of it"


def _activation(survey: Survey) -> AssetCheckResult:
    return _step("the autopilot is on", survey.seen.scope.why if isinstance(survey.seen.scope, Idle) else "")


def _checks(decision: AssetDecision) -> Iterator[AssetCheckResult]:
    for step in decision.steps:
        yield _step(step.check.replace("_", " "), step.objection)


def _step(check: str, objection: str) -> AssetCheckResult:
    return AssetCheckResult(check, objects=bool(objection), because=objection)


def _live(sighted: LiveSummary) -> LiveObject:
    return LiveObject(sighted.metadata.uid, sighted.is_made_by_us, sighted.others, sighted.paused_at or None)
