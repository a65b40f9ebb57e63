"""Changes that reboot nodes are staged, and released together: on the API server, with simulated pools."""

from collections import Counter
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.audit import AuditLog, Mark, Request
from tests.cli.commands import steward
from tests.controllers.approver.process import a_process
from tests.controllers.autopilot.cockpit import Cockpit, at_work
from tests.controllers.autopilot.everything import SHAPE, ask_for_everything
from tests.eventually import eventually
from virt_steward.controllers.autopilot.options import HCO
from virt_steward.controllers.autopilot.rollouts.policy import REBOOTING
from virt_steward.controllers.autopilot.rollouts.staged import StagedChange, read_entries, ref_of_staging
from virt_steward.kube.client import EVERYTHING
from virt_steward.kube.errors import NotFound
from virt_steward.objects.identity import Key, Ref
from virt_steward.platform.hco import HYPERCONVERGED
from virt_steward.platform.machineconfigs import KUBELET_CONFIG, MACHINE_CONFIG, MACHINE_CONFIG_POOL
from virt_steward_demo.local.controlplane import ControlPlane
from virt_steward_demo.simulation.control_loop import SimulatedObject
from virt_steward_demo.simulation.faults import pause_pool, resume_pool
from virt_steward_demo.simulation.platform import PlatformShape
from virt_steward_demo.simulation.rendering import kubelet_machine_configs, render

KUBELET = "kubelet-perf-settings"
OTHER = "metrics-service"
SCOPE = f"{KUBELET},{OTHER}"
AUTOPILOT = "virt-platform-autopilot"

Object = dict[str, Any]


async def staged(cockpit: Cockpit) -> dict[str, StagedChange]:
    try:
        found = await cockpit.client.get(ref_of_staging(HCO.namespace))
    except NotFound:
        return {}
    return {entry.asset: entry for entry in read_entries(found.get("data") or {}).values()}


async def is_staged(cockpit: Cockpit, *assets: str) -> bool:
    return (await staged(cockpit)).keys() == {*assets}


async def want_pods(cockpit: Cockpit, number: int) -> None:
    """Change what the asset wants."""
    spec = {"deployment": {"nodePlacements": {"infra": {"maxPods": number}}}}
    await cockpit.client.merge_patch(Ref(HYPERCONVERGED, HCO), {"spec": spec}, manager="admin")


async def has_pods(cockpit: Cockpit, number: int) -> bool:
    live = await cockpit.live(KUBELET)
    return live is not None and live["spec"]["kubeletConfig"]["maxPods"] == number


async def release(cockpit: Cockpit, *assets: str) -> None:
    found = await staged(cockpit)
    await cockpit.engage(SCOPE, rollout_release=",".join(found[asset].id for asset in assets))


async def pool(cockpit: Cockpit, name: str = "worker") -> Object:
    return await cockpit.client.get(Ref(MACHINE_CONFIG_POOL, Key("", name)))


async def is_updated(cockpit: Cockpit) -> bool:
    conditions = (await pool(cockpit))["status"].get("conditions", ())
    return any((one["type"], one["status"]) == ("Updated", "True") for one in conditions)


def writes(cockpit: Cockpit, audit_log: AuditLog, mark: Mark) -> list[Request]:
    """What the autopilot has written to objects that reboot nodes."""
    plurals = {kind.plural for kind in REBOOTING}
    return [
        one
        for one in audit_log.since(mark)
        if one.user == cockpit.account.user and one.is_write and one.resource in plurals and "dryRun" not in one.uri
    ]


async def engaged(cockpit: Cockpit) -> None:
    await cockpit.engage(SCOPE)
    for asset in (KUBELET, OTHER):
        assert await eventually(partial(cockpit.told, "AssetApplied", asset), within=30)
    assert await eventually(partial(is_settled, cockpit))


async def has_passed(cockpit: Cockpit) -> None:
    """By then, whatever came before it was seen."""
    await cockpit.edit(OTHER, {"metadata": {"labels": {"app": "other"}}})
    assert await eventually(lambda: _is_corrected(cockpit), within=30)


async def _is_corrected(cockpit: Cockpit) -> bool:
    live = await cockpit.live(OTHER)
    return live is not None and live["metadata"]["labels"]["app"] != "other"


