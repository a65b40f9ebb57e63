"""How each asset of the autopilot is, in a word and a sentence: by its decision, the live object, what was told."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from virt_steward.catalog.hco import PREFIX
from virt_steward.controllers.autopilot import marks
from virt_steward.controllers.autopilot.verdicts import Failed, LeftAlone, Waits

if TYPE_CHECKING:
    from collections.abc import Iterable

    from virt_steward.catalog.asset import Asset
    from virt_steward.controllers.autopilot.decide import Decision, Wanted
    from virt_steward.controllers.autopilot.sighted import Sighted
    from virt_steward.insight.activity import Told
    from virt_steward.objects.identity import Ref

Word = Literal["In place", "Not there yet", "Differs", "Paused", "Waits", "Fails", "Left alone"]

STEERING = frozenset({marks.MODE, marks.PAUSED, marks.PATCH, marks.IGNORED, marks.DRIFT, marks.UNTIL})
"""By these, people override what the catalog says of an object."""
TROUBLE = frozenset({"ApplyFailed", "RenderFailed"})
DIFFERENCE = frozenset({"DriftDetected"})
SETTLED = frozenset({"AssetApplied", "DriftCorrected", "AssetInOrder"})


@dataclass(frozen=True, slots=True)
class AssetState:
    asset: Asset
    ref: Ref
    decision: Decision
    sighted: Sighted | None
    word: Word
    why: str

    @property
    def needs_a_person(self) -> bool:
        return self.word in ("Paused", "Fails", "Differs")


def state_of(asset: Asset, ref: Ref, decision: Decision, sighted: Sighted | None, told: Iterable[Told]) -> AssetState:
    """`told` are the events about this object."""
    word, why = _word(decision, sighted, _last(told))
    return AssetState(asset, ref, decision, sighted, word, why)


def _word(decision: Decision, sighted: Sighted | None, last: Told | None) -> tuple[Word, str]:
    match decision.outcome:
        case LeftAlone(_, why):
            return "Left alone", why
        case Waits(_, why):
            return "Waits", why
        case Failed(_, why):
            return "Fails", why
        case wanted:
            return _of_wanted(wanted, decision, sighted, last)


def _of_wanted(wanted: Wanted, decision: Decision, sighted: Sighted | None, last: Told | None) -> tuple[Word, str]:
    differs = last.note if last and last.reason in DIFFERENCE else ""
    if sighted and sighted.is_paused:
        return "Paused", differs or pause(sighted)
    if last and last.reason in TROUBLE:
        return "Fails", last.note
    if sighted is None:
        return "Not there yet", "it is wanted, and the autopilot has not written it yet"
    if differs and wanted.is_only_watched:
        return "Differs", differs
    return "In place", _with_overrides(decision)


def pause(sighted: Sighted) -> str:
    """Why an object is paused, and what ends it."""
    whose = "somebody else kept changing it" if sighted.paused_at else "a person paused it"
    return f"{whose}; nothing is written until {marks.PAUSED} is removed"


def _with_overrides(decision: Decision) -> str:
    steering = sorted(name.removeprefix(PREFIX) for name in decision.overrides if name in STEERING)
    return f"with overrides: {', '.join(steering)}" if steering else "kept as the catalog says"


def _last(told: Iterable[Told]) -> Told | None:
    """The newest event that tells how the object is."""
    telling = [one for one in told if one.reason in TROUBLE | DIFFERENCE | SETTLED]
    return max(telling, key=lambda one: one.at, default=None)
