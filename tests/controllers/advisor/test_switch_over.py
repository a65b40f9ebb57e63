"""The advisor on what the Go advisor has left: nothing is written before somebody acts, and no leftover stays."""

from collections.abc import AsyncIterator, Iterable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from functools import partial

import msgspec
import pytest

from tests.audit import AuditLog, Mark
from tests.controllers.advisor.conftest import NEEDED, clear_configs
from tests.controllers.advisor.process import Start
from tests.controllers.advisor.rig import Advisor, AdvisorRig, advising, observing, the_config
from tests.controllers.approver.process import home_of
from tests.eventually import eventually
from tests.grants import Account
from tests.howtos import Follower
from tests.otheroperator import OtherOperator
from tests.recordings import recording, restore
from virt_steward.apis.profiles import HIGHER_DENSITY, LOAD_AWARE
from virt_steward.controllers.advisor.conditions import ADOPTED
from virt_steward.controllers.advisor.definition import GO_LEASE
from virt_steward.controllers.advisor.options import AdvisorOptions
from virt_steward.controllers.advisor.profiles.load_aware_rebalancing import DESCHEDULER, PSI
from virt_steward.controllers.advisor.profiles.virt_higher_density import SWAP
from virt_steward.insight.plans import explain_plan
from virt_steward.kube.client import Client, Object
from virt_steward.kube.errors import NotFound
from virt_steward.kube.events import EVENT
from virt_steward.objects.identity import Key, Ref, ref_of
from virt_steward.platform.machineconfigs import MACHINE_CONFIG_POOL
from virt_steward.runtime.clock import SystemClock
from virt_steward_demo.local.controlplane import ControlPlane
from virt_steward_demo.simulation.faults import pause_pool, resume_pool
from virt_steward_demo.simulation.kinds import NAMES
from virt_steward_demo.simulation.platform import PlatformShape

COMPLETED, DENSITY = "advisor-load-aware-completed", "advisor-higher-density-completed"
DRIFTED, REVIEW, RUNNING = (f"advisor-load-aware-{state}" for state in ("drifted", "review", "in-progress"))
TARGETS = (PSI, SWAP, DESCHEDULER)
OWN = ("virtplatformconfigs", "configmaps", "events")
"""What the advisor writes about itself: statuses, its records, and events."""

REQUIRED = {"phase", "impactSeverity", "observedGeneration", "conditions"}
REQUIRED_OF_ITEMS = {"name", "targetRef", "impactSeverity", "state"}
REQUIRED_OF_CONDITIONS = {"type", "status", "reason", "message", "lastTransitionTime"}


@pytest.fixture
def shape() -> PlatformShape:
    """HyperConverged as the Go advisor knows it."""
    others = tuple(name for name in NAMES if name not in NEEDED)
    return PlatformShape(workers=1, pace=0.01, hyperconverged=("v1beta1",), machines_per_worker=0, without=others)


@dataclass(slots=True)
class Switch:
    """An admin who switches over on a cluster that a Go advisor has left."""

    rig: AdvisorRig
    control_plane: ControlPlane
    account: Account
    audit_log: AuditLog

    @property
    def client(self) -> Client:
        return self.rig.client

    async def restore(self, name: str, *, is_rolled_out: bool = True, **changes: object) -> Mark:
        """Restore a recording, with changes of the status of its config; the answer marks when that was done."""
        self.rig.profile = HIGHER_DENSITY if name == DENSITY else LOAD_AWARE
        await clear_configs(self.client, home_of(self.account))
        for target in TARGETS:
            if await self.rig.exists(target):
                await self.client.delete(target)
        objects = recording(name)
        for obj in objects:
            if obj["kind"] == "VirtPlatformConfig" and obj["metadata"]["name"] == self.rig.profile:
                obj["status"] |= changes
        await restore(self.client, objects)
        if is_rolled_out:
            assert await eventually(self._is_rolled_out)
        return self.audit_log.mark()

    async def _is_rolled_out(self) -> bool:
        pool = await self.client.get(Ref(MACHINE_CONFIG_POOL, Key("", "worker")))
        wanted = {ref.key.name for ref in (PSI, SWAP) if await self.rig.exists(ref)}
        rendered, status = pool["spec"].get("configuration"), pool.get("status")
        if not rendered or not status:  # its first configuration is still being rendered
            return False
        known = {one["name"] for one in rendered["source"]} & {PSI.key.name, SWAP.key.name}
        is_updated = status["updatedMachineCount"] == status["machineCount"]
        return known == wanted and status["configuration"].get("name") == rendered["name"] and is_updated

    def advising(self) -> AbstractAsyncContextManager[Advisor]:
        return advising(self.control_plane, self.account, version="v0.2.0")

    def written(self, since: Mark) -> list[str]:
        """What the advisor has written to targets."""
        return [
            f"{one.verb} {one.resource} {one.name}"
            for one in self.audit_log.since(since)
            if one.user == self.account.user and one.is_write and "dryRun" not in one.uri and one.resource not in OWN
        ]

    async def is_adopted(self) -> bool:
        async def is_shown() -> bool:
            return await self.rig.condition(ADOPTED) == ("True", "OtherAdvisor")

        return await eventually(is_shown)

    async def take_up(self) -> None:
        """Have the plan of this version reviewed and executed."""
        await self.rig.ask("DryRun")
        assert await self.rig.reaches("ReviewRequired", reason="PlanReady")
        await self.rig.ask("Apply")
        assert await self.rig.reaches("Completed", reason="Applied")
        assert await self.rig.condition(ADOPTED) == ("False", "PlanStarted")


