"""What people are notified of: rollouts that wait, failures, repeated drift, pauses; and the end of each."""

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import Any

import pytest
from prometheus_client import CollectorRegistry

from tests.runtime.clocks import ManualClock, settle
from tests.runtime.test_matters import Outbox, Remembered
from virt_steward.catalog.load import Catalog
from virt_steward.controllers.autopilot.annotation_keys import PAUSED
from virt_steward.controllers.autopilot.live_summary import LiveSummary
from virt_steward.controllers.autopilot.metrics import AutopilotMetrics
from virt_steward.controllers.autopilot.notifications import WITHIN, notification_rules
from virt_steward.controllers.autopilot.options import HCO
from virt_steward.controllers.autopilot.reporter import AutopilotReporter
from virt_steward.controllers.autopilot.rollouts.staged import StagedChange
from virt_steward.controllers.autopilot.verdicts import (
    AssetApplied,
    AssetDiffers,
    AssetFailed,
    AssetInSync,
    AssetSkipped,
    AssetStaged,
    FailureReason,
    SkipReason,
    Verdict,
)
from virt_steward.controllers.autopilot.watches import ref_of_asset
from virt_steward.kube.events import Recorder
from virt_steward.objects.identity import Ref, Regarding
from virt_steward.objects.meta import Meta
from virt_steward.platform.hco import HYPERCONVERGED
from virt_steward.platform.machineconfigs import MACHINE_CONFIG
from virt_steward.runtime.matters import MatterNotifications
from virt_steward.ssa.drift_entries import FieldDrift

HYPER = Regarding(Ref(HYPERCONVERGED, HCO), "hco.kubevirt.io/v1", "uid-hco")
DRIFT = FieldDrift("/spec/mode", ("kubectl-edit",))
FAILED = AssetFailed(FailureReason.APPLY, "a webhook denied the request")
FAILED_OTHERWISE = AssetFailed(FailureReason.APPLY, "another webhook denied it")
NOT_RENDERED = AssetFailed(FailureReason.RENDER, "no storage class")
IN_SYNC = AssetInSync()
CORRECTED = AssetApplied(created=False, adopted=False, drifts=(DRIFT,), uid="1", digest="2")
RELEASED = AssetApplied(created=False, adopted=False, drifts=(), uid="1", digest="3", released="pool worker updates")
DIFFERS = AssetDiffers((DRIFT,), is_paused=False)
NOT_WANTED = AssetSkipped(SkipReason.EXCLUDED, "it is excluded")
NOT_KNOWN = AssetSkipped(SkipReason.INPUTS_UNKNOWN, "nodes cannot be read")


class NoEvents:
    """Events go nowhere."""

    def allows(self, _source: str) -> bool:
        return False


class Tower:
    """A reporter whose occurrences are notified."""

    def __init__(self, catalog: Catalog) -> None:
        self.clock, self.outbox = ManualClock(), Outbox()
        rules = notification_rules(catalog, HCO)
        self.matters = MatterNotifications(
            "autopilot", "team", self.outbox, rules=rules, memory=Remembered(), clock=self.clock
        )
        nobody: Any = None
        recorder = Recorder(
            nobody, "autopilot", "pod-1", limiter=NoEvents(), clock=self.clock.utc, listener=self.matters.handle
        )
        self.reporter = AutopilotReporter(recorder, AutopilotMetrics(CollectorRegistry()), self.clock)
        self.asset = next(one for one in catalog.assets if one.object.kind == MACHINE_CONFIG)
        self.ref = ref_of_asset(self.asset, HCO)

    def report(self, verdict: Verdict) -> None:
        self.reporter.report_verdict(HYPER, self.asset.name, self.ref, verdict)

    def pause(self, paused_at: str) -> None:
        annotations = {PAUSED: "true"} if paused_at else {}
        live = LiveSummary(Meta("one"), annotations, {}, b"", paused_at)
        self.reporter.report_pause(HYPER, self.ref, live)


def a_staged(number: int = 1, *, overdue: bool = False) -> AssetStaged:
    change = StagedChange(datetime(2030, 1, number, tzinfo=UTC), f"hash-{number}", ("worker",), live_hash="live")
    return AssetStaged("pool worker is idle", change, changes=(".spec.config",), is_overdue=overdue)


