"""How a look at one asset ends."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class AssetSkipped(StrEnum):
    """Why nothing is wanted of an object now."""

    OUT_OF_SCOPE = "NotInScope"
    NO_KIND = "CRDMissing"
    NO_GATE = "GateCRDMissing"
    CONDITIONS = "ConditionsNotMet"
    UNKNOWN = "InputsNotKnown"
    EMPTY = "RenderedEmpty"
    EXCLUDED = "RootExclusion"
    UNMANAGED = "Unmanaged"


class Held(StrEnum):
    """Why something that is wanted cannot happen yet."""

    NO_NAMESPACE = "NamespaceMissing"
    LEAVING = "BeingRemoved"
    HCO_FIRST = "WaitsForHyperConverged"
    EXCLUSIONS_UNREADABLE = "ExclusionsUnreadable"
    CLAIMS_UNREADABLE = "ClaimsUnreadable"
    BEHIND = "ViewOutOfDate"
    THROTTLED = "Throttled"


class Broken(StrEnum):
    """Why an asset fails."""

    RENDER = "RenderFailed"
    APPLY = "ApplyFailed"


@dataclass(frozen=True, slots=True)
class AssetInSync:
    """Live is as wanted."""

    note: str = ""


@dataclass(frozen=True, slots=True)
class AssetApplied:
    """A write has made it so."""

    created: bool
    adopted: bool
    """It was there, and we had not looked after it."""
    drifts: tuple[str, ...]
    """What was set right, and who had set it otherwise; none for what is new or only changes owners."""
    uid: str
    digest: str
    """Of the object that was written over; tells one correction from the next."""


@dataclass(frozen=True, slots=True)
class LeftAlone:
    """Nothing is wanted of it now."""

    reason: AssetSkipped
    why: str


@dataclass(frozen=True, slots=True)
class Differs:
    """It is not as wanted, and nobody sets it right: it is paused, or only to be reported."""

    drifts: tuple[str, ...]
    """None if they were told before."""
    is_paused: bool


@dataclass(frozen=True, slots=True)
class Waits:
    """It cannot happen yet."""

    reason: Held
    why: str
    retry_in: float | None = None
    """Seconds; None if an event will tell."""


def after_the_hco(why: str) -> Waits:
    """Every other asset waits while the HyperConverged fails."""
    return Waits(Held.HCO_FIRST, f"the HyperConverged comes first, and it fails: {why}")


def until_claims_are_known(why: str) -> Waits:
    """Nobody can tell which fields are the advisor's."""
    return Waits(Held.CLAIMS_UNREADABLE, f"plans of the advisor have set something of it, and {why}")


@dataclass(frozen=True, slots=True)
class EditWar:
    """Somebody else keeps changing it: it was paused, so that a person can decide."""

    why: str


@dataclass(frozen=True, slots=True)
class AssetFailed:
    """It cannot be had as it is: a person has to look."""

    reason: Broken
    why: str


Verdict = AssetInSync | AssetApplied | LeftAlone | Differs | Waits | EditWar | AssetFailed
