"""What the autopilot would send of an asset's object now, and how far the live object is from that."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from virt_steward.controllers.autopilot.baseline import with_what_fell_away
from virt_steward.controllers.autopilot.decide import Wanted
from virt_steward.controllers.autopilot.overrides.governed import NothingLeft, without_governed
from virt_steward.controllers.autopilot.overrides.mask import masked
from virt_steward.objects.coverage import lacking
from virt_steward.ssa.managers import AUTOPILOT

if TYPE_CHECKING:
    from virt_steward.catalog.asset import Asset
    from virt_steward.insight.assets import Survey

Object = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Step:
    """One filter or check, in words, and what it has to say."""

    check: str
    objects: bool
    """Whether it decides against the asset."""
    because: str


@dataclass(frozen=True, slots=True)
class Aim:
    """What is left to be wanted of the live object, after masks and the advisor's part."""

    intent: Object | None = None
    """None: nothing would be sent."""
    steps: tuple[Step, ...] = ()
    differences: tuple[str, ...] = ()
    """What the object lacks of it, as JSON pointers."""


def aim(survey: Survey, asset: Asset) -> Aim:
    """Follow the controller up to where it would ask the server."""
    wanted, live = survey.decision(asset).outcome, survey.live(asset)
    if not isinstance(wanted, Wanted):
        return Aim()
    if live is None:
        return Aim(wanted.intent)
    kept = masked(wanted.intent, live, AUTOPILOT, wanted.mask)
    left = without_governed(kept.intent, live, survey.outlook.governed(asset))
    steps = tuple(Step("ignored fields are left as they are", objects=False, because=note) for note in kept.notes)
    if isinstance(left, NothingLeft):
        return Aim(steps=(*steps, Step("something is left to be wanted", objects=True, because=left.why)))
    found = tuple(str(pointer) for pointer in lacking(left, live))
    because = f"it lacks {', '.join(found)}" if found else ""
    compared = Step("the live object is as wanted", objects=bool(found), because=because)
    return Aim(with_what_fell_away(left, live, asset.withdrawn), (*steps, compared), found)
