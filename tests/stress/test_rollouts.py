"""Staged changes and kills, and many staged changes of one pool at once."""

from collections import Counter
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from tests.audit import AuditLog
from tests.controllers.approver.process import a_process
from tests.controllers.autopilot import conftest as fixtures
from tests.controllers.autopilot.everything import SHAPE, ask_for_everything
from tests.controllers.autopilot.rig import AutopilotRig, at_work
from tests.controllers.autopilot.staging_rig import (
    AUTOPILOT,
    KUBELET,
    has_pods,
    is_settled,
    is_staged,
    staged,
    want_pods,
    writes,
)
from tests.controllers.autopilot.test_replaced import NEW_KEY, OLD_KEY, a_former, entries, has_entries
from tests.controllers.autopilot.test_tombstones import is_gone
from tests.eventually import eventually
from virt_steward.controllers.autopilot.options import HCO
from virt_steward.controllers.autopilot.rollouts.policy import REBOOTING
from virt_steward_demo.local.controlplane import ControlPlane
from virt_steward_demo.simulation.platform import PlatformShape

account, catalog, rig, shape = fixtures.account, fixtures.catalog, fixtures.rig, fixtures.shape


@pytest.mark.parametrize(
    "point",
    [
        f"autopilot.{step}{nth}"
        for step in ("staging.before", "staging.after", "apply.before", "apply.after")
        for nth in ("", "#2")
        if (step, nth) not in {("apply.before", "#2"), ("apply.after", "#2")}
    ],
)
async def test_kill_loses_no_staged_change_and_writes_it_once(
    rig: AutopilotRig, control_plane: ControlPlane, tmp_path: Path, audit_log: AuditLog, point: str
) -> None:
    async with at_work(rig, control_plane, tmp_path):
        await rig.activate(KUBELET, enable_kubelet_performance_settings="true")
        assert await eventually(partial(rig.has_event, "AssetApplied", KUBELET), within=30)
        assert await eventually(partial(is_settled, rig))
    mark = audit_log.mark()
    is_late = "#2" in point or "apply" in point
    await want_pods(rig, 321)
    kubeconfig = rig.account.write_kubeconfig(tmp_path / "kubeconfig", control_plane)

    async def released() -> None:
        assert await eventually(partial(is_staged, rig, KUBELET), within=60)
        assert writes(rig, audit_log, mark) == []
        found = await staged(rig)
        await rig.activate(KUBELET, rollout_release=found[KUBELET].id)

    with a_process(kubeconfig, HCO.namespace, fault=f"{point}:kill", controller="autopilot") as cut:
        if is_late:
            await released()
        assert await eventually(lambda: cut.was_killed, within=60)
    with a_process(kubeconfig, HCO.namespace, controller="autopilot"):
        if not is_late:
            await released()
        assert await eventually(partial(has_pods, rig, 321), within=60)
        assert await eventually(partial(is_staged, rig), within=60)
    assert len(writes(rig, audit_log, mark)) == 1


@pytest.mark.parametrize("point", ["apply.before", "apply.after", "staging.before", "bury.before", "staging.before#2"])
async def test_kill_neither_loses_nor_repeats_a_staged_deletion(
    rig: AutopilotRig, control_plane: ControlPlane, tmp_path: Path, audit_log: AuditLog, point: str
) -> None:
    former = a_former()
    await rig.client.create(former)
    async with at_work(rig, control_plane, tmp_path):
        await rig.activate(KUBELET, rollout="approve", enable_kubelet_performance_settings="true")
        assert await eventually(partial(has_entries, rig, OLD_KEY, NEW_KEY), within=60)
    ids = ",".join(one.id for one in (await entries(rig)).values())
    mark = audit_log.mark()
    await rig.activate(KUBELET, rollout_release=ids)
    kubeconfig = rig.account.write_kubeconfig(tmp_path / "kubeconfig", control_plane)
    with a_process(kubeconfig, HCO.namespace, fault=f"autopilot.{point}:kill", controller="autopilot") as cut:
        assert await eventually(lambda: cut.was_killed, within=60)
    with a_process(kubeconfig, HCO.namespace, controller="autopilot"):
        assert await eventually(partial(is_gone, rig, former), within=60)
        assert await eventually(partial(has_entries, rig), within=60)
    done = [(one.verb, one.name) for one in writes(rig, audit_log, mark)]
    assert done == [("patch", NEW_KEY), ("delete", "virt-perf-settings")]


class TestManyChanges:
    """Every asset of workers at once."""

    @pytest.fixture
    def shape(self) -> PlatformShape:
        return replace(SHAPE, render_delay=1.0)

    async def test_staged_changes_of_a_pool_reboot_each_node_once(
        self, rig: AutopilotRig, control_plane: ControlPlane, tmp_path: Path, audit_log: AuditLog
    ) -> None:
        await ask_for_everything(rig)
        async with at_work(rig, control_plane, tmp_path):
            assets = [asset.name for asset in rig.catalog.assets if asset.object.kind in REBOOTING]
            for asset in assets:
                assert await eventually(partial(rig.has_event, "AssetApplied", asset), within=60), asset
        for asset in assets:
            await written_by_another_instance(rig, asset)
        assert await eventually(partial(is_settled, rig), within=60)
        mark = audit_log.mark()
        async with at_work(rig, control_plane, tmp_path):
            assert await eventually(partial(is_staged, rig, *assets), within=60)
            found = await staged(rig)
            assert {entry.occasion.value for entry in found.values()} == {"first contact"}
            of_workers = [asset for asset, entry in found.items() if entry.matching_pools == ("worker",)]
            assert len(of_workers) >= 10
            assert writes(rig, audit_log, mark) == []
            released = audit_log.mark()
            await rig.activate("true", rollout_release=found["swap-enable"].id)
            left = {*assets} - {*of_workers}
            assert await eventually(partial(is_staged, rig, *left), within=60), "one release takes all along"
            assert await eventually(partial(is_settled, rig), within=60)
        reboots = Counter(
            one.name for one in audit_log.since(released) if (one.resource, one.subresource) == ("nodes", "status")
        )
        workers = {"worker-0", "worker-1", "worker-2", "worker-gpu"}
        assert {name: count for name, count in reboots.items() if name in workers} == dict.fromkeys(workers, 2)


async def written_by_another_instance(rig: AutopilotRig, asset: str) -> None:
    """The object has other content, owned by our field manager."""
    live = await rig.live(asset)
    assert live
    metadata = {part: live["metadata"][part] for part in ("name", "labels")}
    spec = live["spec"] | {"kernelArguments": [*live["spec"].get("kernelArguments", ()), f"by={asset}"]}
    theirs = {"apiVersion": live["apiVersion"], "kind": live["kind"], "metadata": metadata, "spec": spec}
    await rig.client.apply(theirs, manager=AUTOPILOT, force=True)
