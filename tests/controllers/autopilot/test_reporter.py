"""What is told of an asset, as long as it lasts and when it ends; whoever reads the events knows how the asset is."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress

import msgspec
import pytest
from prometheus_client import CollectorRegistry

from tests.audit import AuditLog
from tests.runtime.clocks import ManualClock
from virt_steward.catalog.load import Catalog
from virt_steward.controllers.autopilot.annotation_keys import DriftMode
from virt_steward.controllers.autopilot.compliance import ComplianceReached
from virt_steward.controllers.autopilot.decide import AssetDecision, Wanted
from virt_steward.controllers.autopilot.live_summary import LiveSummary
from virt_steward.controllers.autopilot.metrics import AutopilotMetrics
from virt_steward.controllers.autopilot.overrides.mask import NO_MASK
from virt_steward.controllers.autopilot.reporter import AutopilotReporter
from virt_steward.controllers.autopilot.rollouts.policy import RolloutPolicy
from virt_steward.controllers.autopilot.verdicts import (
    AssetApplied,
    AssetDiffers,
    AssetFailed,
    AssetInSync,
    FailureReason,
    Verdict,
)
from virt_steward.insight.activity import EventRecord
from virt_steward.insight.assets.state import state_of
from virt_steward.kube.client import Client, Selection
from virt_steward.kube.events import EVENT, Recorder
from virt_steward.objects.identity import Key, Kind, Ref, Regarding, ref_of
from virt_steward.objects.meta import Meta
from virt_steward.ssa.drift_entries import FieldDrift

REF = Ref(Kind("g", "Thing"), Key("", "one"))
LIVE = LiveSummary(Meta("one"), {}, {}, b"", "")

REFUSED = AssetFailed(FailureReason.APPLY, "a webhook denied the request")
WRITTEN = AssetApplied(created=False, adopted=False, drifts=(), uid="1", digest="2")
DRIFTED = AssetDiffers((FieldDrift("/spec/mode", ("editor",)),), is_paused=False)
STILL_DRIFTED = AssetDiffers((), is_paused=False)

PASS = 300.0
HOUR = 3600.0


class Valve:
    """Lets events pass while it is open."""

    is_open = True

    def allows(self, _source: str) -> bool:
        return self.is_open


class Tower:
    """A reporter at work, and whoever reads its events."""

    def __init__(self, client: Client, hco: Regarding, catalog: Catalog) -> None:
        self.clock = ManualClock()
        self.valve = Valve()
        self.recorder = Recorder(client, "autopilot", "pod-1", limiter=self.valve, clock=self.clock.utc)
        self._reporter = AutopilotReporter(self.recorder, AutopilotMetrics(CollectorRegistry()), self.clock)
        self._client = client
        self._hco = hco
        self._asset = catalog.assets[0]

    async def tell(self, verdict: Verdict, after: float = 1.0) -> None:
        await self.clock.advance(after)
        self._reporter.report_verdict(self._hco, self._asset.name, REF, verdict)
        await self.recorder.flush(10)

    async def succeed(self, reached: ComplianceReached, after: float = 1.0) -> None:
        await self.clock.advance(after)
        self._reporter.report_compliance(self._hco, reached)
        await self.recorder.flush(10)

    async def events(self) -> list[EventRecord]:
        found = await self._client.list(EVENT, Selection(self._hco.ref.key.namespace))
        return [msgspec.convert(one, EventRecord, strict=False) for one in found]

    async def reasons(self) -> list[str]:
        return sorted(one.reason for one in await self.events())

    async def expire(self) -> None:
        """Delete what the server would have by now: an event fades an hour after its last change."""
        for one in await self.events():
            if (self.clock.utc() - one.at).total_seconds() >= HOUR:
                await self._client.delete(Ref(EVENT, one.metadata.key))

    async def word(self, mode: DriftMode = DriftMode.ENFORCE) -> str:
        decision = AssetDecision(Wanted({}, NO_MASK, mode, is_paused=False, rollout=RolloutPolicy()), (), (), {}, None)
        return state_of(self._asset, REF, decision, LIVE, await self.events()).word


@pytest.fixture
async def tower(admin: Client, namespace: str, catalog: Catalog) -> AsyncIterator[Tower]:
    metadata = {"name": "hco", "namespace": namespace}
    hco = await admin.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata})
    tower = Tower(admin, Regarding(ref_of(hco), "v1", hco["metadata"]["uid"]), catalog)
    task = asyncio.create_task(tower.recorder.run())
    yield tower
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task


async def test_reporter_repeats_lasting_failure(tower: Tower) -> None:
    for _ in range(30):
        await tower.tell(REFUSED, after=PASS)
        await tower.expire()
        assert await tower.word() == "Fails"
    [event] = await tower.events()
    assert event.times == 30


async def test_reporter_reports_same_failure_again(tower: Tower) -> None:
    await tower.tell(REFUSED)
    await tower.tell(WRITTEN)
    assert await tower.word() == "In place"
    await tower.tell(REFUSED)
    assert await tower.word() == "Fails"
    await tower.tell(WRITTEN)
    assert await tower.word() == "In place", "though it was written in the same way before"


async def test_reporter_repeats_lasting_drift(tower: Tower) -> None:
    await tower.tell(DRIFTED)
    for _ in range(30):
        await tower.tell(STILL_DRIFTED, after=PASS)
        await tower.expire()
        assert await tower.word(DriftMode.REPORT) == "Differs"
    await tower.tell(AssetInSync())
    assert await tower.word(DriftMode.REPORT) == "In place"
    await tower.tell(DRIFTED)
    assert await tower.word(DriftMode.REPORT) == "Differs", "at once, though it was told a moment ago"
    assert await tower.reasons() == ["AssetInOrder", "DriftDetected"]


async def test_reporter_reports_recovery_once(tower: Tower, audit_log: AuditLog) -> None:
    await tower.tell(AssetInSync())
    assert await tower.reasons() == []
    await tower.tell(REFUSED)
    await tower.tell(AssetInSync())
    assert await tower.reasons() == ["ApplyFailed", "AssetInOrder"]
    mark = audit_log.mark()
    for _ in range(3):
        await tower.tell(AssetInSync(), after=PASS)
    assert [one.uri for one in audit_log.since(mark) if one.is_write and one.resource == "events"] == []


async def test_reporter_retries_recovery_event(tower: Tower) -> None:
    await tower.tell(REFUSED)
    tower.valve.is_open = False
    await tower.tell(AssetInSync())
    assert await tower.word() == "Fails"
    tower.valve.is_open = True
    await tower.tell(AssetInSync())
    assert await tower.word() == "In place"


async def test_reporter_retries_compliance_event(tower: Tower, audit_log: AuditLog) -> None:
    reached = ComplianceReached(2, 3, tower.clock.utc())
    tower.valve.is_open = False
    await tower.succeed(reached)
    assert await tower.reasons() == []
    tower.valve.is_open = True
    await tower.succeed(reached, after=PASS)
    [event] = await tower.events()
    assert event.note.endswith("the others are not requested, or their operators are not installed")
    mark = audit_log.mark()
    for _ in range(3):
        await tower.succeed(reached, after=PASS)
    assert [one.uri for one in audit_log.since(mark) if one.is_write and one.resource == "events"] == []


async def test_reporter_reports_compliance_per_episode(tower: Tower) -> None:
    await tower.succeed(ComplianceReached(2, 3, tower.clock.utc()))
    await tower.succeed(ComplianceReached(2, 3, tower.clock.utc()))
    assert await tower.reasons() == ["ReconcileSucceeded", "ReconcileSucceeded"]
