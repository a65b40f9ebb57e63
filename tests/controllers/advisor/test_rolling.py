"""What is repaired or aligned by hand counts as done once the nodes run with it."""

from dataclasses import replace
from typing import Any

import pytest

from tests.controllers.advisor.builders import NOON, a_config, a_machine_config, an_item, done, seen
from tests.controllers.advisor.desk import V1, V2, Desk, advising, observing
from tests.controllers.advisor.test_stories import phases
from tests.eventually import soon
from tests.grants import Account
from virt_steward.catalog.machineconfigs import MACHINE_CONFIG_POOL
from virt_steward.controllers.advisor.context import Context
from virt_steward.controllers.advisor.decide import decide
from virt_steward.controllers.advisor.options import Options
from virt_steward.controllers.advisor.phases import SETTLED
from virt_steward.controllers.advisor.profiles.load_aware_rebalancing import PSI, profile
from virt_steward.controllers.advisor.profiles.profile import Profile
from virt_steward.controllers.advisor.seen import NewLogic
from virt_steward.controllers.advisor.steps import AwaitAlignment, AwaitRepair, MarkDrifted, Recover
from virt_steward.kube.client import Object
from virt_steward.local.controlplane import ControlPlane
from virt_steward.local.simulation.faults import pause_pool, resume_pool
from virt_steward.objects.identity import Key, Ref
from virt_steward.plans.health import NotYet, Working
from virt_steward.plans.intent import Intent

OTHER = "sha256:" + "3" * 64


@pytest.mark.parametrize(
    ("item", "health", "step"),
    [
        pytest.param(a_machine_config(), NotYet("1/3"), AwaitRepair("1/3"), id="nodes-are-on-their-way"),
        pytest.param(a_machine_config(), Working("3/3"), Recover(with_errors=False), id="nodes-are-there"),
        pytest.param(
            a_machine_config(desired_state={}), NotYet("gone"), Recover(with_errors=False), id="nothing-was-needed"
        ),
        pytest.param(
            a_machine_config(state="Failed"), NotYet("1/3"), Recover(with_errors=True), id="it-had-failed-before"
        ),
        pytest.param(an_item(state="Completed"), NotYet("Degraded"), Recover(with_errors=False), id="it-is-of-no-pool"),
    ],
)
def test_drift_is_over_once_pools_have_rolled_the_repair(item: Any, health: Any, step: Any) -> None:
    config = a_config(done(item, phase="Drifted"), action="Apply")
    assert decide(seen(config, health={item.name: health}), NOON) == step


def test_drift_is_seen_again_while_a_repair_rolls() -> None:
    config = a_config(done(a_machine_config(), phase="Drifted"), action="Apply")
    around = seen(config, hashes={"enable-psi-metrics": OTHER}, health={"enable-psi-metrics": NotYet("1/3")})
    assert decide(around, NOON) == MarkDrifted(config.status.items)


@pytest.mark.parametrize("phase", sorted(map(str, SETTLED)))
@pytest.mark.parametrize("bypass", [False, True])
def test_an_upgrade_waits_until_pools_have_rolled_what_was_aligned_by_hand_in(phase: str, *, bypass: bool) -> None:
    config = a_config(done(phase=phase), action="Apply", bypass_optimistic_lock=bypass)
    logic = NewLogic(("enable-psi-metrics",), (a_machine_config(),), rolling=("1/3", "2/5"))
    around = seen(config, version="v2", hashes={"configure-descheduler": OTHER}, logic=logic)
    assert decide(around, NOON) == AwaitAlignment("1/3; 2/5")


async def test_a_repair_by_hand_is_complete_once_every_node_runs_with_it(
    desk: Desk, control_plane: ControlPlane, account: Account
) -> None:
    async def is_without() -> bool:
        return PSI.key.name not in sources(await worker_pool(desk))

    async with advising(control_plane, account), observing(desk.client) as told:
        await desk.ask("Apply")
        assert await desk.reaches("Completed")
        await desk.client.delete(PSI)
        assert await desk.reaches("Drifted")
        assert await soon(is_without)
        await pause_pool(desk.client, "worker")
        before = len(told)
        await desk.client.create((await desk.item("enable-psi-metrics")).desired_state)
        assert await desk.reaches("Drifted", reason="RepairRolling")
        assert "MachineConfigPool 'worker' is paused" in await desk.message("Drifted")
        await resume_pool(desk.client, "worker")
        assert await desk.reaches("Completed", reason="DriftCorrected")
        pool = await worker_pool(desk)
    assert phases(told[before:]) == ["Drifted", "Completed"]
    assert PSI.key.name in sources(pool)
    assert pool["status"]["configuration"] == pool["spec"]["configuration"]
    assert pool["status"]["updatedMachineCount"] == pool["status"]["machineCount"] == 3


async def test_an_upgrade_by_hand_is_complete_once_every_node_runs_with_it(
    desk: Desk, control_plane: ControlPlane, account: Account
) -> None:
    arguments = ["psi=1", "psi_cgroups=1"]
    async with advising(control_plane, account, version=V1):
        await desk.ask("Apply")
        assert await desk.reaches("Completed")
    async with advising(control_plane, account, version=V2, known=[with_arguments(arguments)]):
        assert await desk.reaches("CompletedWithUpgrade", reason="LogicChanged")
        await pause_pool(desk.client, "worker")
        await desk.client.merge_patch(PSI, {"spec": {"kernelArguments": arguments}})
        assert await desk.reaches("CompletedWithUpgrade", reason="AlignmentRolling")
        assert "MachineConfigPool 'worker' is paused" in await desk.message("CompletedWithUpgrade")
        assert (await desk.status()).operator_version == V1
        await resume_pool(desk.client, "worker")
        assert await desk.reaches("Completed", reason="ManuallyAligned")
        assert (await desk.status()).operator_version == V2
        pool = await worker_pool(desk)
    assert pool["status"]["configuration"] == pool["spec"]["configuration"]
    assert pool["status"]["updatedMachineCount"] == 3


def with_arguments(arguments: list[str]) -> Profile:
    """The same profile, with other kernel arguments."""
    old = profile(Options())

    def intents(context: Context) -> tuple[Intent, ...]:
        psi, descheduler = old.intents(context)
        return (replace(psi, desired={**psi.desired, "spec": {"kernelArguments": arguments}}), descheduler)

    return replace(old, intents=intents)


async def worker_pool(desk: Desk) -> Object:
    return await desk.client.get(Ref(MACHINE_CONFIG_POOL, Key("", "worker")))


def sources(pool: Object) -> set[str]:
    """What a pool's configuration is made from."""
    return {one["name"] for one in pool["spec"]["configuration"]["source"]}
