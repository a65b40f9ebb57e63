"""How an asset is, in a word."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from virt_steward.catalog.load import load
from virt_steward.controllers.autopilot.annotation_keys import DriftMode
from virt_steward.controllers.autopilot.decide import AssetDecision, Wanted
from virt_steward.controllers.autopilot.edit_wars import OTHER_INSTANCE
from virt_steward.controllers.autopilot.live_summary import LiveSummary
from virt_steward.controllers.autopilot.overrides.mask import NO_MASK
from virt_steward.controllers.autopilot.rollouts.policy import RolloutPolicy
from virt_steward.controllers.autopilot.rollouts.staged import StagedChange
from virt_steward.controllers.autopilot.verdicts import (
    AssetFailed,
    AssetPending,
    AssetSkipped,
    FailureReason,
    PendingReason,
    SkipReason,
)
from virt_steward.insight.activity import EventRecord
from virt_steward.insight.assets.staged import StagedWait
from virt_steward.insight.assets.state import AssetState, state_of
from virt_steward.insight.inbox import of_assets
from virt_steward.objects.identity import Key, Kind, Ref
from virt_steward.objects.meta import Meta
from virt_steward.platform.hco import PREFIX

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
ASSET = load().assets[0]
REF = Ref(Kind("g", "Thing"), Key("", "one"))
ENFORCED = Wanted({}, NO_MASK, DriftMode.ENFORCE, is_paused=False, rollout=RolloutPolicy())
REPORTED = Wanted({}, NO_MASK, DriftMode.REPORT, is_paused=False, rollout=RolloutPolicy())


def live_summary(paused_at: str = "", **annotations: str) -> LiveSummary:
    known = {f"{PREFIX}{name.replace('_', '-')}": value for name, value in annotations.items()}
    return LiveSummary(Meta("one"), known, {}, b"", paused_at)


def told(*reasons: str) -> list[EventRecord]:
    """One after the other."""
    return [
        EventRecord(Meta(reason), reason=reason, note=f"note of {reason}", event_time=NOON + timedelta(minutes=minute))
        for minute, reason in enumerate(reasons)
    ]


WAIT = StagedWait((StagedChange(NOON, "d", ("worker",), asset=ASSET.name),), "nodes would reboot")
DELETION = StagedWait(WAIT.changes, "it is obsolete", (REF,))


def a_state(
    outcome: Any, live: LiveSummary | None = None, *events: str, staged: StagedWait | None = None
) -> AssetState:
    overrides = live.annotations if live else {}
    decision = AssetDecision(outcome, (), (), overrides, None)
    return state_of(ASSET, REF, decision, live, told(*events), staged)


@pytest.mark.parametrize(
    ("state", "word", "why"),
    [
        (a_state(AssetSkipped(SkipReason.CONDITIONS, "no swap")), "Left alone", "no swap"),
        (a_state(AssetPending(PendingReason.NO_NAMESPACE, "no namespace")), "Waits", "no namespace"),
        (a_state(AssetFailed(FailureReason.RENDER, "bad template")), "Fails", "bad template"),
        (a_state(ENFORCED), "Not there yet", "has not created it"),
        (a_state(ENFORCED, live_summary()), "In place", "as the catalog wants it"),
        (a_state(ENFORCED, live_summary(patch="[]")), "In place", "with overrides: patch"),
        (a_state(ENFORCED, live_summary(created_uid="1")), "In place", "as the catalog wants it"),
        (a_state(ENFORCED, live_summary(), "DriftDetected"), "In place", "as the catalog wants it"),
        (a_state(REPORTED, live_summary(), "DriftDetected"), "Differs", "note of DriftDetected"),
        (a_state(REPORTED, live_summary(), "DriftDetected", "DriftCorrected"), "In place", ""),
        (a_state(ENFORCED, live_summary(), "ApplyFailed"), "Fails", "note of ApplyFailed"),
        (a_state(ENFORCED, live_summary(), "ApplyFailed", "AssetApplied"), "In place", ""),
        (a_state(ENFORCED, live_summary(), "ApplyFailed", "AssetInOrder"), "In place", ""),
        (a_state(REPORTED, live_summary(), "DriftDetected", "AssetInOrder"), "In place", ""),
        (a_state(REPORTED, live_summary(), "AssetInOrder", "DriftDetected"), "Differs", "note of DriftDetected"),
        (a_state(ENFORCED, live_summary(), staged=WAIT), "Staged", "since 2026-03-01T12:00:00Z: nodes would reboot"),
        (a_state(ENFORCED, staged=WAIT), "Staged", "nodes would reboot"),
        (a_state(ENFORCED, live_summary(), "ApplyFailed", staged=WAIT), "Fails", "note of ApplyFailed"),
        (a_state(ENFORCED, None, "ApplyFailed", "MachineConfigUpdateStaged", staged=WAIT), "Staged", "would reboot"),
        (a_state(ENFORCED, None, "ApplyFailed", "TakeoverStaged", staged=WAIT), "Staged", "would reboot"),
        (a_state(ENFORCED, live_summary(), "TakeoverStaged", "ApplyFailed"), "Fails", "note of ApplyFailed"),
        (a_state(ENFORCED, live_summary(), "RenderFailed"), "In place", "as the catalog wants it"),
        (a_state(AssetSkipped(SkipReason.CONDITIONS, "no swap"), staged=WAIT), "Left alone", "no swap"),
        (a_state(AssetSkipped(SkipReason.CONDITIONS, "no swap"), staged=DELETION), "Staged", "it is obsolete"),
        (
            a_state(
                ENFORCED,
                live_summary("12:00", reconcile_paused="true", reconcile_paused_reason=OTHER_INSTANCE),
            ),
            "Paused",
            "another instance writes as virt-platform-autopilot",
        ),
        (
            a_state(ENFORCED, live_summary("12:00", reconcile_paused="true")),
            "Paused",
            "another client kept changing it",
        ),
        (a_state(ENFORCED, live_summary(reconcile_paused="true")), "Paused", "a user paused it"),
    ],
    ids=lambda one: "" if isinstance(one, AssetState) else str(one).replace(" ", "-"),
)
def test_an_asset_is(state: AssetState, word: str, why: str) -> None:
    assert state.word == word
    assert why in state.why


def test_only_what_a_person_can_settle_is_in_the_inbox() -> None:
    war, chosen = live_summary("12:00", reconcile_paused="true"), live_summary(reconcile_paused="true")
    states = [
        a_state(ENFORCED, war),
        a_state(ENFORCED, chosen),
        a_state(ENFORCED, live_summary()),
        a_state(AssetFailed(FailureReason.RENDER, "bad template")),
        a_state(REPORTED, live_summary(), "DriftDetected"),
        a_state(ENFORCED, live_summary(), staged=WAIT),
        a_state(AssetSkipped(SkipReason.CONDITIONS, "no swap")),
    ]
    assert [one.tag for one in of_assets(states)] == ["Paused", "Fails", "Differs", "Staged"]
