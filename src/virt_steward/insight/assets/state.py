"""The state of each asset in a word and a sentence: from its decision, the live object, and the last events."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from virt_steward.controllers.autopilot import annotation_keys
from virt_steward.controllers.autopilot.events import DRIFT, IN_SYNC, STAGED, TAKEOVER_STAGED
from virt_steward.controllers.autopilot.verdicts import AssetFailed, AssetPending, AssetSkipped
from virt_steward.objects.decision_record import read_decision
from virt_steward.platform.hco import PREFIX

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from virt_steward.catalog.asset import Asset
    from virt_steward.controllers.autopilot.decide import AssetDecision, Wanted
    from virt_steward.controllers.autopilot.live_summary import LiveSummary
    from virt_steward.insight.activity import EventRecord
    from virt_steward.insight.assets.staged import StagedWait
    from virt_steward.objects.decision_record import DecisionRecord
    from virt_steward.objects.identity import Ref

Word = Literal["In place", "Not there yet", "Differs", "Paused", "Staged", "Waits", "Fails", "Left alone"]

STEERING = frozenset(
    {
        annotation_keys.MODE,
        annotation_keys.PAUSED,
        annotation_keys.PATCH,
        annotation_keys.IGNORED,
        annotation_keys.DRIFT,
        annotation_keys.UNTIL,
        annotation_keys.ROLLOUT,
        annotation_keys.ROLLOUT_WINDOW,
        annotation_keys.ROLLOUT_DEADLINE,
        annotation_keys.ROLLOUT_DEADLINE_ACTION,
        annotation_keys.ROLLOUT_GATES,
        annotation_keys.BYPASS,
    }
)
"""By these, users override what the catalog wants of an object."""
TROUBLE = frozenset({"ApplyFailed"})
"""Not RenderFailed: whether an asset renders now is known from its decision."""
DIFFERENCE = frozenset({DRIFT})
SETTLED = frozenset({"AssetApplied", "DriftCorrected", IN_SYNC, STAGED, TAKEOVER_STAGED})
"""After one of these, an earlier failure is over."""


@dataclass(frozen=True, slots=True)
class AssetState:
    asset: Asset
    ref: Ref
    decision: AssetDecision
    live_summary: LiveSummary | None
    word: Word
    why: str
    staged: StagedWait | None = None
    """What waits until it is released."""

    @property
    def needs_a_person(self) -> bool:
        return self.word in ("Paused", "Fails", "Differs", "Staged")


def state_of(  # noqa: PLR0913, PLR0917 - all that is known of one asset
    asset: Asset,
    ref: Ref,
    decision: AssetDecision,
    live_summary: LiveSummary | None,
    events: Iterable[EventRecord],
    staged: StagedWait | None = None,
) -> AssetState:
    """Sum up one asset; `events` are those about its object."""
    word, why = _word(decision, live_summary, _last(events))
    if staged and (word in ("In place", "Not there yet") or (word == "Left alone" and staged.deleted)):
        return AssetState(asset, ref, decision, live_summary, "Staged", str(staged), staged)
    return AssetState(asset, ref, decision, live_summary, word, why)


def _word(decision: AssetDecision, live_summary: LiveSummary | None, last: EventRecord | None) -> tuple[Word, str]:
    match decision.outcome:
        case AssetSkipped(_, message):
            return "Left alone", message
        case AssetPending(_, message):
            return "Waits", message
        case AssetFailed(_, message):
            return "Fails", message
        case wanted:
            return _of_wanted(wanted, decision, live_summary, last)


def _of_wanted(
    wanted: Wanted, decision: AssetDecision, live_summary: LiveSummary | None, last: EventRecord | None
) -> tuple[Word, str]:
    differs = last.note if last and last.reason in DIFFERENCE else ""
    if live_summary and live_summary.is_paused:
        return "Paused", differs or explain_pause(live_summary)
    if last and last.reason in TROUBLE:
        return "Fails", last.note
    if live_summary is None:
        return "Not there yet", "the autopilot has not created it yet"
    if differs and wanted.is_only_watched:
        return "Differs", differs
    return "In place", _with_overrides(decision)


def decisions_about(
    asset: str, live: LiveSummary | None, hco_annotations: Mapping[str, str]
) -> tuple[DecisionRecord, ...]:
    """The last decision of a person on the object, and the last release if it was about this asset."""
    own = read_decision(live.annotations, annotation_keys.DECISION) if live else None
    last = read_decision(hco_annotations, annotation_keys.DECISION)
    released = last if last and any(one.startswith(f"{asset}@") for one in last.subject.split(", ")) else None
    found = {one for one in (own, released) if one}
    return tuple(sorted(found, key=lambda one: one.at, reverse=True))


def explain_pause(live: LiveSummary) -> str:
    """Why an object is paused, and what ends it."""
    return f"{live.pause_cause}; nothing is written until {annotation_keys.PAUSED} is removed"


def _with_overrides(decision: AssetDecision) -> str:
    steering = sorted(name.removeprefix(PREFIX) for name in decision.overrides if name in STEERING)
    return f"with overrides: {', '.join(steering)}" if steering else "as the catalog wants it"


def _last(events: Iterable[EventRecord]) -> EventRecord | None:
    """Return the newest event that tells the state of the object."""
    telling = [one for one in events if one.reason in TROUBLE | DIFFERENCE | SETTLED]
    return max(telling, key=lambda one: one.at, default=None)
