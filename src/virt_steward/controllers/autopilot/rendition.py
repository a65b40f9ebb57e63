"""Every asset as a line of a report: what the controller would send of it now, or why nothing.

Debug pages and the command line print these lines, so that neither can disagree with the controller.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from virt_steward.catalog.report import Line, Status, line_of
from virt_steward.controllers.autopilot import marks
from virt_steward.controllers.autopilot.decide import Wanted, decide
from virt_steward.controllers.autopilot.verdicts import Failed, Left, LeftAlone, Waits

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from virt_steward.catalog.asset import Asset
    from virt_steward.catalog.render import Renderer
    from virt_steward.controllers.autopilot.seen import Seen
    from virt_steward.controllers.autopilot.sighted import Sighted

EXCLUDED = "Root exclusion (disabled-resources annotation)"
_ONLY_WATCHED = "Not written: paused, or differences are only reported"


def lines(seen: Seen, sighted: Callable[[str], Sighted | None], renderer: Renderer, now: datetime) -> tuple[Line, ...]:
    """Return the whole catalog, in the order in which it is applied."""
    return tuple(line(asset, seen, sighted(asset.name), renderer, now) for asset in renderer.catalog.assets)


def line(asset: Asset, seen: Seen, sighted: Sighted | None, renderer: Renderer, now: datetime) -> Line:
    """Return one asset, as it is decided by what is seen of the platform and of its own object."""
    plain = line_of(asset, renderer, seen.look)
    if plain.object is None:
        return plain
    match decide(asset, seen, sighted, renderer, now).outcome:
        case Wanted(intent) as wanted:
            return replace(plain, object=intent, reason=_ONLY_WATCHED if wanted.is_only_watched else "")
        case LeftAlone(Left.EXCLUDED, why):
            return _without_object(plain, EXCLUDED, {"annotation": marks.EXCLUDED, "why": why})
        case LeftAlone(reason, why) | Waits(reason, why):
            return _without_object(plain, str(reason), {"why": why})
        case Failed(_, why):
            return Line(asset, Status.ERROR, why)


def _without_object(plain: Line, reason: str, details: dict[str, str]) -> Line:
    return Line(plain.asset, Status.FILTERED, reason, details)
