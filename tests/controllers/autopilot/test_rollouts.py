"""Changes that reboot nodes are staged and released: on the API server, with simulated pools."""

import json
from functools import partial

import pytest

from tests.audit import AuditLog
from tests.cli.commands import steward
from tests.controllers.autopilot.rig import AutopilotRig
from tests.controllers.autopilot.staging_rig import (
    FILE,
    KUBELET,
    OTHER,
    SCOPE,
    _has_another_id,
    activated,
    has_passed,
    has_pods,
    is_staged,
    make_config,
    release,
    staged,
    want_pods,
    writes,
)
from tests.events import has_event
from tests.eventually import eventually
from virt_steward.controllers.autopilot.options import HCO
from virt_steward.controllers.autopilot.rollouts.staged import ref_of_staging
from virt_steward.objects.field_changes import FieldChange
from virt_steward.objects.identity import Ref
from virt_steward.platform.hco import HYPERCONVERGED
from virt_steward_demo.local.controlplane import ControlPlane
from virt_steward_demo.simulation.faults import pause_pool, resume_pool


async def test_update_waits_for_a_rollout_and_costs_nothing(running_rig: AutopilotRig, audit_log: AuditLog) -> None:
    await activated(running_rig)
    mark = audit_log.mark()
    await want_pods(running_rig, 321)
    assert await eventually(partial(is_staged, running_rig, KUBELET))
    assert await eventually(partial(running_rig.has_event, "MachineConfigUpdateStaged", KUBELET))
    [event] = await running_rig.events("MachineConfigUpdateStaged", KUBELET)
    assert "nodes of pool worker would reboot" in event["note"]
    assert "It changes /spec/config" in event["note"]
    assert f"virt-steward release {KUBELET}" in event["note"]
    [entry] = (await staged(running_rig)).values()
    assert (entry.matching_pools, entry.occasion.value) == (("worker",), "update")
    assert entry.fields == (FieldChange(FILE, "maxPods: 500", "maxPods: 321"),)
    converged = audit_log.mark()
    await running_rig.activate(SCOPE, enable_metallb="true")
    await has_passed(running_rig)
    asked = [one for one in audit_log.since(converged) if one.user == running_rig.account.user and one.verb != "watch"]
    assert {one.resource for one in asked} <= {"services", "events"}, "a pass over what is staged sends no request"
    assert writes(running_rig, audit_log, mark) == []
    await make_config(running_rig, "80-unrelated")
    assert await eventually(partial(has_pods, running_rig, 321))
    assert await eventually(partial(is_staged, running_rig))
    assert await eventually(partial(running_rig.has_event, "MachineConfigUpdateReleased", KUBELET))
    [released] = await running_rig.events("MachineConfigUpdateReleased", KUBELET)
    assert "is written now: pool worker is updating" in released["note"]
    assert len(writes(running_rig, audit_log, mark)) == 1


async def test_staged_change_ends_when_it_is_not_wanted(running_rig: AutopilotRig, audit_log: AuditLog) -> None:
    await activated(running_rig)
    mark = audit_log.mark()
    await want_pods(running_rig, 321)
    assert await eventually(partial(is_staged, running_rig, KUBELET))
    await want_pods(running_rig, 500)
    assert await eventually(partial(is_staged, running_rig)), "the object is as wanted again"
    await want_pods(running_rig, 321)
    assert await eventually(partial(is_staged, running_rig, KUBELET))
    before = (await staged(running_rig))[KUBELET].id
    await want_pods(running_rig, 322)
    assert await eventually(lambda: _has_another_id(running_rig, before)), "something else is wanted"
    await running_rig.activate(SCOPE, rollout_release=before)
    await has_passed(running_rig)
    assert await is_staged(running_rig, KUBELET), "another change was released"
    await running_rig.activate(OTHER)
    assert await eventually(partial(is_staged, running_rig)), "the asset is out of scope"
    await running_rig.activate(SCOPE)
    assert await eventually(partial(is_staged, running_rig, KUBELET))
    await running_rig.activate("false")
    assert await eventually(partial(is_staged, running_rig)), "the autopilot is off"
    assert writes(running_rig, audit_log, mark) == []


async def test_staged_change_is_recorded_again_if_its_config_map_is_deleted(running_rig: AutopilotRig) -> None:
    await activated(running_rig)
    await want_pods(running_rig, 321)
    assert await eventually(partial(is_staged, running_rig, KUBELET))
    before = await staged(running_rig)
    await running_rig.client.delete(ref_of_staging(HCO.namespace))

    async def is_back() -> bool:
        return await staged(running_rig) == before

    assert await eventually(is_back)


