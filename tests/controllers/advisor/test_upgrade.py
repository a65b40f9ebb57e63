"""The advisor on what version 0.1 has left: nothing is lost, and nothing is written before somebody acts."""

from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass

import msgspec
import pytest

from tests.audit import AuditLog, Mark
from tests.controllers.advisor.conftest import NEEDED
from tests.controllers.advisor.process import Start
from tests.controllers.advisor.rig import Advisor, AdvisorRig, a_descheduler, advising
from tests.controllers.approver.process import home_of
from tests.eventually import eventually
from tests.grants import Account
from tests.otheroperator import OtherOperator
from tests.recordings import V01, recording, restore
from virt_steward.controllers.advisor.observation import VirtPlatformConfig
from virt_steward.controllers.advisor.profiles.load_aware_rebalancing import DESCHEDULER
from virt_steward.controllers.advisor.records import name_of_record
from virt_steward.kube.client import Object
from virt_steward.objects.corekinds import CONFIG_MAP
from virt_steward.objects.identity import Key, Ref
from virt_steward.plans.fingerprint import fields_hash
from virt_steward_demo.local.controlplane import ControlPlane
from virt_steward_demo.simulation.faults import pause_pool, resume_pool
from virt_steward_demo.simulation.kinds import NAMES
from virt_steward_demo.simulation.platform import PlatformShape

OWN = ("virtplatformconfigs", "configmaps", "events", "leases")
"""What the advisor writes about itself: statuses, its records, events, and its Lease."""
KEPT = ("phase", "history", "preImage", "governed")
"""What must survive of a status."""
HOME = "virt-steward"
"""The namespace of the recorded installation."""


@pytest.fixture
def shape() -> PlatformShape:
    others = tuple(name for name in NAMES if name not in NEEDED)
    return PlatformShape(workers=1, pace=0.01, machines_per_worker=0, without=others)


def apply_interval(objects: list[Object], interval: int) -> None:
    """As if version 0.1 had planned and applied another interval than this version plans."""
    [status] = [one["status"] for one in objects if one["kind"] == "VirtPlatformConfig"]
    [target] = [one for one in objects if one["kind"] == "KubeDescheduler"]
    item, governed = status["items"][1], status["governed"][1]
    for obj in (item["desiredState"], target):
        obj["spec"]["deschedulingIntervalSeconds"] = interval
    item["plannedHash"] = governed["hash"] = fields_hash(target, item["managedFields"])


@dataclass(slots=True)
class Upgrade:
    """An admin who replaces version 0.1."""

    rig: AdvisorRig
    control_plane: ControlPlane
    account: Account
    audit_log: AuditLog
    since: Mark

    @property
    def home(self) -> str:
        return home_of(self.account)

    async def restore(self, state: str, *, interval: int = 0) -> Object:
        """Restore a recorded state, or one with another interval; the answer is the status that version 0.1 wrote."""
        objects = recording(f"advisor-{state}", folder=V01)
        if interval:
            apply_interval(objects, interval)
        for obj in objects:
            if obj["metadata"].get("namespace") == HOME:
                obj["metadata"]["namespace"] = self.home
        await restore(self.rig.client, objects)
        self.since = self.audit_log.mark()
        status: Object = (await self.rig.config())["status"]
        return status

    def advising(self) -> AbstractAsyncContextManager[Advisor]:
        return advising(self.control_plane, self.account, version="v0.2.0")

    async def is_recorded(self) -> bool:
        """Whether the advisor has made up its mind on the config."""
        return await eventually(
            lambda: self.rig.exists(Ref(CONFIG_MAP, Key(self.home, name_of_record(self.rig.profile))))
        )

    @property
    def written(self) -> list[str]:
        """What the advisor has written to targets."""
        return [
            f"{one.verb} {one.resource} {one.name}"
            for one in self.audit_log.since(self.since)
            if one.user == self.account.user and one.is_write and "dryRun" not in one.uri and one.resource not in OWN
        ]


@pytest.fixture
async def upgrade(rig: AdvisorRig, control_plane: ControlPlane, account: Account, audit_log: AuditLog) -> Upgrade:
    return Upgrade(rig, control_plane, account, audit_log, audit_log.mark())


