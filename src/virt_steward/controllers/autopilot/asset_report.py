"""Every asset as a line of a report: what the controller would send of it now, or why nothing.

Debug pages and the command line print these lines, so that neither can disagree with the controller.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from virt_steward.catalog.report import AssetReport, AssetStatus, line_of
from virt_steward.controllers.autopilot import annotation_keys
from virt_steward.controllers.autopilot.decide import Wanted, decide
from virt_steward.controllers.autopilot.verdicts import AssetFailed, AssetSkipped, LeftAlone, Waits

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from virt_steward.catalog.asset import Asset
    from virt_steward.catalog.render import Renderer
    from virt_steward.controllers.autopilot.live_summary import LiveSummary
    from virt_steward.controllers.autopilot.observation import AutopilotObservation

EXCLUDED = "Root exclusion (disabled-resources annotation)"
_ONLY_WATCHED = "Not written: paused, or differences are only reported"


def lines(
    seen: AutopilotObservation, sighted: Callable[[str], LiveSummary | None], renderer: Renderer, now: datetime
) -> tuple[AssetReport, ...]:
    """Return the whole catalog, in the order in which it is applied."""
    return tuple(line(asset, seen, sighted(asset.name), renderer, now) for asset in renderer.catalog.assets)


def line(
    asset: Asset, seen: AutopilotObservation, sighted: LiveSummary | None, renderer: Renderer, now: datetime
) -> AssetReport:
    """Return one asset, as it is decided by what is seen of the platform and of its own object."""
    plain = line_of(asset, renderer, seen.look)
    if plain.object is None:
        return plain
    match decide(asset, seen, sighted, renderer, now).outcome:
        case Wanted(intent) as wanted:
            return replace(plain, object=intent, reason=_ONLY_WATCHED if wanted.is_only_watched else "")
        case LeftAlone(AssetSkipped.EXCLUDED, why):
            return _without_object(plain, EXCLUDED, {"annotation": annotation_keys.EXCLUDED, "why": why})
        case LeftAlone(reason, why) | Waits(reason, why):
            return _without_object(plain, str(reason), {"why": why})
        case AssetFailed(_, why):
            return AssetReport(asset, AssetStatus.ERROR, why)


def _without_object(plain: AssetReport, reason: str, details: dict[str, str]) -> AssetReport:
    return AssetReport(plain.asset, AssetStatus.FILTERED, reason, details)
