"""The last corrections of this process, for a debug page: events expire, and name values only of the first."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any

import msgspec

from virt_steward.objects.wallclock import rfc3339

if TYPE_CHECKING:
    from datetime import datetime

    from virt_steward.objects.identity import Ref
    from virt_steward.ssa.drift_entries import FieldDrift

KEPT = 100
FIELDS_KEPT = 20


class CorrectionLog:
    """The newest first; bounded, for others decide how often they change something."""

    def __init__(self) -> None:
        self._records: deque[dict[str, Any]] = deque(maxlen=KEPT)

    def note(self, asset: str, ref: Ref, drifts: tuple[FieldDrift, ...], now: datetime) -> None:
        fields = [msgspec.to_builtins(drift.entry) for drift in drifts[:FIELDS_KEPT] if drift.entry]
        self._records.appendleft({"time": rfc3339(now), "asset": asset, "object": str(ref), "fields": fields})

    def records(self) -> list[dict[str, Any]]:
        return list(self._records)