@pytest.mark.parametrize(
    ("state", "phase", "reason"),
    [
        ("ignored", "Ignored", "Ignored"),
        ("review", "ReviewRequired", "PlanReady"),
        ("rejected", "ReviewRequired", "PlanReady"),
        ("completed", "Completed", "NoLogicChange"),
        ("with-errors", "CompletedWithErrors", "NoLogicChange"),
        ("drifted", "Drifted", "DriftDetected"),
        ("failed", "Failed", "ItemFailed"),
        ("rollback-review", "ReviewRequired", "RollbackReady"),
        ("rolled-back", "Completed", "RolledBack"),
    ],
)
async def test_upgrade_keeps_phase_and_history(upgrade: Upgrade, state: str, phase: str, reason: str) -> None:
    before = await upgrade.restore(state)
    async with upgrade.advising():
        assert await upgrade.is_recorded()
        assert await upgrade.rig.reaches(phase, reason=reason)
    config = await upgrade.rig.config()  # after the end, since the record is saved before the status is written
    assert [name for name in KEPT if config["status"].get(name) != before.get(name)] == []
    assert msgspec.convert(config, VirtPlatformConfig).is_rejected == (state == "rejected")
    assert upgrade.written == []


async def test_upgrade_offers_what_it_plans_differently(upgrade: Upgrade) -> None:
    before = await upgrade.restore("completed", interval=90)
    async with upgrade.advising() as advisor:

        def looks() -> float:
            return advisor.sample("controller_runtime_reconcile_total", controller="advisor", result="success") or 0.0

        assert await upgrade.rig.reaches("CompletedWithUpgrade", reason="LogicChanged")
        for touch in ("once", "twice"):
            done = looks()
            await upgrade.rig.client.merge_patch(DESCHEDULER, {"metadata": {"labels": {"touched": touch}}})
            assert await eventually(lambda done=done: looks() > done)
        assert (await upgrade.rig.status()).phase == "CompletedWithUpgrade"
    after = (await upgrade.rig.config())["status"]
    assert [after[name] for name in ("history", "preImage", "governed")] == [
        before[name] for name in ("history", "preImage", "governed")
    ]
    assert upgrade.written == []


async def test_upgrade_plans_once_a_prerequisite_is_met(upgrade: Upgrade) -> None:
    assert (await upgrade.restore("prerequisites"))["phase"] == "PrerequisiteFailed"
    async with upgrade.advising():
        assert await upgrade.rig.reaches("ReviewRequired", reason="PlanReady")
    assert upgrade.written == []


async def test_upgrade_rolls_back_what_the_earlier_version_applied(upgrade: Upgrade) -> None:
    rig = upgrade.rig
    await upgrade.restore("completed")
    async with upgrade.advising():
        assert await rig.reaches("Completed", reason="NoLogicChange")
        await rig.ask("Rollback")
        assert await rig.reaches("ReviewRequired", reason="RollbackReady")
        assert upgrade.written == []
        await rig.annotate(approved_plan=(await rig.status()).plan_hash, approved_by="ann")
        assert await rig.reaches("Completed", reason="RolledBack", within=30)
    assert not await rig.has_psi()
    restored = (await rig.descheduler())["spec"]
    assert {name: restored.get(name) for name in a_descheduler()["spec"]} == a_descheduler()["spec"]
    assert [one.outcome for one in (await rig.status()).history] == ["Completed", "Completed"]


async def test_upgrade_goes_on_with_an_approved_execution(upgrade: Upgrade) -> None:
    rig = upgrade.rig
    await pause_pool(rig.client, "worker")
    await upgrade.restore("in-progress")
    async with upgrade.advising():
        assert await upgrade.is_recorded()
        assert await rig.says("enable-psi-metrics", "paused")
        assert upgrade.written == []
        await resume_pool(rig.client, "worker")
        assert await rig.reaches("Completed", within=30)
    [executed] = (await rig.status()).history
    assert (executed.by, executed.comment) == ("admin", "change 42")
    assert {one.split()[2] for one in upgrade.written} == {DESCHEDULER.key.name}


async def test_upgrade_takes_over_the_lease_of_a_stopped_process_only(upgrade: Upgrade, start: Start) -> None:
    await upgrade.restore("review")
    [lease] = [one for one in recording("advisor-completed", folder=V01) if one["kind"] == "Lease"]
    lease["metadata"]["namespace"] = upgrade.home
    earlier = OtherOperator(upgrade.rig.client, Key(upgrade.home, lease["metadata"]["name"]))
    await restore(upgrade.rig.client, [lease])
    with start("--lease-duration=4", "--lease-retry=0.1") as advisor:
        async with earlier.running():
            assert await eventually(lambda: advisor.said("watch settled"))
            assert not advisor.said("leading")
        assert await eventually(lambda: advisor.said("leading"), within=30)
        assert await upgrade.is_recorded()
    await earlier.delete()
    assert upgrade.written == []
