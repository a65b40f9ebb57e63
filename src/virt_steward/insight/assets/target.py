"""What the autopilot would send of an asset's object now, and how far the live object is from that."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from virt_steward.controllers.autopilot.decide import Wanted
from virt_steward.controllers.autopilot.overrides.governed import NothingLeft, without_governed
from virt_steward.controllers.autopilot.overrides.mask import masked
from virt_steward.objects.coverage import lacking
from virt_steward.ssa.managers import AUTOPILOT

if TYPE_CHECKING:
    from virt_steward.catalog.asset import Asset
    from virt_steward.insight.assets.survey import Survey

Object = dict[str, Any]


@dataclass(frozen=True, slots=True)
class AssetCheckResult:
    """One filter or check, in words, and what it has to say."""

    check: str
    objects: bool
    """Whether it decides against the asset."""
    because: str


@dataclass(frozen=True, slots=True)
class AssetTargetState:
    """What is left to be wanted of the live object, after masks and the advisor's part."""

    intent: Object | None = None
    """None: nothing would be sent."""
    steps: tuple[AssetCheckResult, ...] = ()
    differences: tuple[str, ...] = ()
    """What the object lacks of it, as JSON pointers."""


def target_state(survey: Survey, asset: Asset) -> AssetTargetState:
    """Follow the controller up to where it would ask the server."""
    wanted, live = survey.decision(asset).outcome, survey.live(asset)
    if not isinstance(wanted, Wanted):
        return AssetTargetState()
    if live is None:
        return AssetTargetState(wanted.intent)
    kept = masked(wanted.intent, live, AUTOPILOT, wanted.mask)
    left = without_governed(kept.intent, live, survey.view.governed(asset))
    steps = tuple(
        AssetCheckResult("ignored fields are left as they are", objects=False, because=note) for note in kept.notes
    )
    if isinstance(left, NothingLeft):
        return AssetTargetState(
            steps=(*steps, AssetCheckResult("something is left to be wanted", objects=True, because=left.why))
        )
    found = tuple(str(pointer) for pointer in lacking(left, live))
    because = f"it lacks {', '.join(found)}" if found else ""
    compared = AssetCheckResult("the live object is as wanted", objects=bool(found), because=because)
    return AssetTargetState(left, (*steps, compared), found)