async def test_update_waits_for_a_rollout_and_costs_nothing(flying: Cockpit, audit_log: AuditLog) -> None:
    await engaged(flying)
    mark = audit_log.mark()
    await want_pods(flying, 321)
    assert await eventually(partial(is_staged, flying, KUBELET))
    assert await eventually(partial(flying.told, "MachineConfigUpdateStaged", KUBELET))
    [event] = await flying.events("MachineConfigUpdateStaged", KUBELET)
    assert "nodes of pool worker would reboot" in event["note"]
    assert "it changes .spec.kubeletConfig.maxPods" in event["note"]
    assert f"virt-steward release {KUBELET}" in event["note"]
    [entry] = (await staged(flying)).values()
    assert (entry.matching_pools, entry.occasion.value) == (("worker",), "update")
    converged = audit_log.mark()
    await flying.engage(SCOPE, enable_metallb="true")
    await has_passed(flying)
    asked = [one for one in audit_log.since(converged) if one.user == flying.account.user and one.verb != "watch"]
    assert {one.resource for one in asked} <= {"services", "events"}, "a pass over what is staged sends no request"
    assert writes(flying, audit_log, mark) == []
    await make_config(flying, "80-unrelated")
    assert await eventually(partial(has_pods, flying, 321))
    assert await eventually(partial(is_staged, flying))
    assert await eventually(partial(flying.told, "MachineConfigUpdateReleased", KUBELET))
    [released] = await flying.events("MachineConfigUpdateReleased", KUBELET)
    assert "is written now: pool worker is updating" in released["note"]
    assert len(writes(flying, audit_log, mark)) == 1


async def make_config(cockpit: Cockpit, name: str) -> None:
    """Somebody else configures workers, so that their nodes reboot."""
    metadata = {"name": name, "labels": {"machineconfiguration.openshift.io/role": "worker"}}
    config = {"apiVersion": "machineconfiguration.openshift.io/v1", "kind": "MachineConfig", "metadata": metadata}
    await cockpit.client.create({**config, "spec": {"kernelArguments": ["quiet"]}})


async def test_staged_change_ends_when_it_is_not_wanted(flying: Cockpit, audit_log: AuditLog) -> None:
    await engaged(flying)
    mark = audit_log.mark()
    await want_pods(flying, 321)
    assert await eventually(partial(is_staged, flying, KUBELET))
    await want_pods(flying, 500)
    assert await eventually(partial(is_staged, flying)), "the object is as wanted again"
    await want_pods(flying, 321)
    assert await eventually(partial(is_staged, flying, KUBELET))
    before = (await staged(flying))[KUBELET].id
    await want_pods(flying, 322)
    assert await eventually(lambda: _has_another_id(flying, before)), "something else is wanted"
    await flying.engage(SCOPE, rollout_release=before)
    await has_passed(flying)
    assert await is_staged(flying, KUBELET), "another change was released"
    await flying.engage(OTHER)
    assert await eventually(partial(is_staged, flying)), "the asset is out of scope"
    await flying.engage(SCOPE)
    assert await eventually(partial(is_staged, flying, KUBELET))
    await flying.engage("false")
    assert await eventually(partial(is_staged, flying)), "the autopilot is off"
    assert writes(flying, audit_log, mark) == []


async def _has_another_id(cockpit: Cockpit, before: str) -> bool:
    found = await staged(cockpit)
    return KUBELET in found and found[KUBELET].id != before


async def test_staged_change_is_recorded_again_if_its_config_map_is_deleted(flying: Cockpit) -> None:
    await engaged(flying)
    await want_pods(flying, 321)
    assert await eventually(partial(is_staged, flying, KUBELET))
    before = await staged(flying)
    await flying.client.delete(ref_of_staging(HCO.namespace))

    async def is_back() -> bool:
        return await staged(flying) == before

    assert await eventually(is_back)


@pytest.mark.parametrize("how", ["release", "bypass", "immediate", "window", "deadline"])
async def test_change_is_released(flying: Cockpit, audit_log: AuditLog, how: str) -> None:
    await engaged(flying)
    mark = audit_log.mark()
    await flying.engage(SCOPE, rollout="approve")
    await want_pods(flying, 321)
    assert await eventually(partial(is_staged, flying, KUBELET))
    assert writes(flying, audit_log, mark) == []
    match how:
        case "release":
            await release(flying, KUBELET)
        case "bypass":
            await flying.annotate(KUBELET, bypass_mcp_rollout_coalescing="True")
        case "immediate":
            await flying.annotate(KUBELET, rollout="immediate")
        case "window":
            await flying.engage(SCOPE, rollout="window", rollout_window="* * * * * 2m")
        case "deadline":
            await flying.engage(SCOPE, rollout_deadline="1s", rollout_deadline_action="release")
    assert await eventually(partial(has_pods, flying, 321))
    assert await eventually(partial(is_staged, flying))
    assert await eventually(partial(flying.told, "MachineConfigUpdateReleased", KUBELET))
    await has_passed(flying)
    assert len(writes(flying, audit_log, mark)) == 1


