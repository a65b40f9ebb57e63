"""Reports what became of each asset: log, events on the HyperConverged, and metrics, all behind one class."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import structlog

from virt_steward.controllers.autopilot import annotation_keys
from virt_steward.controllers.autopilot.corrections import CorrectionLog
from virt_steward.controllers.autopilot.events import (
    DRIFT,
    IN_SYNC,
    OVERDUE,
    asset_event,
    corrected_event,
    drift_event,
    named_fields,
    pause_note,
    released_reason,
    short_hash,
    staged_reason,
)
from virt_steward.controllers.autopilot.notifications import AssetMatters
from virt_steward.controllers.autopilot.rollouts.staged import Occasion
from virt_steward.controllers.autopilot.verdicts import (
    AssetApplied,
    AssetDiffers,
    AssetFailed,
    AssetInSync,
    AssetPending,
    AssetSkipped,
    AssetStaged,
    EditWar,
    FailureReason,
    PendingReason,
    SkipReason,
)
from virt_steward.kube.events import Occurrence
from virt_steward.objects.decision_record import read_decision
from virt_steward.objects.identity import Regarding
from virt_steward.objects.wallclock import rfc3339, rfc3339_micro
from virt_steward.runtime.decision_events import report_decision

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from virt_steward.controllers.autopilot.compliance import ComplianceReached
    from virt_steward.controllers.autopilot.decide import Remark
    from virt_steward.controllers.autopilot.live_summary import LiveSummary
    from virt_steward.controllers.autopilot.metrics import AutopilotMetrics
    from virt_steward.controllers.autopilot.overrides.governed import GovernedFields
    from virt_steward.controllers.autopilot.rollouts.staged import StagedChange
    from virt_steward.controllers.autopilot.rollouts.staging import StageChange
    from virt_steward.controllers.autopilot.verdicts import Verdict
    from virt_steward.kube.events import Recorder
    from virt_steward.objects.identity import Kind, Ref
    from virt_steward.runtime.clock import Clock

log = structlog.get_logger()

_ORIGINS = {
    Occasion.FIRST_CONTACT: ", written by another instance or release of the autopilot, differs",
    Occasion.DRIFT: ", changed by others, differs",
}
_NEW = {Occasion.FIRST_CONTACT: ", which another instance or release of the autopilot did not create, is new"}
MOST_NAMES = 20
"""Names of assets in an event."""
_CUSTOMIZATIONS = {annotation_keys.PATCH: "patch", annotation_keys.IGNORED: "ignore"}


@dataclass(frozen=True, slots=True)
class AssetNeeds:
    """The kinds without which an asset cannot be applied: that of its object, and that of its gate."""

    kinds: tuple[tuple[Kind, str], ...]
    """Each with its version."""
    is_requested: bool
    """The asset is enabled."""
    missing: tuple[Kind, str] | None = None
    """The first of them that the cluster does not serve."""


class AutopilotReporter:
    """Reports each thing once, when it is new. A problem that lasts is repeated, and its end is reported too."""

    def __init__(self, recorder: Recorder, metrics: AutopilotMetrics, clock: Clock) -> None:
        self._metrics = metrics
        self._recorder = recorder
        self._clock = clock
        self._matters = AssetMatters(recorder, clock)
        self._problems: dict[Ref, Occurrence] = {}  # the last event about an object that failed or drifted, or its end
        self._reached: ComplianceReached | None = None
        self._idle = ""
        self._needs: dict[str, AssetNeeds] = {}
        self.corrections = CorrectionLog()

    def report_idle(self, message: str) -> None:
        """Logged when the autopilot becomes idle, or idle for another reason."""
        if message != self._idle:
            log.info("autopilot not enabled, keeping idle", reason=message, annotation=annotation_keys.SCOPE)
        self._idle = message

    def report_active(self) -> None:
        self._idle = ""

    def report_annotation(self, hco: Regarding, reason: str, message: str) -> None:
        """An annotation of the HyperConverged itself cannot be followed."""
        log.warning("annotation not followed", reason=reason, message=message)
        self._recorder.once(Occurrence(hco, "Warning", reason, "Read", message, short_hash(message)))

    def report_replaced_list(self, hco: Regarding, names: list[str]) -> None:
        """All assets are managed now, though only some were selected."""
        shown = ",".join(names[:MOST_NAMES]) + (
            f" and {len(names) - MOST_NAMES} more" if len(names) > MOST_NAMES else ""
        )
        log.warning("list of assets replaced", before=names)
        note = (
            f"{annotation_keys.SCOPE} was a list and is 'true' now, so all assets are managed. OpenShift's console "
            f"writes that. To select them again, set it to the list: {shown}"
        )
        episode = rfc3339_micro(self._clock.utc())
        self._recorder.once(Occurrence(hco, "Warning", "AllowListReplaced", "Read", note, episode))

    def report_undetected(self, hco: Regarding, message: str) -> None:
        """Hardware, topology or storage cannot be read; repeated while that lasts."""
        log.warning("hardware not detected", message=message)
        note = f"hardware, topology or storage is not fully known: {message}"
        self._recorder.again(Occurrence(hco, "Warning", "HardwareDetectionFailed", "Detect", note, short_hash(message)))

    def report_compliance(self, hco: Regarding, reached: ComplianceReached) -> None:
        """The platform complies, and did not before. Repeated calls retry an event that could not be written."""
        if reached != self._reached:
            log.info("platform in sync", in_sync=reached.in_sync, total=reached.total)
        self._reached = reached
        others = "the others are not requested, or their operators are not installed"
        note = f"{reached.in_sync} of {reached.total} assets are in sync; {others}"
        episode = rfc3339_micro(reached.at)
        self._recorder.once(Occurrence(hco, "Normal", "ReconcileSucceeded", "Reconcile", note, episode))

    def report_duration(self, asset: str, ref: Ref, seconds: float) -> None:
        self._metrics.reconciled(asset, ref, seconds)

    def report_verdict(self, hco: Regarding, asset: str, ref: Ref, verdict: Verdict) -> None:
        self._report_rendering(asset, verdict)
        match verdict:
            case AssetInSync():
                self._in_sync(hco, ref)
            case AssetApplied():
                self._applied(hco, asset, ref, verdict)
            case AssetDiffers():
                self._differs(hco, asset, ref, verdict)
            case AssetSkipped(reason, message):
                self._metrics.forget(ref)
                if reason is SkipReason.UNMANAGED:
                    self._metrics.customized(ref, {annotation_keys.UNMANAGED})
                    self._event(hco, ref, "UnmanagedMode", f"{ref} is not managed: {message}", message)
            case AssetStaged():
                self._staged(hco, asset, ref, verdict)
            case AssetPending():
                self._pending(hco, asset, ref, verdict)
            case EditWar(message=message):
                log.warning("edit war: object paused", asset=asset, object=str(ref), reason=message)
                self._metrics.edit_war(ref)
                self._metrics.complies(ref, complies=False)
            case AssetFailed(reason, message):
                log.error("asset failed", asset=asset, object=str(ref), reason=reason, message=message)
                self._metrics.failed(asset)
                self._metrics.complies(ref, complies=False)
                self._problem(ref, asset_event(hco, ref, reason, f"{asset}: {message}", short_hash(message)))
        self._matters.report_verdict(hco, ref, verdict)

    def _report_rendering(self, asset: str, verdict: Verdict) -> None:
        if isinstance(verdict, AssetFailed) and verdict.reason is FailureReason.RENDER:
            self._metrics.render_failed(asset, verdict.code)
        else:
            self._metrics.rendered(asset)

    def report_remarks(self, hco: Regarding, ref: Ref, remarks: tuple[Remark, ...]) -> None:
        for remark in remarks:
            episode = short_hash(f"{remark.message} {remark.text}")
            self._event(hco, ref, remark.reason, f"{ref}: {remark.message}", episode)

    def report_governed(self, hco: Regarding, ref: Ref, governed: GovernedFields) -> None:
        """Some fields are the advisor's, because an admin has approved a plan."""
        note = (
            f"{ref}: {governed}; remove {annotation_keys.GOVERNED_BY} from the object "
            "to have the autopilot manage these fields again"
        )
        self._event(hco, ref, "GovernedByAdvisor", note, short_hash(str(governed)))

    def report_overrides(self, ref: Ref, overrides: Mapping[str, str]) -> None:
        types = {name for key, name in _CUSTOMIZATIONS.items() if key in overrides}
        if overrides.get(annotation_keys.MODE) == annotation_keys.UNMANAGED:
            types.add("unmanaged")
        self._metrics.customized(ref, types)

    def report_pause(self, hco: Regarding, ref: Ref, live: LiveSummary | None) -> None:
        """Every pause is reported, also one that an earlier process began."""
        is_paused = live is not None and live.is_paused
        self._metrics.paused(ref, paused=is_paused)
        self._matters.report_pause(hco, ref, live)
        if live and is_paused and live.paused_at:
            self._event(hco, ref, "ThrashingDetected", pause_note(ref, live), f"{live.metadata.uid} {live.paused_at}")

    def report_decisions(self, hco: Regarding, annotations: Mapping[str, str], ref: Ref | None = None) -> None:
        """Report the last decision of a person on the HyperConverged, or on an object, if it is recent."""
        record = read_decision(annotations, annotation_keys.DECISION)
        related = Regarding(ref, "", "") if ref else None
        report_decision(self._recorder, record, hco, self._clock.utc(), related)

    def report_dependencies(self, hco: Regarding, asset: str, needs: AssetNeeds) -> None:
        """Report the kinds that an asset needs, and whether one that is asked for is missing or was installed."""
        before, self._needs[asset] = self._needs.get(asset), needs
        if before == needs:
            return
        self._count_dependencies({*needs.kinds, *(before.kinds if before else ())})
        was_missing = before.missing if before and before.is_requested else None
        is_missing = needs.missing if needs.is_requested else None
        if is_missing and not was_missing:
            kind, _ = is_missing
            note = f"{asset} needs {kind}, whose CRD is not installed: install its operator"
            self._recorder.once(Occurrence(hco, "Warning", "CRDMissing", "Wait", note, asset))
        if was_missing and not needs.missing:
            kind, _ = was_missing
            log.info("kind discovered", kind=str(kind), asset=asset)
            note = f"{kind} is installed: {asset} can be applied"
            self._recorder.once(Occurrence(hco, "Normal", "CRDDiscovered", "Continue", note, asset))

    def _count_dependencies(self, changed: Iterable[tuple[Kind, str]]) -> None:
        """Bring the series of these kinds up to date: several assets may need one."""
        for need in changed:
            asking = [one for one in self._needs.values() if need in one.kinds]
            requested = [one for one in asking if one.is_requested]
            if asking:
                missing = any(one.missing == need for one in requested)
                self._metrics.dependency(*need, opted_in=bool(requested), missing=missing)
            else:
                self._metrics.forget_dependency(*need)

    def report_tombstone(self, hco: Regarding, ref: Ref, status: int, message: str = "") -> None:
        self._metrics.tombstone(ref, status)
        match status:
            case -1:
                note = f"{ref} is obsolete and cannot be deleted: {message}"
                self._event(hco, ref, "TombstoneFailed", note, short_hash(message))
            case -2:
                note = f"{ref} is obsolete, but was not created by the autopilot: {message}"
                self._event(hco, ref, "TombstoneSkipped", note, message)
            case 1 if message:
                self._event(hco, ref, "TombstoneSkipped", f"{ref} is obsolete and kept: {message}", short_hash(message))
            case 0 if message:
                self._event(hco, ref, "TombstoneDeleted", f"{ref} was obsolete and is deleted", message)

    def report_staged_deletion(self, hco: Regarding, ref: Ref, change: StagedChange, verdict: StageChange) -> None:
        """An obsolete object exists until it may be deleted."""
        self._metrics.tombstone(ref, 1)
        self._metrics.staged(ref, change.matching_pools, change.staged_at.timestamp())
        episode = short_hash(f"{change.desired_hash} {change.staged_at}")
        how = f"To delete it now: virt-steward release {change.asset}"
        note = f"{ref} is obsolete, and deleting it is staged: {verdict.message}. {how}"
        self._event(hco, ref, staged_reason(ref), note, episode)
        if verdict.is_overdue:
            since = f"the deletion of {ref} is staged since {rfc3339(change.staged_at)}"
            note = f"{since}, longer than {annotation_keys.ROLLOUT_DEADLINE}: {verdict.message}. {how}"
            self._recorder.again(asset_event(hco, ref, OVERDUE, note, episode))

    def report_released_deletion(self, hco: Regarding, ref: Ref, reason: str, uid: str) -> None:
        note = f"the deletion of {ref} was staged and is done now: {reason}"
        self._event(hco, ref, released_reason(ref), note, uid)

    def report_not_in_catalog(self, hco: Regarding, ref: Ref) -> None:
        """Another instance or release has created an object that this one does not know."""
        note = f"{ref} carries the label of the autopilot and is not in the catalog of this release: it is kept"
        self._event(hco, ref, "NotInCatalog", f"{note}. Delete it manually if unwanted", "")

    def report_opt_out(self, hco: Regarding, ref: Ref, reason: str, note: str, episode: str) -> None:
        log.info("opted out", object=str(ref), reason=reason, note=note)
        self._event(hco, ref, reason, note, short_hash(episode))

    def forget(self, assets: Iterable[tuple[str, Ref]], tombstones: Iterable[Ref]) -> None:
        """Nothing is wanted any more: no series may remain."""
        for asset, ref in assets:
            self._metrics.forget(ref)
            self._metrics.rendered(asset)
            if needs := self._needs.pop(asset, None):
                self._count_dependencies(needs.kinds)
        for ref in tombstones:
            self._metrics.forget_tombstone(ref)

    def _in_sync(self, hco: Regarding, ref: Ref) -> None:
        self._metrics.complies(ref, complies=True)
        if not (last := self._problems.get(ref)):
            return
        if last.reason != IN_SYNC:
            note, now = f"{ref} is in sync again", rfc3339_micro(self._clock.utc())
            last = self._problems[ref] = asset_event(hco, ref, IN_SYNC, note, now)
        self._recorder.once(last)  # every time, for the first attempt may not have been written

    def _problem(self, ref: Ref, problem: Occurrence) -> None:
        """Repeated while it lasts, as events expire; written at once if the last event on the object was another."""
        last = self._problems.get(ref)
        self._problems[ref] = problem
        if last and last.reason == problem.reason:
            self._recorder.again(problem)
        else:
            self._recorder.again_now(problem)

    def _applied(self, hco: Regarding, asset: str, ref: Ref, verdict: AssetApplied) -> None:
        log.info("applied", asset=asset, object=str(ref), created=verdict.created, drifts=[*map(str, verdict.drifts)])
        self._metrics.applied(asset)
        self._report_write(hco, asset, ref, verdict)
        if verdict.released:
            note = f"{ref} was staged and is written now: {verdict.released}"
            self._event(hco, ref, released_reason(ref), note, f"{verdict.uid} {verdict.digest}")
        self._in_sync(hco, ref)

    def _report_write(self, hco: Regarding, asset: str, ref: Ref, verdict: AssetApplied) -> None:
        if verdict.drifts and not verdict.adopted:
            self._metrics.drifted(asset)
            # Counted on one event, not a new event each time: an edit war would bury everything else.
            self._recorder.again(drift_event(hco, ref, verdict.drifts))
            self._recorder.again(corrected_event(hco, ref, verdict.drifts))
            self.corrections.note(asset, ref, verdict.drifts, self._clock.utc())
            return
        done = "created" if verdict.created else "adopted" if verdict.adopted else "applied"
        if verdict.is_first_contact and verdict.changes and not verdict.adopted:
            done = "applied over what another instance or release of the autopilot wrote"
        changes = (*(drift.cause for drift in verdict.drifts), *verdict.changes)
        changed = f", changed: {named_fields(changes)}" if changes else ""
        self._event(hco, ref, "AssetApplied", f"{asset}: {ref} {done}{changed}", f"{verdict.uid} {verdict.digest}")

    def _staged(self, hco: Regarding, asset: str, ref: Ref, verdict: AssetStaged) -> None:
        change = verdict.change
        self._metrics.staged(ref, change.matching_pools, change.staged_at.timestamp())
        episode = short_hash(f"{change.desired_hash} {change.staged_at}")
        origin = _ORIGINS.get(change.occasion, "") if change.live_hash else _NEW.get(change.occasion, "")
        changed = f". It changes {named_fields(verdict.changes)}" if verdict.changes else ""  # last: long notes are cut
        note = f"{ref}{origin}: {verdict.message}. To write it now: virt-steward release {asset}{changed}"
        if verdict.changes or not change.live_hash:  # later passes do not compare again
            self._event(hco, ref, staged_reason(ref), note, episode)
        if verdict.is_overdue:
            since = f"{ref} is staged since {rfc3339(change.staged_at)}, longer than {annotation_keys.ROLLOUT_DEADLINE}"
            overdue = f"{since}: {verdict.message}. To write it now: virt-steward release {asset}"
            self._recorder.again(asset_event(hco, ref, OVERDUE, overdue, episode))

    def _pending(self, hco: Regarding, asset: str, ref: Ref, verdict: AssetPending) -> None:
        message = verdict.message
        if verdict.reason is PendingReason.THROTTLED:
            log.warning("write throttled", asset=asset, object=str(ref), reason=message)
            self._metrics.delayed(asset)
            self._metrics.complies(ref, complies=False)
            self._event(hco, ref, "Throttled", f"{ref} is throttled: {message}", message)
            return
        log.debug("asset pending", asset=asset, object=str(ref), reason=verdict.reason, message=message)
        if verdict.reason is PendingReason.EXCLUSIONS_UNREADABLE:  # nothing is enforced, so the alert has to fire
            self._metrics.complies(ref, complies=False)
        elif verdict.reason is not PendingReason.STALE:
            self._metrics.unknown(ref)

    def _differs(self, hco: Regarding, asset: str, ref: Ref, verdict: AssetDiffers) -> None:
        self._metrics.complies(ref, complies=False, only_reported=not verdict.is_paused)
        if verdict.drifts:
            self._metrics.drifted(asset)
            self._problem(ref, drift_event(hco, ref, verdict.drifts))
        elif (last := self._problems.get(ref)) and last.reason == DRIFT:
            self._problem(ref, last)

    def _event(self, hco: Regarding, ref: Ref, reason: str, note: str, episode: str) -> None:
        self._recorder.once(asset_event(hco, ref, reason, note, episode))
