"""Execution against obstacles: windows, pauses, broken nodes, refusals, other pools."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from structlog.testing import capture_logs

from tests.controllers.advisor.rig import HCO, AdvisorRig, a_descheduler, advising, no_reboots, observing
from tests.eventually import eventually
from tests.grants import Account
from virt_steward.apis.profiles import EXAMPLE, HIGHER_DENSITY
from virt_steward.controllers.advisor.options import AdvisorOptions
from virt_steward.controllers.advisor.profiles import profiles
from virt_steward.controllers.advisor.profiles.load_aware_rebalancing import DESCHEDULER, PSI
from virt_steward.controllers.advisor.profiles.profile import Profile
from virt_steward.controllers.advisor.profiles.virt_higher_density import NO_NODE, SWAP
from virt_steward.objects.identity import Key, Ref
from virt_steward.objects.wallclock import rfc3339
from virt_steward.plans.fields import fields_set_by
from virt_steward.plans.intent import Impacts, Intent
from virt_steward.platform.machineconfigs import MACHINE_CONFIG, MACHINE_CONFIG_POOL, ROLE
from virt_steward.runtime.clock import SystemClock
from virt_steward_demo.local.controlplane import ControlPlane
from virt_steward_demo.simulation.faults import break_node, pause_pool, repair_node, resume_pool
from virt_steward_demo.simulation.install import install, uninstall
from virt_steward_demo.simulation.kinds.descheduler import RELEASES
from virt_steward_demo.simulation.nodes import Node, add_node, add_pool
from virt_steward_demo.simulation.platform import PlatformShape, SimulatedPlatform


async def test_execution_waits_for_window(rig: AdvisorRig, control_plane: ControlPlane, account: Account) -> None:
    later = SystemClock().utc() + timedelta(days=2)
    window = {"schedule": f"0 3 {later.day} {later.month} *", "duration": "1h"}
    async with advising(control_plane, account):
        await rig.ask("Apply", options=no_reboots(), window=window)
        assert await rig.reaches("InProgress", reason="WindowClosed")
        opens = rfc3339(later.replace(hour=3, minute=0, second=0))
        assert opens in await rig.message("WaitingForWindow")
        assert [item.state for item in (await rig.status()).items] == ["Pending"]
        assert not await rig.exists(DESCHEDULER)
        await rig.ask(window={"schedule": "* * * * *", "duration": "1h"})
        assert await rig.reaches("Completed")
        assert await rig.condition("WaitingForWindow") == ("False", "NotWaiting")


async def test_history_keeps_approver_of_interrupted_plan(
    rig: AdvisorRig, control_plane: ControlPlane, account: Account
) -> None:
    await pause_pool(rig.client, "worker")
    async with advising(control_plane, account):
        await rig.ask("DryRun", notify="elsewhere")
        assert await rig.reaches("ReviewRequired")
        assert await rig.condition("Notifying") == ("False", "UnknownEndpoint")
        approved = (await rig.status()).plan_hash
        await rig.annotate(approved_plan=approved, approved_by="ann", approval_comment="tonight")
        await rig.ask("Apply")
        assert await rig.says("enable-psi-metrics", "is paused")
        await rig.ask("DryRun")
        assert await rig.reaches("ReviewRequired")
    (ended,) = (await rig.status()).history
    assert (ended.plan_hash, ended.outcome, ended.by, ended.comment) == (approved, "Interrupted", "ann", "tonight")


async def test_execution_waits_for_paused_pool_and_broken_node(
    rig: AdvisorRig, control_plane: ControlPlane, account: Account
) -> None:
    await pause_pool(rig.client, "worker")
    await break_node(rig.client, "worker-0", "the disk is full")
    async with advising(control_plane, account):
        await rig.ask("Apply")
        assert await rig.says("enable-psi-metrics", "'worker' is paused, so nothing happens there")
        await resume_pool(rig.client, "worker")
        assert await rig.says("enable-psi-metrics", "'worker' is degraded (1 degraded machines: Node worker-0")
        assert not await rig.exists(DESCHEDULER)
        await repair_node(rig.client, "worker-0")
        assert await rig.reaches("Completed")


@pytest.mark.parametrize(
    ("policy", "phase", "states"),
    [
        pytest.param("Abort", "Failed", ["Failed", "Pending"], id="and-ends-the-plan"),
        pytest.param("Continue", "CompletedWithErrors", ["Failed", "Completed"], id="and-the-rest-goes-on"),
    ],
)
async def test_item_fails_at_timeout(
    rig: AdvisorRig, control_plane: ControlPlane, account: Account, *, policy: str, phase: str, states: list[str]
) -> None:
    await pause_pool(rig.client, "worker")
    async with advising(control_plane, account):
        await rig.ask("Apply", failurePolicy=policy, waitTimeout="1s")
        assert await rig.reaches(phase)
    status = await rig.status()
    assert [item.state for item in status.items] == states
    assert "Timed out after 1 s: MachineConfigPool 'worker' is paused" in status.items[0].message
    assert await rig.exists(DESCHEDULER) == (policy == "Continue")


async def test_later_plan_waits_for_items_that_are_not_ready(
    rig: AdvisorRig, control_plane: ControlPlane, account: Account
) -> None:
    await pause_pool(rig.client, "worker")
    async with advising(control_plane, account):
        await rig.ask("Apply", waitTimeout="1s")
        assert await rig.reaches("Failed", reason="ItemFailed")
        first = (await rig.status()).pre_image
        await rig.ask("DryRun", waitTimeout=None)
        assert await rig.reaches("ReviewRequired")
        psi = await rig.item("enable-psi-metrics")
        assert (psi.state, psi.impact_severity, psi.diff) == ("InProgress", "Low", "")
        assert "Already in desired state, but not ready yet: MachineConfigPool 'worker' is paused" in psi.message

        await rig.ask("Apply")
        assert await rig.reaches("InProgress")
        assert await rig.says("enable-psi-metrics", "MachineConfigPool 'worker' is paused, so nothing happens there")
        assert (await rig.status()).pre_image == first  # there is no other record yet
        assert not await rig.exists(DESCHEDULER)
        await resume_pool(rig.client, "worker")
        assert await rig.reaches("Completed")
        assert await rig.says("enable-psi-metrics", "(all 3 nodes updated)")
        await rig.ask("Rollback")
        assert await rig.reaches("ReviewRequired", reason="RollbackReady")
        assert [item.name for item in (await rig.status()).items] == ["configure-descheduler", "enable-psi-metrics"]


@pytest.mark.parametrize("by", ["other-options", "dry-run", "ignore"])
async def test_running_rollout_holds_back_new_plan(
    rig: AdvisorRig, control_plane: ControlPlane, account: Account, by: str
) -> None:
    await break_node(rig.client, "worker-0", "the disk is full")
    async with advising(control_plane, account), observing(rig.client) as seen:
        await rig.ask("Apply")
        assert await rig.says("enable-psi-metrics", "'worker' is degraded")
        if by == "dry-run":
            await rig.ask("DryRun")
            assert await rig.reaches("ReviewRequired")
        if by == "ignore":
            await rig.ask("Ignore")
            assert await rig.reaches("Ignored")
        await rig.ask("Apply", options={"loadAware": {"deschedulingIntervalSeconds": 90}})
        assert await rig.reaches("InProgress")
        assert await rig.says("enable-psi-metrics", "'worker' is degraded")
        assert not await rig.exists(DESCHEDULER)
        await repair_node(rig.client, "worker-0")
        assert await rig.reaches("Completed")
    assert (await rig.descheduler())["spec"]["deschedulingIntervalSeconds"] == 90
    begun = [one.items for one in seen if one.items and one.items[1].state != "Pending"]
    assert {psi.state for psi, _ in begun} == {"Completed"}


async def test_plan_without_changes_completes_when_ready(
    rig: AdvisorRig, control_plane: ControlPlane, account: Account
) -> None:
    async with advising(control_plane, account):
        await rig.ask("Apply")
        assert await rig.reaches("Completed")
        await break_node(rig.client, "worker-0", "the disk is full")
        await rig.client.merge_patch(PSI, {"spec": {"kernelArguments": ["psi=1", "quiet"]}})
        assert await rig.reaches("Drifted")
        await rig.client.merge_patch(PSI, {"spec": {"kernelArguments": ["psi=1"]}})
        assert await rig.reaches("Completed")

        async def is_degraded() -> bool:
            pool = await rig.client.get(Ref(MACHINE_CONFIG_POOL, Key("", "worker")))
            return bool(pool["status"].get("degradedMachineCount"))

        assert await eventually(is_degraded, within=30)
        await rig.ask("DryRun")
        assert await rig.reaches("ReviewRequired")
        assert "is degraded" in (await rig.item("enable-psi-metrics")).message
        await repair_node(rig.client, "worker-0")
        assert await rig.reaches("Completed", reason="InDesiredState")


async def test_execution_waits_for_custom_pools(rig: AdvisorRig, control_plane: ControlPlane, account: Account) -> None:
    await add_pool(rig.client, "gpu", maxUnavailable="50%")
    for number in range(2):
        await add_node(rig.client, Node(f"gpu-{number}", ("worker", "gpu")))
    await pause_pool(rig.client, "gpu")
    async with advising(control_plane, account):
        await rig.ask("DryRun")
        assert await rig.reaches("ReviewRequired")
        radius = (await rig.item("enable-psi-metrics")).blast_radius
        assert radius
        assert [(one.name, one.nodes, one.rounds, one.paused) for one in radius.pools] == [
            ("gpu", 2, 2, True),
            ("worker", 3, 3, False),
        ]
        await rig.ask("Apply")
        assert await rig.says("enable-psi-metrics", "'gpu' is paused")

        async def workers_are_done() -> bool:
            return "'worker'" not in (await rig.item("enable-psi-metrics")).message

        assert await eventually(workers_are_done)
        assert (await rig.item("enable-psi-metrics")).state == "InProgress"
        await resume_pool(rig.client, "gpu")
        assert await rig.reaches("Completed")
    rendered = (await rig.client.get(Ref(MACHINE_CONFIG_POOL, Key("", "gpu"))))["status"]["configuration"]["name"]
    assert "psi=1" in (await rig.client.get(Ref(MACHINE_CONFIG, Key("", rendered))))["spec"]["kernelArguments"]


async def test_psi_of_another_machine_config_is_kept(
    rig: AdvisorRig, control_plane: ControlPlane, account: Account
) -> None:
    await rig.client.create(
        {
            "apiVersion": "machineconfiguration.openshift.io/v1",
            "kind": "MachineConfig",
            "metadata": {"name": "50-mine", "labels": {"machineconfiguration.openshift.io/role": "worker"}},
            "spec": {"kernelArguments": ["psi=1"]},
        }
    )
    async with advising(control_plane, account):
        await rig.ask("Apply")
        assert await rig.reaches("Completed")
    psi = await rig.item("enable-psi-metrics")
    assert (psi.state, psi.impact_severity, psi.diff) == ("Completed", "Low", "")
    assert "already effective in MachineConfigPool 'worker', by MachineConfig '50-mine'" in psi.message
    assert not await rig.exists(PSI)


def a_profile_of_one_machine_config() -> Profile:
    """Declares nothing but its target, a MachineConfig, and takes effect when the nodes have rebooted."""
    options = AdvisorOptions(example_profile=True)
    [example] = [one for one in profiles(options) if one.name == EXAMPLE]
    desired = {
        "apiVersion": "machineconfiguration.openshift.io/v1",
        "kind": "MachineConfig",
        "metadata": {"name": PSI.key.name, "labels": {ROLE: "worker"}},
        "spec": {"kernelArguments": ["quiet"]},
    }
    intent = Intent("be-quiet", desired, fields_set_by(desired), Impacts("High", "High"), "Kernels will be quiet")
    return replace(example, targets=(PSI,), intents=lambda _: (intent,))


async def test_profile_that_writes_a_machine_config_is_completed_when_nodes_have_it(
    rig: AdvisorRig, control_plane: ControlPlane, account: Account
) -> None:
    rig.profile = EXAMPLE
    async with advising(control_plane, account, known=[a_profile_of_one_machine_config()]):
        await rig.ask("DryRun")
        assert await rig.reaches("ReviewRequired")
        radius = (await rig.item("be-quiet")).blast_radius
        assert radius
        assert [(one.name, one.nodes) for one in radius.pools] == [("worker", 3)]
        await rig.ask("Apply")
        assert await rig.reaches("Completed")
    assert "all 3 nodes updated" in (await rig.item("be-quiet")).message


async def test_example_profile_is_not_reconciled_unless_it_is_on(
    rig: AdvisorRig, control_plane: ControlPlane, account: Account
) -> None:
    rig.profile = EXAMPLE
    with capture_logs() as logged:
        async with advising(control_plane, account, known=profiles(AdvisorOptions())):
            await rig.ask("Apply")
            expected = {"event": "profile is off", "profile": EXAMPLE, "flag": "--example-profile"}
            assert await eventually(lambda: any(expected.items() <= one.items() for one in logged))
    assert (await rig.status()).phase is None


@pytest.fixture(params=[release.name for release in RELEASES])
def release(request: pytest.FixtureRequest) -> str:
    return str(request.param)


class TestReleases:
    @pytest.fixture
    def shape(self, shape: PlatformShape, release: str) -> PlatformShape:
        return replace(shape, descheduler=release)

    async def test_plan_fits_every_descheduler_release(
        self, rig: AdvisorRig, control_plane: ControlPlane, account: Account, release: str
    ) -> None:
        await rig.client.create(a_descheduler(profiles=["LongLifecycle", "AffinityAndTaints"]))
        async with advising(control_plane, account):
            await rig.ask("Apply", options=no_reboots())
            assert await rig.reaches("Completed")
            before = await rig.config()
            await rig.client.merge_patch(DESCHEDULER, {"metadata": {"labels": {"touched": "yes"}}})
            assert await rig.reaches("Completed")
            assert (await rig.config())["metadata"]["resourceVersion"] == before["metadata"]["resourceVersion"]
        spec = (await rig.descheduler())["spec"]
        chosen = {"v510": "LongLifecycle", "v532": "KubeVirtRelieveAndMigrate"}
        assert spec["profiles"] == ["AffinityAndTaints", chosen.get(release, "DevKubeVirtRelieveAndMigrate")]
        assert spec["evictionLimits"] == ({"total": 5, "node": 1} if release == "v532" else {"total": 5})
        message = (await rig.item("configure-descheduler")).message
        assert message == "Applied successfully"


class TestDensity:
    @pytest.fixture(params=["v1", "v1beta1"])
    def layout(self, request: pytest.FixtureRequest) -> str:
        return str(request.param)

    @pytest.fixture
    def shape(self, shape: PlatformShape, layout: str) -> PlatformShape:
        return replace(shape, hyperconverged=(layout,))

    async def test_higher_density_sets_swap_and_overcommit(
        self, rig: AdvisorRig, platform: SimulatedPlatform, control_plane: ControlPlane, account: Account, layout: str
    ) -> None:
        assert platform
        rig.profile = HIGHER_DENSITY
        async with advising(control_plane, account):
            await rig.ask("Apply", options={"virtHigherDensity": {"memoryToRequestRatio": 200}})
            assert await rig.reaches("Completed")
        assert await rig.exists(SWAP)
        hco = await rig.client.get(HCO)
        part = hco["spec"]["virtualization"] if layout == "v1" else hco["spec"]
        assert part["higherWorkloadDensity"] == {"memoryOvercommitPercentage": 200}
        assert part["ksmConfiguration"] == {"nodeLabelSelector": {}}

    async def test_ksm_is_turned_off_where_it_was_on(
        self, rig: AdvisorRig, platform: SimulatedPlatform, control_plane: ControlPlane, account: Account, layout: str
    ) -> None:
        assert platform
        rig.profile = HIGHER_DENSITY
        plain = {"enableSwap": False, "memoryToRequestRatio": 110}
        off = {"virtHigherDensity": {**plain, "ksmConfiguration": {"enabled": False}}}

        async def sharing() -> Any:
            spec = (await rig.client.get(HCO))["spec"]
            return (spec["virtualization"] if layout == "v1" else spec).get("ksmConfiguration")

        async with advising(control_plane, account):
            await rig.ask("Apply", options=off)
            assert await rig.reaches("Completed")
            assert await sharing() is None  # it was off all along
            await rig.ask("Apply", options={"virtHigherDensity": {**plain, "ksmConfiguration": None}})
            assert await rig.reaches("Completed")
            assert await sharing() == {"nodeLabelSelector": {}}

            await rig.ask("DryRun", options=off)
            assert await rig.reaches("ReviewRequired")
            item = await rig.item("configure-higher-density")
            assert "-      nodeLabelSelector: {}" in item.diff or "-    nodeLabelSelector: {}" in item.diff
            assert "by a node selector that matches no node" in item.message
            await rig.ask("Apply")
            assert await rig.reaches("Completed")
            assert await sharing() == {"nodeLabelSelector": NO_NODE}
            await rig.ask("DryRun")
            assert await rig.reaches("Completed", reason="InDesiredState")


class TestMissing:
    @pytest.fixture
    def shape(self, shape: PlatformShape) -> PlatformShape:
        return replace(shape, without=(*shape.without, "KubeDescheduler"))

    async def test_missing_prerequisite_is_named_until_installed(
        self, rig: AdvisorRig, control_plane: ControlPlane, account: Account
    ) -> None:
        async with advising(control_plane, account):
            await rig.ask("Apply", options=no_reboots())
            assert await rig.reaches("PrerequisiteFailed")
            assert await rig.condition("PrerequisitesMet") == ("False", "MissingDependency")
            assert "install the Descheduler Operator" in await rig.message("PrerequisitesMet")
            await install(rig.client, "KubeDescheduler")
            assert await rig.reaches("Completed", within=30)
            assert await rig.condition("PrerequisitesMet") == ("True", "AllPresent")


async def test_returned_prerequisite_needs_review(
    rig: AdvisorRig, control_plane: ControlPlane, account: Account
) -> None:
    async with advising(control_plane, account):
        await rig.ask("Apply", options=no_reboots())
        assert await rig.reaches("Completed")
        await uninstall(rig.client, "KubeDescheduler")
        assert await rig.reaches("PrerequisiteFailed", within=30)
        await install(rig.client, "KubeDescheduler")
        assert await rig.reaches("ReviewRequired", reason="PlanChanged", within=30)
        await rig.ask(notify="ops")
        assert await rig.reaches("ReviewRequired", reason="PlanChanged")
        assert not await rig.exists(DESCHEDULER)
        await rig.ask("DryRun")
        assert await rig.reaches("ReviewRequired", reason="PlanReady")
        await rig.ask("Apply")
        assert await rig.reaches("Completed")