async def test_release_command_releases_what_it_shows(flying: Cockpit, control_plane: ControlPlane) -> None:
    await engaged(flying)
    nothing = await steward("release", KUBELET, kubeconfig=control_plane.kubeconfig)
    assert (nothing.code, nothing.stdout) == (1, "")
    assert f"Nothing to release: no change of {KUBELET} is staged" in nothing.stderr
    await want_pods(flying, 321)
    assert await eventually(partial(is_staged, flying, KUBELET))
    change = (await staged(flying))[KUBELET]
    status = await steward("status", kubeconfig=control_plane.kubeconfig)
    [row] = [line for line in status.stdout.splitlines() if line.strip().startswith(KUBELET)]
    assert "Staged" in row
    explained = await steward("explain", "asset", KUBELET, kubeconfig=control_plane.kubeconfig)
    assert f"Staged change {change.id}" in explained.stdout
    assert "+    maxPods: 321" in explained.stdout
    other = await steward("release", KUBELET, "--id", f"{KUBELET}@other", kubeconfig=control_plane.kubeconfig)
    assert other.code == 1
    assert f"is now {change.id}; review it first" in other.stderr
    released = await steward("release", KUBELET, "--id", change.id, kubeconfig=control_plane.kubeconfig)
    assert released.code == 0, released.stderr
    assert "/spec/kubeletConfig/maxPods is 500, should be 321" in released.stderr
    assert "3 nodes reboot (worker: 3 in 3 rounds)" in released.stderr
    assert change.id in released.stdout
    assert await eventually(partial(has_pods, flying, 321))


async def test_deadline_only_warns_unless_told(flying: Cockpit, audit_log: AuditLog) -> None:
    await engaged(flying)
    mark = audit_log.mark()
    await flying.engage(SCOPE, rollout_deadline="1s")
    await want_pods(flying, 321)
    assert await eventually(partial(flying.told, "MachineConfigUpdateOverdue", KUBELET))
    assert await is_staged(flying, KUBELET)
    assert writes(flying, audit_log, mark) == []


async def test_approve_holds_creation_too(flying: Cockpit, audit_log: AuditLog) -> None:
    await flying.engage(SCOPE, rollout="approve")
    assert await eventually(partial(is_staged, flying, KUBELET))
    mark = audit_log.mark()
    await flying.engage(SCOPE, enable_metallb="true")
    assert await eventually(partial(flying.is_there, OTHER))
    await has_passed(flying)
    assert not await flying.is_there(KUBELET)
    asked = [one for one in audit_log.since(mark) if one.user == flying.account.user and one.verb != "watch"]
    assert "kubeletconfigs" not in {one.resource for one in asked}
    await release(flying, KUBELET)
    assert await eventually(partial(flying.is_there, KUBELET))
    assert await eventually(partial(is_staged, flying))


async def test_paused_pool_holds_a_change_until_resumed(flying: Cockpit, audit_log: AuditLog) -> None:
    await engaged(flying)
    await pause_pool(flying.client, "worker")
    mark = audit_log.mark()
    await want_pods(flying, 321)
    assert await eventually(partial(is_staged, flying, KUBELET))
    await make_config(flying, "80-unrelated")
    await has_passed(flying)
    assert await is_staged(flying, KUBELET)
    assert writes(flying, audit_log, mark) == []
    await resume_pool(flying.client, "worker")
    assert await eventually(partial(has_pods, flying, 321)), "then its rollout begins"


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
    cockpit: Cockpit, control_plane: ControlPlane, tmp_path: Path, audit_log: AuditLog, point: str
) -> None:
    async with at_work(cockpit, control_plane, tmp_path):
        await cockpit.engage(KUBELET)
        assert await eventually(partial(cockpit.told, "AssetApplied", KUBELET), within=30)
        assert await eventually(partial(is_settled, cockpit))
    mark = audit_log.mark()
    is_late = "#2" in point or "apply" in point
    await want_pods(cockpit, 321)
    kubeconfig = cockpit.account.write_kubeconfig(tmp_path / "kubeconfig", control_plane)

    async def released() -> None:
        assert await eventually(partial(is_staged, cockpit, KUBELET), within=60)
        assert writes(cockpit, audit_log, mark) == []
        found = await staged(cockpit)
        await cockpit.engage(KUBELET, rollout_release=found[KUBELET].id)

    with a_process(kubeconfig, HCO.namespace, fault=f"{point}:kill", controller="autopilot") as cut:
        if is_late:
            await released()
        assert await eventually(lambda: cut.was_killed, within=60)
    with a_process(kubeconfig, HCO.namespace, controller="autopilot"):
        if not is_late:
            await released()
        assert await eventually(partial(has_pods, cockpit, 321), within=60)
        assert await eventually(partial(is_staged, cockpit), within=60)
    assert len(writes(cockpit, audit_log, mark)) == 1