@pytest.fixture
def switch(rig: AdvisorRig, control_plane: ControlPlane, account: Account, audit_log: AuditLog) -> Switch:
    return Switch(rig, control_plane, account, audit_log)


def leftovers(status: Object) -> list[str]:
    """What only the Go advisor writes."""
    text = msgspec.json.encode(status).decode()
    found = [one for one in ("(left out)", "enable-load-aware-descheduling") if one in text]
    is_bare = not status.get("sourceSnapshotHash", "sha256:").startswith("sha256:")
    return [*found, "sourceSnapshotHash"] if is_bare else found


def lacking(status: Object) -> Iterable[str]:
    """What every status of the Go advisor has, and this one has not."""
    yield from REQUIRED - status.keys()
    yield from (name for item in status.get("items", ()) for name in REQUIRED_OF_ITEMS - item.keys())
    yield from (name for one in status["conditions"] for name in REQUIRED_OF_CONDITIONS - one.keys())


CASES = (
    # recording, changes of the status, the phase that it keeps or gets, and the reason
    (COMPLETED, {}, "CompletedWithUpgrade", "LogicChanged"),
    (DENSITY, {}, "CompletedWithUpgrade", "LogicChanged"),
    (DRIFTED, {}, "Drifted", "DriftDetected"),
    (REVIEW, {}, "ReviewRequired", "PlanReady"),
    (RUNNING, {}, "ReviewRequired", "OtherAdvisor"),
    (RUNNING, {"phase": "Failed"}, "Failed", "OtherAdvisor"),
)


async def test_switch_over_writes_nothing_before_somebody_acts(switch: Switch) -> None:
    rig = switch.rig
    for name, changes, phase, reason in CASES:
        since = await switch.restore(name, **changes)
        owners = (await rig.config())["metadata"]["managedFields"]
        assert ("manager", "status") in [(one["manager"], one.get("subresource")) for one in owners]
        async with observing(switch.client, rig.profile) as seen, switch.advising():
            assert await switch.is_adopted(), name
            assert await rig.reaches(phase, reason=reason), (name, await rig.status())
            assert await is_announced(switch), name
            assert switch.written(since) == []
            status = (await rig.config())["status"]
            if phase == "CompletedWithUpgrade":
                assert "Nothing changes until somebody sets action to DryRun" in await rig.message(phase)
                assert [item["state"] for item in status["items"] if item.get("diff")] == ["Pending"]
            assert (leftovers(status), list(lacking(status))) == ([], []), name
            for one in seen[1:]:
                assert leftovers(msgspec.to_builtins(one)) == [], name
            await switch.take_up()
        assert leftovers((await rig.config())["status"]) == []


async def is_announced(switch: Switch) -> bool:
    uid = (await switch.rig.config())["metadata"]["uid"]

    async def has_event() -> bool:
        events = await switch.client.list(EVENT)
        return any(one["reason"] == "Adopted" and one["regarding"].get("uid") == uid for one in events)

    return await eventually(has_event)


