"""Whether and when the platform as a whole complies with the catalog, from the verdicts on its assets."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from virt_steward.controllers.autopilot.verdicts import (
    AssetApplied,
    AssetInSync,
    AssetPending,
    AssetSkipped,
    PendingReason,
)

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime

    from virt_steward.controllers.autopilot.verdicts import Verdict

NOT_NEEDED_YET = frozenset((PendingReason.NO_NAMESPACE, PendingReason.TERMINATING))
"""The operator that would act on the object is not installed."""


@dataclass(frozen=True, slots=True)
class ComplianceReached:
    """Everything that is wanted is in sync, and was not before."""

    in_sync: int
    total: int
    at: datetime


class Compliance:
    """Follows passes over all assets, and notices when the last asset that was not in sync becomes so.

    Only a change counts. After a restart the state before is unknown, so a platform that is found in sync is not
    reported. Neither is a drift that was corrected at once: during an edit war that would be one success after another.
    """

    def __init__(self, assets: Iterable[str]) -> None:
        self._assets = frozenset(assets)
        self._verdicts: dict[str, Verdict] = {}
        self._had_work = False
        self._reached: ComplianceReached | None = None

    def start_pass(self) -> None:
        """Every asset is about to be judged again."""
        self._verdicts.clear()

    def reset(self) -> None:
        """Nothing is wanted any more."""
        self._verdicts.clear()
        self._had_work, self._reached = False, None

    def record(self, asset: str, verdict: Verdict, now: datetime) -> ComplianceReached | None:
        """Note a verdict; once the platform complies, returns the same record for as long as that lasts."""
        self._verdicts[asset] = verdict
        if _is_work(verdict):
            self._had_work, self._reached = True, None
        if not self._is_complete():
            return None
        if self._had_work:
            in_sync = sum(isinstance(one, AssetInSync | AssetApplied) for one in self._verdicts.values())
            self._had_work, self._reached = False, ComplianceReached(in_sync, len(self._assets), now)
        return self._reached

    def _is_complete(self) -> bool:
        return self._verdicts.keys() == self._assets and all(map(_is_settled, self._verdicts.values()))


def _is_settled(verdict: Verdict) -> bool:
    match verdict:
        case AssetSkipped(reason):
            return not reason.is_unknown  # what is unknown may be wanted
        case AssetInSync() | AssetApplied():
            return True
        case AssetPending(reason):
            return reason in NOT_NEEDED_YET
    return False


def _is_work(verdict: Verdict) -> bool:
    """Whether the platform does not comply, or did not until this verdict."""
    match verdict:
        case AssetApplied(drifts=drifts, adopted=adopted):
            return adopted or not drifts
        case AssetPending(PendingReason.STALE):
            return False
        case AssetSkipped():
            return False
    return not _is_settled(verdict)
