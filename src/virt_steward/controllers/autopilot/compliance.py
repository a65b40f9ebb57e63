"""Whether the platform as a whole is as it should be, from the verdicts on its assets, and when it gets there."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from virt_steward.controllers.autopilot.verdicts import Applied, Held, InOrder, LeftAlone, Waits

if TYPE_CHECKING:
    from collections.abc import Iterable

    from virt_steward.controllers.autopilot.verdicts import Verdict

WANTED_BY_NOBODY_YET = frozenset((Held.NO_NAMESPACE, Held.LEAVING))
"""The operator that would make something of the object is not there."""


@dataclass(frozen=True, slots=True)
class Reached:
    """Everything that is wanted is in place, and was not before."""

    in_place: int
    of: int


class Compliance:
    """Follows passes over all assets. Nobody knows what was before them, so what is found in order is no news.

    Nor is a drift that is set right at once: an edit war would be one success after the other.
    """

    def __init__(self, assets: Iterable[str]) -> None:
        self._assets = frozenset(assets)
        self._verdicts: dict[str, Verdict] = {}
        self._was_otherwise = False

    def begin(self) -> None:
        """Every asset is about to be looked at."""
        self._verdicts.clear()

    def rest(self) -> None:
        """Nothing is wanted any more."""
        self._verdicts.clear()
        self._was_otherwise = False

    def concluded(self, asset: str, verdict: Verdict) -> Reached | None:
        """Note a verdict; gives something if the platform got there by it."""
        self._verdicts[asset] = verdict
        self._was_otherwise |= _is_news(verdict)
        if not self._was_otherwise or not self._is_whole():
            return None
        self._was_otherwise = False
        in_place = sum(isinstance(one, InOrder | Applied) for one in self._verdicts.values())
        return Reached(in_place, len(self._assets))

    def _is_whole(self) -> bool:
        return self._verdicts.keys() == self._assets and all(map(_is_settled, self._verdicts.values()))


def _is_settled(verdict: Verdict) -> bool:
    match verdict:
        case InOrder() | Applied() | LeftAlone():
            return True
        case Waits(reason):
            return reason in WANTED_BY_NOBODY_YET
    return False


def _is_news(verdict: Verdict) -> bool:
    """Tell whether the platform is not as it should be, or was not until now."""
    match verdict:
        case Applied(drifts=drifts, adopted=adopted):
            return adopted or not drifts
        case Waits(Held.BEHIND):  # nobody has looked yet
            return False
    return not _is_settled(verdict)