async def test_switch_over_explains_and_completes_what_this_version_plans_equally(switch: Switch) -> None:
    since = await switch.restore(COMPLETED)
    found = await explain_plan(switch.client, LOAD_AWARE, AdvisorOptions(), SystemClock().utc())
    (decided,) = [one for one in found.checks if one.decided]
    assert "written by another version of the advisor (v0.1.31), and nothing of that plan is executed" in decided.reason
    same = {"profileCustomizations": {"devActualUtilizationProfile": "PrometheusCPUCombined"}}
    await switch.client.merge_patch(DESCHEDULER, {"spec": same})
    async with switch.advising():
        assert await switch.rig.reaches("Completed", reason="InDesiredState")
    assert switch.written(since) == []


async def test_switch_over_ends_drift_when_it_is_gone(switch: Switch) -> None:
    since = await switch.restore(DRIFTED)
    async with switch.advising():
        assert await switch.is_adopted()
        assert "/spec/deschedulingIntervalSeconds is 300, planned 60" in await switch.rig.message("Drifted")
        await switch.client.merge_patch(DESCHEDULER, {"spec": {"deschedulingIntervalSeconds": 60}})
        assert await switch.rig.reaches("CompletedWithUpgrade")
        await switch.client.merge_patch(DESCHEDULER, {"spec": {"deschedulingIntervalSeconds": 90}})
        assert await switch.rig.reaches("Drifted")
    assert switch.written(since) == []


async def test_switch_over_waits_for_rollout_and_reviews_the_rest(switch: Switch) -> None:
    rig = switch.rig
    await pause_pool(switch.client, "worker")
    since = await switch.restore(RUNNING, is_rolled_out=False)
    async with switch.advising():
        assert await rig.says("enable-psi-metrics", "paused")
        assert (await rig.status()).phase == "InProgress"
        assert leftovers((await rig.config())["status"]) == []
    async with switch.advising():  # the second process goes on by the record of the first
        await resume_pool(switch.client, "worker")
        assert await rig.reaches("ReviewRequired", reason="OtherAdvisor")
        assert switch.written(since) == []
        plan = await rig.status()
        assert [(item.name, item.state) for item in plan.items] == [
            ("enable-psi-metrics", "Completed"),
            ("configure-descheduler", "Pending"),
        ]
        await rig.annotate(approved_plan=plan.plan_hash, approved_by="ann")
        assert await rig.reaches("Completed")
    assert [(one.by, one.outcome) for one in (await rig.status()).history] == [("ann", "Completed")]


async def write_go_status(switch: Switch, **changes: object) -> None:
    """Replace the status by one that a Go advisor has written, as it does: as a whole."""
    [recorded] = [one for one in recording(COMPLETED) if one["metadata"]["name"] == LOAD_AWARE]
    status = {**recorded["status"], **changes}
    operations = [{"op": "replace", "path": "/status", "value": status}]
    await switch.client.json_patch(the_config(), operations, subresource="status")


async def completed_by_ours(switch: Switch) -> None:
    """Go has completed a plan, and then ours has."""
    await switch.restore(COMPLETED)
    async with switch.advising():
        assert await switch.is_adopted()
        await switch.take_up()


async def test_switch_over_back_and_forth_needs_no_cleaning(switch: Switch) -> None:
    """Records of ours stay; the Lease of the Go advisor tells that it ran since."""
    await completed_by_ours(switch)
    executed = await switch.rig.status()
    go_advisor = OtherOperator(switch.client, Key(home_of(switch.account), GO_LEASE))
    await go_advisor.renew()
    try:
        changed = {"deschedulingIntervalSeconds": 120, "profileCustomizations": None}
        await switch.client.merge_patch(DESCHEDULER, {"spec": changed})
        await write_go_status(switch)
        since = switch.audit_log.mark()
        async with switch.advising():  # stands by at first
            assert await switch.is_adopted()
            assert await switch.rig.reaches("CompletedWithUpgrade", reason="LogicChanged")
            status = await switch.rig.status()
            assert (status.executions, status.history) == (executed.executions, executed.history)
            assert switch.written(since) == []
            assert leftovers((await switch.rig.config())["status"]) == []
            await switch.take_up()
        assert len((await switch.rig.status()).history) == 2
    finally:
        await go_advisor.delete()


