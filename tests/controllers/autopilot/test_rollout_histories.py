"""Random histories of one staged object: every write has a cause that a person would name."""

import asyncio
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.runtime.clocks import ManualClock
from virt_steward.controllers.autopilot.options import HCO
from virt_steward.controllers.autopilot.rollouts.ledger import StagingLedger
from virt_steward.controllers.autopilot.rollouts.policy import RolloutMode, RolloutPolicy
from virt_steward.controllers.autopilot.rollouts.staged import Occasion, StagedChange, StagingRecord
from virt_steward.controllers.autopilot.rollouts.stager import LiveFacts, RolloutContext, Stager
from virt_steward.controllers.autopilot.rollouts.staging import WriteNow
from virt_steward.kube.client import ApplyResult
from virt_steward.objects.identity import Key, Ref, Regarding, ref_of
from virt_steward.platform.hco import HYPERCONVERGED
from virt_steward.platform.machineconfigs import MACHINE_CONFIG, LabelledMeta, PoolSelector
from virt_steward.platform.pools import Pool, PoolCondition, PoolSpec, PoolStatus
from virt_steward.runtime.store import Store

REGARDING = Regarding(Ref(HYPERCONVERGED, HCO), "hco.kubevirt.io/v1", "u")
LABELS = {"role": "worker"}
STEPS = ("drift", "want", "release", "rollout", "rolled", "pause", "resume", "restart", "pass")


class Server:
    """Keeps the ConfigMap, and shows it at once."""

    def __init__(self) -> None:
        self.store: Store[StagingRecord] = Store({})
        self.version = 0
        self.is_late = False
        self.store.version_of[""] = lambda: self.version

    async def apply(self, obj: Mapping[str, Any], **_: object) -> ApplyResult:
        self.version += 1
        metadata = {**obj["metadata"], "resourceVersion": str(self.version)}
        if not self.is_late:
            self.store.put(msgspec.convert({"metadata": metadata, "data": obj["data"]}, StagingRecord))
        return ApplyResult({"metadata": metadata}, created=False)


@pytest.mark.parametrize(
    ("reached", "is_there", "is_recorded"),
    [
        pytest.param(0, False, True, id="the watch is behind our write"),
        pytest.param(1, True, True, id="the watch shows it"),
        pytest.param(2, False, False, id="somebody has deleted it"),
    ],
)
async def test_deleted_config_map_is_noticed_though_the_watch_told_both_at_once(
    reached: int, is_there: bool, is_recorded: bool
) -> None:
    server = Server()
    client: Any = server
    ledger = StagingLedger(client, server.store, HCO, ManualClock())
    ref = Ref(MACHINE_CONFIG, Key("", "90-a"))
    change = StagedChange(datetime(2030, 1, 1, tzinfo=UTC), "hash", (), "asset", Occasion.UPDATE)
    server.is_late = not is_there
    await ledger.stage(REGARDING, ref, change)
    server.version = reached
    assert ledger.is_recorded(ref, change) is is_recorded


async def test_new_leader_forgets_what_it_knew_when_it_last_led() -> None:
    server = Server()
    client: Any = server
    first, second = (StagingLedger(client, server.store, HCO, ManualClock()) for _ in range(2))
    ref = Ref(MACHINE_CONFIG, Key("", "90-a"))
    change = StagedChange(datetime(2030, 1, 1, tzinfo=UTC), "hash", (), "asset", Occasion.UPDATE)
    await first.stage(REGARDING, ref, change)
    first.note_in_sync(ref)
    first.note_compared(ref)
    await second.drop(REGARDING, (ref,))
    assert first.find(ref) == change
    first.begin()
    assert (first.find(ref), first.was_in_sync(ref), first.was_compared(ref)) == (None, False, False)
    server.is_late = True
    await first.stage(REGARDING, ref, change)
    server.version -= 1
    first.begin()
    assert first.find(ref) == change, "the watch is behind its own write"


class History:
    """One MachineConfig, its pool, a person, and the autopilot."""

    def __init__(self, mode: RolloutMode) -> None:
        self.policy = RolloutPolicy(mode)
        self.server = Server()
        self.clock = ManualClock()
        self.now = datetime(2030, 1, 1, tzinfo=UTC)
        self.wanted, self.live = 0, 0
        self.is_updating = self.is_paused = False
        self.releases: set[str] = set()
        self.consent: tuple[int, int] | None = None
        """What the person has agreed to: from which content to which."""
        self.restart()

    def restart(self) -> None:
        client: Any = self.server
        self.stager = Stager(StagingLedger(client, self.server.store, HCO, self.clock))

    def step(self, name: str) -> None:
        self.now += timedelta(milliseconds=1)
        match name:
            case "drift":
                self.live += 1000
            case "want":
                self.wanted += 1
            case "release":
                if change := self.stager.ledger.find(ref_of(self.intent)):
                    self.releases.add(change.id)
                    self.consent = (self.live, self.wanted)
            case "rollout":
                self.is_updating = not self.is_paused
            case "rolled":
                self.is_updating = False
            case "pause":
                self.is_paused, self.is_updating = True, False
            case "resume":
                self.is_paused = False
            case "restart":
                self.restart()

    @property
    def intent(self) -> dict[str, Any]:
        metadata = {"name": "90-worker-swap-online", "labels": LABELS}
        config = {"apiVersion": "machineconfiguration.openshift.io/v1", "kind": "MachineConfig", "metadata": metadata}
        return {**config, "spec": {"number": self.wanted}}

    @property
    def pool(self) -> Pool:
        conditions = (PoolCondition("Updating", "True" if self.is_updating else "False"),)
        spec = PoolSpec(machine_config_selector=PoolSelector(LABELS), paused=self.is_paused)
        return Pool(LabelledMeta(name="worker"), spec, PoolStatus(conditions=conditions))

    async def reconcile(self) -> bool:
        """As `converge` does; returns whether it has written."""
        ledger, ref = self.stager.ledger, ref_of(self.intent)
        if self.live == self.wanted:
            await ledger.drop(REGARDING, (ref,))
            return False
        releases = frozenset(self.releases)
        context = RolloutContext("swap-enable", REGARDING, self.policy, (self.pool,), releases, all_compared=True)
        facts = LiveFacts(Occasion.UPDATE, str(self.live), LABELS)
        staging = self.stager.judge(context, self.intent, facts, self.now)
        if not isinstance(staging.verdict, WriteNow):
            await ledger.stage(REGARDING, ref, staging.change)
            return False
        self.live = self.wanted
        await ledger.drop(REGARDING, (ref,))
        return True


@settings(max_examples=500, deadline=None, database=None)
@given(
    mode=st.sampled_from([RolloutMode.COALESCE, RolloutMode.APPROVE]),
    steps=st.lists(st.sampled_from(STEPS), max_size=25),
)
def test_no_write_without_a_rollout_or_consent(mode: RolloutMode, steps: list[str]) -> None:
    async def run() -> None:
        history = History(mode)
        for name in steps:
            history.step(name)
            change = (history.live, history.wanted)
            rolls = history.is_updating and mode is RolloutMode.COALESCE
            is_due = change[0] != change[1] and (rolls or history.consent == change)
            written = await history.reconcile()
            assert written == is_due, name
            if written or change[0] == change[1]:
                history.consent = None

    asyncio.run(run())
