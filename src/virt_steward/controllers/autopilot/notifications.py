"""What of the autopilot concerns people: rollouts that wait, failures, drift that keeps coming back."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Literal

from virt_steward.controllers.autopilot import annotation_keys
from virt_steward.controllers.autopilot.events import (
    DRIFT,
    IN_SYNC,
    OVERDUE,
    RELEASED,
    STAGED,
    TAKEOVER_RELEASED,
    TAKEOVER_STAGED,
    named_fields,
)
from virt_steward.controllers.autopilot.verdicts import (
    AssetApplied,
    AssetDiffers,
    AssetInSync,
    AssetSkipped,
    FailureReason,
)
from virt_steward.controllers.autopilot.watches import ref_of_asset
from virt_steward.kube.events import Occurrence
from virt_steward.objects.identity import Regarding
from virt_steward.runtime.matters import ClosesMatters, IgnoresOccurrence, NotificationRules, OpensMatter

if TYPE_CHECKING:
    from collections.abc import Mapping

    from virt_steward.catalog.load import Catalog
    from virt_steward.controllers.autopilot.live_summary import LiveSummary
    from virt_steward.controllers.autopilot.verdicts import Verdict
    from virt_steward.kube.events import Recorder
    from virt_steward.objects.identity import Key, Ref
    from virt_steward.runtime.clock import Clock
    from virt_steward.runtime.matters import MatterRule
    from virt_steward.ssa.drift_entries import FieldDrift

ROLLOUT, SYNC, REPEATED_DRIFT, EDIT_WAR = "rollout", "sync", "repeated-drift", "edit-war"
"""The topics of matters."""
REPEATED, WITHIN = 3, 3600.0
"""So many corrections of one object within so many seconds concern people: somebody or something works against us."""
RULES: Mapping[str, MatterRule] = {
    **dict.fromkeys((STAGED, TAKEOVER_STAGED, OVERDUE), OpensMatter(ROLLOUT, by_episode=True)),
    **dict.fromkeys((RELEASED, TAKEOVER_RELEASED), ClosesMatters((ROLLOUT,))),
    **dict.fromkeys(FailureReason, OpensMatter(SYNC)),
    "DriftReported": OpensMatter(SYNC),
    IN_SYNC: ClosesMatters((SYNC, ROLLOUT)),
    DRIFT: IgnoresOccurrence(),  # corrected at once; or else DriftReported
    "DriftCorrectedRepeatedly": OpensMatter(REPEATED_DRIFT),
    "DriftStopped": ClosesMatters((REPEATED_DRIFT,)),
    "ThrashingDetected": OpensMatter(EDIT_WAR, by_episode=True),
    "Resumed": ClosesMatters((EDIT_WAR,)),
    "NotManaged": ClosesMatters((ROLLOUT, SYNC, REPEATED_DRIFT, EDIT_WAR)),
    "Throttled": IgnoresOccurrence(),
}


def notification_rules(catalog: Catalog, hco: Key) -> NotificationRules:
    pages = {ref_of_asset(asset, hco): f"/autopilot/{asset.name}" for asset in catalog.assets}

    def page(occurrence: Occurrence) -> str:
        return pages.get(occurrence.related.ref, "/autopilot") if occurrence.related else "/autopilot"

    return NotificationRules(RULES, page)


class AssetMatters:
    """Tells what becomes of each asset to the notifications; events are not its business."""

    def __init__(self, recorder: Recorder, clock: Clock) -> None:
        self._recorder = recorder
        self._clock = clock
        self._corrections: dict[Ref, deque[float]] = {}

    def report_verdict(self, hco: Regarding, ref: Ref, verdict: Verdict) -> None:
        match verdict:
            case AssetApplied(drifts=drifts, adopted=False) if drifts:
                self._corrected(hco, ref, drifts)
                self._tell(hco, ref, "Normal", IN_SYNC, f"{ref} is in sync again")
            case AssetApplied() | AssetInSync():
                self._tell(hco, ref, "Normal", IN_SYNC, f"{ref} is in sync again")
                self._not_corrected(hco, ref)
            case AssetDiffers(drifts=drifts, is_paused=False) if drifts:
                note = f"{ref} differs and is not corrected: {_named(drifts)}"
                self._tell(hco, ref, "Warning", "DriftReported", note)
            case AssetSkipped(reason, message) if not reason.is_unknown:
                self._tell(hco, ref, "Normal", "NotManaged", f"nothing is wanted of {ref} any more: {message}")

    def report_pause(self, hco: Regarding, ref: Ref, live: LiveSummary | None) -> None:
        """The event says that a pause has begun."""
        if live is None or not live.is_paused:
            self._tell(hco, ref, "Normal", "Resumed", f"{ref} is not paused any more")

    def _corrected(self, hco: Regarding, ref: Ref, drifts: tuple[FieldDrift, ...]) -> None:
        now = self._clock.now()
        times = self._corrections.setdefault(ref, deque(maxlen=REPEATED))
        times.append(now)
        if len(times) == REPEATED and now - times[0] <= WITHIN:
            note = (
                f"{ref} was corrected {REPEATED} times within an hour, the last time: {_named(drifts)}. Find out "
                f"who changes it, or list the field in {annotation_keys.IGNORED} on the object"
            )
            self._tell(hco, ref, "Warning", "DriftCorrectedRepeatedly", note)

    def _not_corrected(self, hco: Regarding, ref: Ref) -> None:
        times = self._corrections.get(ref)
        if times and self._clock.now() - times[-1] <= WITHIN:
            return
        self._corrections.pop(ref, None)
        self._tell(hco, ref, "Normal", "DriftStopped", f"{ref} has not been changed by others for an hour")

    def _tell(self, hco: Regarding, ref: Ref, kind: Literal["Normal", "Warning"], reason: str, note: str) -> None:
        self._recorder.tell(Occurrence(hco, kind, reason, "Report", note, "", Regarding(ref, "", "")))


def _named(drifts: tuple[FieldDrift, ...]) -> str:
    return named_fields(tuple(map(str, drifts)))