async def test_switch_over_by_the_howto_and_back(
    switch: Switch, start: Start, control_plane: ControlPlane, installed: list[Object]
) -> None:
    rig, home = switch.rig, home_of(switch.account)
    howto = Follower("switch-from-the-go-advisor", switch.client, control_plane.kubeconfig)
    go_advisor = OtherOperator(switch.client, Key(home, GO_LEASE))
    await switch.restore(COMPLETED)
    found = await howto.kubectl("get virtplatformconfigs")
    assert "Completed" in [one["status"]["phase"] for one in found["items"]]
    checked = await howto.steward("switch-check advisor")
    assert checked.code == 2, checked.stderr
    assert "becomes CompletedWithUpgrade" in checked.stdout
    for command in ("crds", "policies", "rbac --controllers advisor"):
        way = "--server-side --force-conflicts -f -" if command == "crds" else "-f -"
        installed.extend(await howto.install(f"{command} | kubectl apply {way}"))
    howto.follow("run --controllers advisor")
    with start():
        async with go_advisor.running():
            assert await eventually(partial(is_standing_by, howto))
        assert await switch.is_adopted(), "the Lease has expired"
        assert await rig.reaches("CompletedWithUpgrade")
        explained = await howto.steward("explain plan load-aware-rebalancing")
        assert "CompletedWithUpgrade" in explained.stdout
        planned = await howto.steward("plan load-aware-rebalancing")
        assert "configure-descheduler" in planned.stdout
        dry_run = 'patch virtplatformconfig load-aware-rebalancing --type merge -p \'{"spec":{"action":"DryRun"}}\''
        await howto.kubectl(dry_run)
        assert await rig.reaches("ReviewRequired", reason="PlanReady")
        approved = await howto.steward("approve load-aware-rebalancing --watch", "--yes")
        assert approved.code == 0, approved.stderr
        assert await rig.reaches("Completed", reason="Applied")
        await howto.kubectl(dry_run)
        assert await rig.reaches("Completed")
    records = [f"virt-steward-plan-{name}" for name in (LOAD_AWARE, HIGHER_DENSITY)]
    command = f"-n virt-steward delete configmap {' '.join(records)} --ignore-not-found"
    gone = await howto.kubectl(command, **{"virt-steward": home})
    assert records[0] in gone["deleted"]
    assert list(lacking((await rig.config())["status"])) == []
    assert howto.left_out == []
    await go_advisor.delete()


async def is_standing_by(howto: Follower) -> bool:
    return "standing by: go-1 holds Lease" in (await howto.steward("status")).stdout


@pytest.fixture
async def installed(admin: Client) -> AsyncIterator[list[Object]]:
    """What a test installs and other tests do not expect: it is deleted."""
    found: list[Object] = []
    yield found
    for obj in reversed(found):
        await admin.delete(ref_of(obj))
    for obj in found:
        assert await eventually(partial(is_gone, admin, ref_of(obj))), obj


async def is_gone(client: Client, ref: Ref) -> bool:
    try:
        await client.get(ref)
    except NotFound:
        return True
    return False


async def plant(switch: Switch, phase: str) -> None:
    """Write a status as a Go advisor does, with foreign content."""
    [recorded] = [one for one in recording(COMPLETED) if one["metadata"]["name"] == LOAD_AWARE]
    foreign = {"state": "Pending", "desiredState": {"spec": {"deschedulingIntervalSeconds": 1}}}
    await write_go_status(switch, phase=phase, items=[item | foreign for item in recorded["status"]["items"]])


async def test_switch_over_executes_nothing_of_a_feigned_status(switch: Switch) -> None:
    """Who may write only the status cannot make a Go advisor run; who can also write its Lease gains nothing."""
    await completed_by_ours(switch)
    since = switch.audit_log.mark()
    go_advisor = OtherOperator(switch.client, Key(home_of(switch.account), GO_LEASE))
    try:
        for phase in ("ReviewRequired", "InProgress", "CompletedWithUpgrade", "Drifted"):
            await go_advisor.renew(holder="")
            await plant(switch, phase)
            async with switch.advising():
                assert await switch.is_adopted(), phase
                assert await switch.rig.reaches("Completed"), "the plan of ours was completed before"
        async with switch.advising():  # its record is newer than the Lease
            await plant(switch, "InProgress")
            assert await switch.rig.reaches("Failed", reason="PlanTampered")
    finally:
        await go_advisor.delete()
    assert switch.written(since) == []
