"""Tells people and machines what became of an asset: log, events on the HyperConverged, metrics."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Literal

import structlog

from virt_steward.controllers.autopilot import annotation_keys
from virt_steward.controllers.autopilot.verdicts import (
    AssetApplied,
    AssetFailed,
    AssetInSync,
    AssetSkipped,
    Differs,
    EditWar,
    Held,
    LeftAlone,
    Waits,
)
from virt_steward.kube.events import Occurrence
from virt_steward.objects.identity import Regarding
from virt_steward.objects.wallclock import rfc3339_micro

if TYPE_CHECKING:
    from collections.abc import Mapping

    from virt_steward.controllers.autopilot.compliance import ComplianceReached
    from virt_steward.controllers.autopilot.decide import Remark
    from virt_steward.controllers.autopilot.live_summary import LiveSummary
    from virt_steward.controllers.autopilot.metrics import AutopilotMetrics
    from virt_steward.controllers.autopilot.overrides.governed import GovernedFields
    from virt_steward.controllers.autopilot.verdicts import Verdict
    from virt_steward.kube.events import Recorder
    from virt_steward.objects.identity import Kind, Ref
    from virt_steward.runtime.clock import Clock

log = structlog.get_logger()

DRIFT, IN_ORDER = "DriftDetected", "AssetInOrder"
NORMAL = frozenset(
    (
        "AssetApplied",
        IN_ORDER,
        "DriftCorrected",
        "PatchApplied",
        "TombstoneDeleted",
        "UnmanagedMode",
        "GovernedByAdvisor",
        "OptOutDeleted",
        "OptOutSkipped",
    )
)
"""Reasons of events that ask nothing of anybody; all others are warnings."""
_CUSTOMIZATIONS = {annotation_keys.PATCH: "patch", annotation_keys.IGNORED: "ignore"}


class AutopilotReporter:
    """Each thing is told once, when it is new; trouble that lasts is told again and again, and then its end."""

    def __init__(self, recorder: Recorder, gauges: AutopilotMetrics, clock: Clock) -> None:
        self.gauges = gauges
        self._recorder = recorder
        self._clock = clock
        self._standing: dict[Ref, Occurrence] = {}  # of what has failed or differed: what was told last, or its end
        self._reached: ComplianceReached | None = None
        self._idle = ""
        self._missing: dict[str, tuple[Kind, str]] = {}

    def idle(self, why: str) -> None:
        """Said when the autopilot begins to idle, or idles for another reason."""
        if why != self._idle:
            log.info("autopilot not enabled, keeping idle", why=why, annotation=annotation_keys.SCOPE)
        self._idle = why

    def active(self) -> None:
        self._idle = ""

    def warned(self, hco: Regarding, reason: str, why: str) -> None:
        """Something about the HyperConverged's own annotations."""
        log.warning("annotation not followed", reason=reason, why=why)
        self._recorder.once(Occurrence(hco, "Warning", reason, "Read", why, _short(why)))

    def undetected(self, hco: Regarding, why: str) -> None:
        """Hardware, topology or storage cannot be seen; said while that lasts."""
        log.warning("hardware not detected", why=why)
        note = f"hardware, topology or storage is not fully known: {why}"
        self._recorder.again(Occurrence(hco, "Warning", "HardwareDetectionFailed", "Detect", note, _short(why)))

    def succeeded(self, hco: Regarding, reached: ComplianceReached) -> None:
        """All is as it should be, and was not before; said at every look, for it may not have been taken at first."""
        if reached != self._reached:
            log.info("platform as wanted", in_place=reached.in_place, of=reached.of)
        self._reached = reached
        others = "the others are not asked for, or wait for their operators"
        note = f"{reached.in_place} of {reached.of} assets are in place; {others}"
        episode = rfc3339_micro(reached.at)
        self._recorder.once(Occurrence(hco, "Normal", "ReconcileSucceeded", "Reconcile", note, episode))

    def verdict(self, hco: Regarding, asset: str, ref: Ref, verdict: Verdict) -> None:
        match verdict:
            case AssetInSync():
                self._in_order(hco, ref)
            case AssetApplied():
                self._applied(hco, asset, ref, verdict)
            case Differs():
                self._differs(hco, asset, ref, verdict)
            case LeftAlone(reason, why):
                self.gauges.forget(ref)
                if reason is AssetSkipped.UNMANAGED:
                    self.gauges.customized(ref, {annotation_keys.UNMANAGED})
                    self._event(hco, ref, "UnmanagedMode", f"{ref} is left alone: {why}", why)
            case Waits():
                self._waits(hco, asset, ref, verdict)
            case EditWar(why):
                log.warning("edit war: paused", asset=asset, object=str(ref), why=why)
                self.gauges.edit_war(ref)
                self.gauges.complies(ref, complies=False)
            case AssetFailed(reason, why):
                log.error("asset failed", asset=asset, object=str(ref), reason=reason, why=why)
                self.gauges.failed(asset)
                self.gauges.complies(ref, complies=False)
                self._troubled(ref, _event(hco, ref, reason, f"{asset}: {why}", _short(why)))

    def remarks(self, hco: Regarding, ref: Ref, remarks: tuple[Remark, ...]) -> None:
        for remark in remarks:
            self._event(hco, ref, remark.reason, f"{ref}: {remark.why}", _short(f"{remark.why} {remark.text}"))

    def governed(self, hco: Regarding, ref: Ref, governed: GovernedFields) -> None:
        """Some fields are the advisor's, as an admin has approved."""
        fields = ", ".join(sorted(governed.paths))
        key = annotation_keys.GOVERNED_BY
        note = f"{ref}: the advisor governs {fields}; remove {key} from the object to take them back"
        self._event(hco, ref, "GovernedByAdvisor", note, _short(fields))

    def overrides(self, ref: Ref, overrides: Mapping[str, str]) -> None:
        types = {name for key, name in _CUSTOMIZATIONS.items() if key in overrides}
        if overrides.get(annotation_keys.MODE) == annotation_keys.UNMANAGED:
            types.add("unmanaged")
        self.gauges.customized(ref, types)

    def pause(self, hco: Regarding, ref: Ref, sighted: LiveSummary | None) -> None:
        """Said of every pause that we see, also of one that a process before us began."""
        is_paused = sighted is not None and sighted.is_paused
        self.gauges.paused(ref, paused=is_paused)
        if sighted and is_paused and sighted.paused_at:
            note = (
                f"somebody else keeps changing {ref}, so it is paused. Find out who, then remove "
                f"{annotation_keys.PAUSED} to resume, or leave the field to them with {annotation_keys.IGNORED}"
            )
            self._event(hco, ref, "ThrashingDetected", note, f"{sighted.metadata.uid} {sighted.paused_at}")

    def missing(self, hco: Regarding, asset: str, kind: Kind, version: str) -> None:
        """A kind that somebody asked for is not there."""
        if asset not in self._missing:
            note = f"{asset} waits for {kind}: install the operator that brings it"
            self._recorder.once(Occurrence(hco, "Warning", "CRDMissing", "Wait", note, asset))
        self._missing[asset] = kind, version
        self.gauges.missing(kind, version, missing=True)

    def not_asked_for(self, asset: str) -> Kind | None:
        """Nobody misses it any more; gives the kind that was missing until now."""
        kind, version = self._missing.pop(asset, (None, ""))
        if kind and (kind, version) not in self._missing.values():
            self.gauges.missing(kind, version, missing=False)
        return kind

    def not_missing(self, hco: Regarding, asset: str) -> None:
        if not (kind := self.not_asked_for(asset)):
            return
        log.info("kind discovered", kind=str(kind), asset=asset)
        self._recorder.once(
            Occurrence(hco, "Normal", "CRDDiscovered", "Go on", f"{kind} is there: {asset} can be applied", asset)
        )

    def tombstone(self, hco: Regarding, ref: Ref, status: int, why: str = "") -> None:
        self.gauges.tombstone(ref, status)
        match status:
            case -1:
                self._event(hco, ref, "TombstoneFailed", f"{ref} is obsolete and cannot be deleted: {why}", _short(why))
            case -2:
                self._event(hco, ref, "TombstoneSkipped", f"{ref} is obsolete, but not ours to delete: {why}", why)
            case 1 if why:
                self._event(hco, ref, "TombstoneSkipped", f"{ref} is obsolete and stays: {why}", _short(why))
            case 0 if why:
                self._event(hco, ref, "TombstoneDeleted", f"{ref} was obsolete and is deleted", why)

    def opted_out(self, hco: Regarding, ref: Ref, reason: str, note: str, episode: str) -> None:
        log.info("opted out", object=str(ref), reason=reason, note=note)
        self._event(hco, ref, reason, note, _short(episode))

    def _in_order(self, hco: Regarding, ref: Ref) -> None:
        self.gauges.complies(ref, complies=True)
        if not (standing := self._standing.get(ref)):
            return
        if standing.reason != IN_ORDER:
            note, now = f"{ref} is in order again", rfc3339_micro(self._clock.utc())
            standing = self._standing[ref] = _event(hco, ref, IN_ORDER, note, now)
        self._recorder.once(standing)  # at every look, for it may not have been taken the first time

    def _troubled(self, ref: Ref, trouble: Occurrence) -> None:
        """Said while it lasts, as an event fades; at once if the last word on the object was another."""
        standing = self._standing.get(ref)
        self._standing[ref] = trouble
        if standing and standing.reason == trouble.reason:
            self._recorder.again(trouble)
        else:
            self._recorder.anew(trouble)

    def _applied(self, hco: Regarding, asset: str, ref: Ref, verdict: AssetApplied) -> None:
        log.info("applied", asset=asset, object=str(ref), created=verdict.created, drifts=verdict.drifts)
        self.gauges.applied(asset)
        self._written(hco, asset, ref, verdict)
        self._in_order(hco, ref)

    def _written(self, hco: Regarding, asset: str, ref: Ref, verdict: AssetApplied) -> None:
        if verdict.drifts and not verdict.adopted:
            self.gauges.drifted(asset)
            # Counted, not told anew each time: in an edit war, what matters would drown.
            self._recorder.again(_drift(hco, ref, verdict.drifts))
            note = f"{ref} is as wanted again"
            self._recorder.again(_event(hco, ref, "DriftCorrected", note, _short(", ".join(verdict.drifts))))
            return
        done = "created" if verdict.created else "taken over" if verdict.adopted else "applied"
        changed = f", changed: {', '.join(verdict.drifts)}" if verdict.drifts else ""
        self._event(hco, ref, "AssetApplied", f"{asset}: {ref} {done}{changed}", f"{verdict.uid} {verdict.digest}")

    def _waits(self, hco: Regarding, asset: str, ref: Ref, verdict: Waits) -> None:
        why = verdict.why
        if verdict.reason is Held.THROTTLED:
            log.warning("write delayed", asset=asset, object=str(ref), why=why)
            self.gauges.delayed(asset)
            self.gauges.complies(ref, complies=False)
            self._event(hco, ref, "Throttled", f"{ref} has to wait: {why}", why)
            return
        log.debug("asset waits", asset=asset, object=str(ref), reason=verdict.reason, why=why)
        if verdict.reason is Held.EXCLUSIONS_UNREADABLE:  # nothing is kept as it should be, and somebody has to know
            self.gauges.complies(ref, complies=False)
        elif verdict.reason is not Held.BEHIND:
            self.gauges.not_looked_at(ref)

    def _differs(self, hco: Regarding, asset: str, ref: Ref, verdict: Differs) -> None:
        self.gauges.complies(ref, complies=False, only_reported=not verdict.is_paused)
        if verdict.drifts:
            self.gauges.drifted(asset)
            self._troubled(ref, _drift(hco, ref, verdict.drifts))
        elif (standing := self._standing.get(ref)) and standing.reason == DRIFT:
            self._troubled(ref, standing)

    def _event(self, hco: Regarding, ref: Ref, reason: str, note: str, episode: str) -> None:
        self._recorder.once(_event(hco, ref, reason, note, episode))


def _drift(hco: Regarding, ref: Ref, drifts: tuple[str, ...]) -> Occurrence:
    found = ", ".join(drifts)
    note = f"{ref} differs: {found}. To keep a value, list its field in {annotation_keys.IGNORED} on the object"
    return _event(hco, ref, DRIFT, note, _short(found))


def _event(hco: Regarding, ref: Ref, reason: str, note: str, episode: str) -> Occurrence:
    kind: Literal["Normal", "Warning"] = "Normal" if reason in NORMAL else "Warning"
    action = f"{reason} {ref.kind.name}/{ref.key}"
    return Occurrence(hco, kind, reason, action[:128], note, episode, Regarding(ref, "", ""))


def _short(text: str) -> str:
    return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()