@pytest.fixture
async def tower(catalog: Catalog) -> AsyncIterator[Tower]:
    tower = Tower(catalog)
    task = asyncio.create_task(tower.matters.run())
    yield tower
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


async def told(tower: Tower) -> list[str]:
    await settle()
    return [f"{one.data['state']} {one.data['reason']}" for one in tower.outbox.sent]


@pytest.mark.parametrize(
    ("verdicts", "expected"),
    [
        pytest.param((IN_SYNC, IN_SYNC), [], id="in-sync"),
        pytest.param((FAILED, FAILED_OTHERWISE), ["open ApplyFailed"], id="failure-in-other-words"),
        pytest.param((FAILED, NOT_RENDERED), ["open ApplyFailed", "open RenderFailed"], id="two-failures"),
        pytest.param((FAILED, IN_SYNC, IN_SYNC), ["open ApplyFailed", "resolved AssetInOrder"], id="failure-ends"),
        pytest.param((FAILED, NOT_WANTED), ["open ApplyFailed", "resolved NotManaged"], id="no-longer-wanted"),
        pytest.param((FAILED, NOT_KNOWN), ["open ApplyFailed"], id="not-known-any-more"),
        pytest.param((a_staged(), a_staged()), ["open MachineConfigUpdateStaged"], id="staged"),
        pytest.param(
            (a_staged(), a_staged(2)),
            ["open MachineConfigUpdateStaged", "open MachineConfigUpdateStaged"],
            id="staged-anew",
        ),
        pytest.param(
            (a_staged(), a_staged(overdue=True), a_staged(overdue=True)),
            ["open MachineConfigUpdateStaged", "open MachineConfigUpdateOverdue"],
            id="overdue",
        ),
        pytest.param(
            (a_staged(), RELEASED, IN_SYNC),
            ["open MachineConfigUpdateStaged", "resolved MachineConfigUpdateReleased"],
            id="released",
        ),
        pytest.param(
            (a_staged(), IN_SYNC), ["open MachineConfigUpdateStaged", "resolved AssetInOrder"], id="withdrawn"
        ),
        pytest.param((CORRECTED, CORRECTED), [], id="corrected-twice"),
        pytest.param((CORRECTED,) * 5, ["open DriftCorrectedRepeatedly"], id="corrected-repeatedly"),
        pytest.param((DIFFERS, DIFFERS, IN_SYNC), ["open DriftReported", "resolved AssetInOrder"], id="reported-drift"),
    ],
)
async def test_autopilot_notifies_once_per_matter_and_state(
    tower: Tower, verdicts: tuple[Verdict, ...], expected: list[str]
) -> None:
    for verdict in verdicts:
        tower.report(verdict)
    assert await told(tower) == expected
    assert {one.page for one in tower.outbox.sent} <= {f"/autopilot/{tower.asset.name}"}


async def test_autopilot_notifies_of_repeated_drift_until_it_has_stopped_for_an_hour(tower: Tower) -> None:
    for _ in range(3):
        await tower.clock.advance(WITHIN / 3)
        tower.report(CORRECTED)
    assert await told(tower) == ["open DriftCorrectedRepeatedly"]
    tower.report(IN_SYNC)
    assert len(await told(tower)) == 1
    await tower.clock.advance(WITHIN + 1)
    tower.report(IN_SYNC)
    assert await told(tower) == ["open DriftCorrectedRepeatedly", "resolved DriftStopped"]


async def test_autopilot_notifies_of_takeovers_that_reboot_no_node(tower: Tower, catalog: Catalog) -> None:
    tower.ref = next(ref_of_asset(one, HCO) for one in catalog.assets if one.object.kind == HYPERCONVERGED)
    for verdict in (a_staged(), RELEASED):
        tower.report(verdict)
    assert await told(tower) == ["open TakeoverStaged", "resolved TakeoverReleased"]


async def test_autopilot_does_not_notify_of_rare_drift(tower: Tower) -> None:
    for _ in range(10):
        await tower.clock.advance(WITHIN)
        tower.report(CORRECTED)
    assert await told(tower) == []


async def test_autopilot_notifies_of_each_pause_and_its_end(tower: Tower) -> None:
    for paused_at in ("", "12:00", "12:00", "", "", "13:00"):
        tower.pause(paused_at)
    assert await told(tower) == ["open ThrashingDetected", "resolved Resumed", "open ThrashingDetected"]
