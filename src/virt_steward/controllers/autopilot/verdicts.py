"""The verdicts on one asset: the one type that the controller, its debug pages, the command line and the console show.

`decide` gives AssetSkipped, AssetPending or AssetFailed from what is known beforehand; `converge` gives the others from
the comparison with the live object.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from virt_steward.controllers.autopilot.rollouts.staged import StagedChange
    from virt_steward.ssa.drift_entries import FieldDrift


class SkipReason(StrEnum):
    """Why the autopilot wants nothing of an object now."""

    OUT_OF_SCOPE = "NotInScope"
    NO_KIND = "CRDMissing"
    NO_GATE = "GateCRDMissing"
    CONDITIONS = "ConditionsNotMet"
    CONDITIONS_UNKNOWN = "ConditionsNotKnown"
    INPUTS_UNKNOWN = "InputsNotKnown"
    EMPTY = "RenderedEmpty"
    EXCLUDED = "RootExclusion"
    UNMANAGED = "Unmanaged"

    @property
    def is_unknown(self) -> bool:
        """Whether the asset may be wanted: what it depends on could not be read."""
        return self in (SkipReason.CONDITIONS_UNKNOWN, SkipReason.INPUTS_UNKNOWN)


class PendingReason(StrEnum):
    """Why an object that is wanted cannot be written yet."""

    NO_NAMESPACE = "NamespaceMissing"
    TERMINATING = "BeingRemoved"
    HCO_FIRST = "WaitsForHyperConverged"
    EXCLUSIONS_UNREADABLE = "ExclusionsUnreadable"
    CLAIMS_UNREADABLE = "ClaimsUnreadable"
    STALE = "ViewOutOfDate"
    THROTTLED = "Throttled"
    FROZEN = "Frozen"


class FailureReason(StrEnum):
    """Why an asset fails; also the reason of the event."""

    RENDER = "RenderFailed"
    APPLY = "ApplyFailed"


@dataclass(frozen=True, slots=True)
class AssetInSync:
    """The live object is as desired."""

    note: str = ""


@dataclass(frozen=True, slots=True)
class AssetApplied:
    """A write has brought the live object to the desired state."""

    created: bool
    adopted: bool
    """The object existed, and the autopilot had not managed it before."""
    drifts: tuple[FieldDrift, ...]
    """The fields that were corrected, and who had changed them; none for what is new or only changes owners."""
    uid: str
    digest: str
    """Of the object that was written over; tells one correction from the next."""
    released: str = ""
    """Why it was written now; empty unless it was staged before."""
    changes: tuple[str, ...] = ()
    """The other fields that changed: what is wanted, or which instance of the autopilot wants it."""
    is_first_contact: bool = False
    """The object existed, and this process had neither written it nor found it in sync."""


@dataclass(frozen=True, slots=True)
class AssetSkipped:
    """Nothing is wanted of the object now."""

    reason: SkipReason
    message: str
    details: Mapping[str, str] = field(default_factory=dict)
    """The facts behind the message, by name, as `render` and the debug pages list them."""


@dataclass(frozen=True, slots=True)
class AssetDiffers:
    """The live object differs and is not corrected: it is paused, or drift is only reported."""

    drifts: tuple[FieldDrift, ...]
    """Empty if they were reported before."""
    is_paused: bool


@dataclass(frozen=True, slots=True)
class AssetStaged:
    """The change would reboot nodes, so it waits."""

    message: str
    change: StagedChange
    changes: tuple[str, ...] = ()
    """The fields that would change; empty if they were reported before."""
    is_overdue: bool = False
    retry_in: float | None = None
    """Seconds; None if only an event ends the wait."""


@dataclass(frozen=True, slots=True)
class AssetPending:
    """The object is wanted and cannot be written yet."""

    reason: PendingReason
    message: str
    retry_in: float | None = None
    """Seconds; None if a watch event ends the wait."""


def pending_hco(message: str) -> AssetPending:
    """Every other asset is pending while that of the HyperConverged fails."""
    return AssetPending(PendingReason.HCO_FIRST, f"the HyperConverged must be applied first, which fails: {message}")


def pending_claims(message: str) -> AssetPending:
    """Which fields the advisor governs is unknown, so that none of them may be written."""
    return AssetPending(
        PendingReason.CLAIMS_UNREADABLE, f"the advisor governs fields of it, and which ones is unknown: {message}"
    )


@dataclass(frozen=True, slots=True)
class EditWar:
    """Another client keeps changing the object: it was paused, so that a person can decide."""

    message: str
    version: int = 0
    """The resourceVersion of the paused object."""


@dataclass(frozen=True, slots=True)
class AssetFailed:
    """The asset cannot be rendered or applied as it is; a person has to look."""

    reason: FailureReason
    message: str
    code: str = ""
    """Names a setting that is missing, for machines."""


Verdict = AssetInSync | AssetApplied | AssetSkipped | AssetDiffers | AssetStaged | AssetPending | EditWar | AssetFailed
