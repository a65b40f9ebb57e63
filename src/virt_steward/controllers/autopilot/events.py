"""The events of the autopilot: all are on the HyperConverged, and related to the object that they are about."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Literal

from virt_steward.controllers.autopilot import annotation_keys
from virt_steward.controllers.autopilot.edit_wars import OTHER_INSTANCE
from virt_steward.controllers.autopilot.rollouts.policy import REBOOTING
from virt_steward.kube.events import Occurrence
from virt_steward.objects.identity import Regarding

if TYPE_CHECKING:
    from virt_steward.controllers.autopilot.live_summary import LiveSummary
    from virt_steward.objects.identity import Ref
    from virt_steward.ssa.drift_entries import FieldDrift

DRIFT, IN_SYNC = "DriftDetected", "AssetInOrder"
STAGED, RELEASED, OVERDUE = "MachineConfigUpdateStaged", "MachineConfigUpdateReleased", "MachineConfigUpdateOverdue"
TAKEOVER_STAGED, TAKEOVER_RELEASED = "TakeoverStaged", "TakeoverReleased"
"""The same of changes that reboot no node."""
NORMAL = frozenset(
    (
        "AssetApplied",
        IN_SYNC,
        "DriftCorrected",
        "PatchApplied",
        "TombstoneDeleted",
        "UnmanagedMode",
        "GovernedByAdvisor",
        "OptOutDeleted",
        "OptOutSkipped",
        STAGED,
        RELEASED,
        TAKEOVER_STAGED,
        TAKEOVER_RELEASED,
        "NotInCatalog",
    )
)
"""Reasons of events that need no action; all others are warnings."""
MOST_FIELDS = 10
"""Changed fields that an event names."""


def staged_reason(ref: Ref) -> str:
    return STAGED if ref.kind in REBOOTING else TAKEOVER_STAGED


def released_reason(ref: Ref) -> str:
    return RELEASED if ref.kind in REBOOTING else TAKEOVER_RELEASED


def named_fields(fields: tuple[str, ...]) -> str:
    left_out = len(fields) - MOST_FIELDS
    return ", ".join(fields[:MOST_FIELDS]) + (f" and {left_out} more" if left_out > 0 else "")


def pause_note(ref: Ref, live: LiveSummary) -> str:
    if live.pause_cause == OTHER_INSTANCE:
        return f"{ref} is paused: {OTHER_INSTANCE}. Stop the other one, then remove {annotation_keys.PAUSED} to resume"
    return (
        f"another client keeps changing {ref}, so it is paused. Find out which, then remove "
        f"{annotation_keys.PAUSED} to resume, or list the field in {annotation_keys.IGNORED}"
    )


def drift_event(hco: Regarding, ref: Ref, drifts: tuple[FieldDrift, ...]) -> Occurrence:
    """An event for each set of fields and authors: an author who changes a value again and again is counted on one."""
    hint = f"to keep a value, list its field in {annotation_keys.IGNORED} on the object"
    note = f"{ref} differs ({hint}): {named_fields(tuple(map(str, drifts)))}"
    return asset_event(hco, ref, DRIFT, note, _episode(drifts))


def corrected_event(hco: Regarding, ref: Ref, drifts: tuple[FieldDrift, ...]) -> Occurrence:
    """Which fields were corrected; the event of the drift has their values."""
    note = f"{ref} is in sync again; corrected: {named_fields(tuple(drift.cause for drift in drifts))}"
    return asset_event(hco, ref, "DriftCorrected", note, _episode(drifts))


def _episode(drifts: tuple[FieldDrift, ...]) -> str:
    return short_hash(", ".join(drift.cause for drift in drifts))


def asset_event(hco: Regarding, ref: Ref, reason: str, note: str, episode: str) -> Occurrence:
    kind: Literal["Normal", "Warning"] = "Normal" if reason in NORMAL else "Warning"
    action = f"{reason} {ref.kind.name}/{ref.key}"
    return Occurrence(hco, kind, reason, action[:128], note, episode, Regarding(ref, "", ""))


def short_hash(text: str) -> str:
    return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()