@pytest.mark.parametrize("how", ["release", "bypass", "immediate", "window", "deadline"])
async def test_change_is_released(running_rig: AutopilotRig, audit_log: AuditLog, how: str) -> None:
    await activated(running_rig)
    mark = audit_log.mark()
    await running_rig.activate(SCOPE, rollout="approve")
    await want_pods(running_rig, 321)
    assert await eventually(partial(is_staged, running_rig, KUBELET))
    assert writes(running_rig, audit_log, mark) == []
    match how:
        case "release":
            await release(running_rig, KUBELET)
        case "bypass":
            await running_rig.annotate(KUBELET, bypass_mcp_rollout_coalescing="True")
        case "immediate":
            await running_rig.annotate(KUBELET, rollout="immediate")
        case "window":
            await running_rig.activate(SCOPE, rollout="window", rollout_window="* * * * * 2m")
        case "deadline":
            await running_rig.activate(SCOPE, rollout_deadline="1s", rollout_deadline_action="release")
    assert await eventually(partial(has_pods, running_rig, 321))
    assert await eventually(partial(is_staged, running_rig))
    assert await eventually(partial(running_rig.has_event, "MachineConfigUpdateReleased", KUBELET))
    await has_passed(running_rig)
    assert len(writes(running_rig, audit_log, mark)) == 1


async def test_release_command_releases_what_it_shows(running_rig: AutopilotRig, control_plane: ControlPlane) -> None:
    await activated(running_rig)
    nothing = await steward("release", KUBELET, kubeconfig=control_plane.kubeconfig)
    assert (nothing.code, nothing.stdout) == (1, "")
    assert f"Nothing to release: no change of {KUBELET} is staged" in nothing.stderr
    await want_pods(running_rig, 321)
    assert await eventually(partial(is_staged, running_rig, KUBELET))
    change = (await staged(running_rig))[KUBELET]
    status = await steward("status", kubeconfig=control_plane.kubeconfig)
    [row] = [line for line in status.stdout.splitlines() if line.strip().startswith(KUBELET)]
    assert "Staged" in row
    explained = await steward("explain", "asset", KUBELET, kubeconfig=control_plane.kubeconfig)
    assert f"Staged change {change.id}" in explained.stdout
    assert "/spec/config/storage/files" in explained.stdout
    assert "impact: 3 nodes reboot (worker: 3 in 3 rounds)" in explained.stdout
    other = await steward("release", KUBELET, "--id", f"{KUBELET}@other", kubeconfig=control_plane.kubeconfig)
    assert other.code == 1
    assert f"is now {change.id}; review it first" in other.stderr
    released = await steward(
        *("release", KUBELET, "--id", change.id, "--comment", "CHG-7", "-o", "json"),
        kubeconfig=control_plane.kubeconfig,
    )
    assert released.code == 0, released.stderr
    assert "/spec/config/storage/files" in released.stderr
    assert "3 nodes reboot (worker: 3 in 3 rounds)" in released.stderr
    assert json.loads(released.stdout)["results"][0]["released"]["id"] == change.id
    assert await eventually(partial(has_pods, running_rig, 321))
    hco, decision = Ref(HYPERCONVERGED, HCO), f"admin released {change.id}: CHG-7"
    assert await eventually(partial(has_event, running_rig.client, hco, decision))
    explained = await steward("explain", "asset", KUBELET, kubeconfig=control_plane.kubeconfig)
    assert f": {decision}\n" in explained.stdout


async def test_deadline_only_warns_unless_told(running_rig: AutopilotRig, audit_log: AuditLog) -> None:
    await activated(running_rig)
    mark = audit_log.mark()
    await running_rig.activate(SCOPE, rollout_deadline="1s")
    await want_pods(running_rig, 321)
    assert await eventually(partial(running_rig.has_event, "MachineConfigUpdateOverdue", KUBELET))
    assert await is_staged(running_rig, KUBELET)
    assert writes(running_rig, audit_log, mark) == []


async def test_approve_holds_creation_too(running_rig: AutopilotRig, audit_log: AuditLog) -> None:
    await running_rig.activate(SCOPE, rollout="approve", enable_kubelet_performance_settings="true")
    assert await eventually(partial(is_staged, running_rig, KUBELET))
    mark = audit_log.mark()
    await running_rig.activate(SCOPE, enable_metallb="true")
    assert await eventually(partial(running_rig.is_there, OTHER))
    await has_passed(running_rig)
    assert not await running_rig.is_there(KUBELET)
    asked = [one for one in audit_log.since(mark) if one.user == running_rig.account.user and one.verb != "watch"]
    assert "machineconfigs" not in {one.resource for one in asked}
    await release(running_rig, KUBELET)
    assert await eventually(partial(running_rig.is_there, KUBELET))
    assert await eventually(partial(is_staged, running_rig))


async def test_paused_pool_holds_a_change_until_resumed(running_rig: AutopilotRig, audit_log: AuditLog) -> None:
    await activated(running_rig)
    await pause_pool(running_rig.client, "worker")
    mark = audit_log.mark()
    await want_pods(running_rig, 321)
    assert await eventually(partial(is_staged, running_rig, KUBELET))
    await make_config(running_rig, "80-unrelated")
    await has_passed(running_rig)
    assert await is_staged(running_rig, KUBELET)
    assert writes(running_rig, audit_log, mark) == []
    await resume_pool(running_rig.client, "worker")
    assert await eventually(partial(has_pods, running_rig, 321)), "then its rollout begins"