class TestManyChanges:
    """Every asset of workers at once."""

    @pytest.fixture
    def shape(self) -> PlatformShape:
        return replace(SHAPE, render_delay=1.0)

    async def test_staged_changes_of_a_pool_reboot_each_node_once(
        self, cockpit: Cockpit, control_plane: ControlPlane, tmp_path: Path, audit_log: AuditLog
    ) -> None:
        await ask_for_everything(cockpit)
        async with at_work(cockpit, control_plane, tmp_path):
            assets = [asset.name for asset in cockpit.catalog.assets if asset.object.kind in REBOOTING]
            for asset in assets:
                assert await eventually(partial(cockpit.told, "AssetApplied", asset), within=60), asset
        for asset in assets:
            await written_by_another_instance(cockpit, asset)
        assert await eventually(partial(is_settled, cockpit), within=60)
        mark = audit_log.mark()
        async with at_work(cockpit, control_plane, tmp_path):
            assert await eventually(partial(is_staged, cockpit, *assets), within=60)
            found = await staged(cockpit)
            assert {entry.occasion.value for entry in found.values()} == {"first contact"}
            of_workers = [asset for asset, entry in found.items() if entry.matching_pools == ("worker",)]
            assert len(of_workers) >= 10
            assert writes(cockpit, audit_log, mark) == []
            released = audit_log.mark()
            await cockpit.engage("true", rollout_release=found["swap-enable"].id)
            left = {*assets} - {*of_workers}
            assert await eventually(partial(is_staged, cockpit, *left), within=60), "one release takes all along"
            assert await eventually(partial(is_settled, cockpit), within=60)
        reboots = Counter(
            one.name for one in audit_log.since(released) if (one.resource, one.subresource) == ("nodes", "status")
        )
        workers = {"worker-0", "worker-1", "worker-2", "worker-gpu"}
        assert {name: count for name, count in reboots.items() if name in workers} == dict.fromkeys(workers, 2)


async def written_by_another_instance(cockpit: Cockpit, asset: str) -> None:
    """The object has other content, owned by our field manager."""
    live = await cockpit.live(asset)
    assert live
    metadata = {part: live["metadata"][part] for part in ("name", "labels")}
    spec = dict(live["spec"])
    if live["kind"] == MACHINE_CONFIG.name:
        spec = {**spec, "kernelArguments": [*spec.get("kernelArguments", ()), f"by={asset}"]}
    else:
        spec = {**spec, "kubeletConfig": {**spec["kubeletConfig"], "maxPods": 99}}
    theirs = {"apiVersion": live["apiVersion"], "kind": live["kind"], "metadata": metadata, "spec": spec}
    await cockpit.client.apply(theirs, manager=AUTOPILOT, force=True)


async def rendered(cockpit: Cockpit) -> set[str]:
    found = await cockpit.client.list(MACHINE_CONFIG, EVERYTHING)
    names = (one["metadata"]["name"] for one in found)
    return {name for name in names if name.startswith("rendered-worker-")}


async def is_settled(cockpit: Cockpit) -> bool:
    """All nodes of the pool run what its sources give, and nothing is about to change that."""
    client = cockpit.client
    pools, configs, kubelets = [
        await client.list(kind, EVERYTHING, SimulatedObject)
        for kind in (MACHINE_CONFIG_POOL, MACHINE_CONFIG, KUBELET_CONFIG)
    ]
    specs = {one.name: one.spec for one in configs}
    for generated in kubelet_machine_configs(pools, kubelets):
        if specs.get(generated["metadata"]["name"]) != generated["spec"]:
            return False
    worker = next(one for one in pools if one.name == "worker")
    rendering = render(worker, configs)
    assert rendering
    running = [part.get("configuration", {}).get("name") for part in (worker.spec, worker.status)]
    return running == [rendering.name] * 2 and await is_updated(cockpit)
