"""Whether the platform as a whole is as it should be, from the verdicts on its assets, and when it gets there."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from virt_steward.controllers.autopilot.verdicts import AssetApplied, AssetInSync, AssetSkipped, Held, LeftAlone, Waits

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime

    from virt_steward.controllers.autopilot.verdicts import Verdict

WANTED_BY_NOBODY_YET = frozenset((Held.NO_NAMESPACE, Held.LEAVING))
"""The operator that would make something of the object is not there."""


@dataclass(frozen=True, slots=True)
class ComplianceReached:
    """Everything that is wanted is in place, and was not before."""

    in_place: int
    of: int
    at: datetime


class Compliance:
    """Follows passes over all assets. Nobody knows what was before them, so what is found in order is no news.

    Nor is a drift that is set right at once: an edit war would be one success after the other.
    """

    def __init__(self, assets: Iterable[str]) -> None:
        self._assets = frozenset(assets)
        self._verdicts: dict[str, Verdict] = {}
        self._was_otherwise = False
        self._reached: ComplianceReached | None = None

    def begin(self) -> None:
        """Every asset is about to be looked at."""
        self._verdicts.clear()

    def rest(self) -> None:
        """Nothing is wanted any more."""
        self._verdicts.clear()
        self._was_otherwise, self._reached = False, None

    def concluded(self, asset: str, verdict: Verdict, now: datetime) -> ComplianceReached | None:
        """Note a verdict; once the platform got there, gives the same for as long as that lasts."""
        self._verdicts[asset] = verdict
        if _is_news(verdict):
            self._was_otherwise, self._reached = True, None
        if not self._is_whole():
            return None
        if self._was_otherwise:
            in_place = sum(isinstance(one, AssetInSync | AssetApplied) for one in self._verdicts.values())
            self._was_otherwise, self._reached = False, ComplianceReached(in_place, len(self._assets), now)
        return self._reached

    def _is_whole(self) -> bool:
        return self._verdicts.keys() == self._assets and all(map(_is_settled, self._verdicts.values()))


def _is_settled(verdict: Verdict) -> bool:
    match verdict:
        case LeftAlone(AssetSkipped.UNKNOWN):  # it may be wanted
            return False
        case AssetInSync() | AssetApplied() | LeftAlone():
            return True
        case Waits(reason):
            return reason in WANTED_BY_NOBODY_YET
    return False


def _is_news(verdict: Verdict) -> bool:
    """Tell whether the platform is not as it should be, or was not until now."""
    match verdict:
        case AssetApplied(drifts=drifts, adopted=adopted):
            return adopted or not drifts
        case Waits(Held.BEHIND) | LeftAlone(AssetSkipped.UNKNOWN):  # nobody could tell yet
            return False
    return not _is_settled(verdict)
