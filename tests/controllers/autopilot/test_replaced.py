"""Obsolete objects that an asset replaces: nodes reboot without them, so their deletion is staged like an update."""

from dataclasses import replace
from functools import partial

import msgspec
import pytest

from tests.audit import AuditLog
from tests.catalog.builders import a_kubelet_config
from tests.cli.commands import steward
from tests.controllers.autopilot.rig import AutopilotRig, Object
from tests.controllers.autopilot.staging_rig import (
    KUBELET,
    OTHER,
    SCOPE,
    has_passed,
    is_settled,
    make_config,
    rendered,
    writes,
)
from tests.controllers.autopilot.test_kept_tombstones import UNMANAGED
from tests.controllers.autopilot.test_tombstones import OURS, is_gone
from tests.eventually import eventually
from virt_steward.controllers.autopilot.options import HCO
from virt_steward.controllers.autopilot.replaced import Replacement
from virt_steward.controllers.autopilot.rollouts.staged import StagedChange, read_entries, ref_of_staging
from virt_steward.controllers.autopilot.verdicts import (
    AssetFailed,
    AssetInSync,
    AssetSkipped,
    EditWar,
    FailureReason,
    SkipReason,
    Verdict,
    pending_hco,
)
from virt_steward.kube.errors import NotFound
from virt_steward.objects.identity import Ref, ref_of
from virt_steward.platform.hco import HYPERCONVERGED
from virt_steward_demo.local.controlplane import ControlPlane
from virt_steward_demo.simulation.platform import PlatformShape

OLD_KEY, NEW_KEY = "kubeletconfig.virt-perf-settings", "95-worker-kubelet-perf-settings"


@pytest.fixture
def shape() -> PlatformShape:
    return replace(PlatformShape(machines_per_worker=0, packages=()), render_delay=1.0)


def a_former(annotations: dict[str, str] | None = None) -> Object:
    """What version 0.1 has written."""
    made = a_kubelet_config("virt-perf-settings")
    made["metadata"] |= {"labels": OURS, "annotations": annotations or {}}
    return made


async def entries(rig: AutopilotRig) -> dict[str, StagedChange]:
    try:
        found = await rig.client.get(ref_of_staging(HCO.namespace))
    except NotFound:
        return {}
    return read_entries(found.get("data") or {})


async def has_entries(rig: AutopilotRig, *keys: str) -> bool:
    return (await entries(rig)).keys() == {*keys}


async def upgraded(rig: AutopilotRig, annotations: dict[str, str] | None = None, **settings: str) -> Object:
    """A cluster of version 0.1, when this one begins."""
    former = a_former(annotations)
    await rig.client.create(former)
    assert await eventually(partial(is_settled, rig), within=60)
    await rig.activate(SCOPE, **settings)
    assert await eventually(partial(rig.is_there, OTHER), within=60)
    return former


async def test_replacement_and_deletion_are_released_together_and_reboot_nodes_once(
    running_rig: AutopilotRig, control_plane: ControlPlane, audit_log: AuditLog
) -> None:
    mark = audit_log.mark()
    former = await upgraded(running_rig, enable_kubelet_performance_settings="true")
    before = await rendered(running_rig)
    assert await eventually(partial(has_entries, running_rig, OLD_KEY, NEW_KEY), within=60)
    found = await entries(running_rig)
    assert {key: (one.asset, one.occasion.value) for key, one in found.items()} == {
        OLD_KEY: (KUBELET, "delete"),
        NEW_KEY: (KUBELET, "create"),
    }
    assert {one.matching_pools for one in found.values()} == {("worker",)}
    assert await eventually(partial(running_rig.has_event, "MachineConfigUpdateStaged"))
    notes = [one["note"] for one in await running_rig.events("MachineConfigUpdateStaged")]
    assert any("is obsolete, and deleting it is staged: nodes of pool worker would reboot" in note for note in notes)
    quiet = audit_log.mark()
    await has_passed(running_rig)
    asked = [one for one in audit_log.since(quiet) if one.user == running_rig.account.user and one.verb != "watch"]
    assert {one.resource for one in asked} <= {"services", "events"}, "what is staged costs no request"
    assert writes(running_rig, audit_log, mark) == []
    shown = await steward("explain", "asset", KUBELET, kubeconfig=control_plane.kubeconfig)
    assert "KubeletConfig virt-perf-settings is obsolete and will be deleted" in " ".join(shown.stdout.split())
    listed = msgspec.json.decode(
        (await steward("diff", KUBELET, "-o", "json", kubeconfig=control_plane.kubeconfig)).stdout
    )
    changed = [(one["action"], one["object"]["name"], one["staged"]) for one in listed["changes"]]
    assert changed == [("create", NEW_KEY, True), ("delete", "virt-perf-settings", True)]
    released = await steward("release", KUBELET, "--yes", kubeconfig=control_plane.kubeconfig)
    assert released.code == 0, released.stderr
    said = " ".join(released.stderr.split())
    assert "KubeletConfig virt-perf-settings is deleted: it is obsolete" in said
    assert "3 nodes reboot (worker: 3 in 3 rounds)" in said
    assert await eventually(partial(is_gone, running_rig, former), within=60)
    assert await eventually(partial(running_rig.is_there, KUBELET), within=60)
    assert await eventually(partial(has_entries, running_rig), within=60)
    assert await eventually(partial(is_settled, running_rig), within=60)
    done = [(one.verb, one.name) for one in writes(running_rig, audit_log, mark)]
    assert done == [("patch", NEW_KEY), ("delete", "virt-perf-settings")], "the settings are never gone"
    assert len(await rendered(running_rig) - before) == 1, "nodes reboot once"
    assert running_rig.account.denied(audit_log.since(mark)) == []


async def test_deletion_without_replacement_waits_for_a_rollout(
    running_rig: AutopilotRig, control_plane: ControlPlane, audit_log: AuditLog
) -> None:
    mark = audit_log.mark()
    former = await upgraded(running_rig)
    assert await eventually(partial(has_entries, running_rig, OLD_KEY), within=60)
    await has_passed(running_rig)
    assert writes(running_rig, audit_log, mark) == []
    status = await steward("status", kubeconfig=control_plane.kubeconfig)
    [row] = [line for line in status.stdout.splitlines() if line.strip().startswith(KUBELET)]
    assert "Staged" in row
    await make_config(running_rig, "80-unrelated")
    assert await eventually(partial(is_gone, running_rig, former), within=60)
    assert await eventually(partial(has_entries, running_rig), within=60)
    assert await eventually(partial(running_rig.has_event, "MachineConfigUpdateReleased"))
    [event] = await running_rig.events("MachineConfigUpdateReleased")
    assert "is done now: pool worker is updating" in event["note"]


@pytest.mark.parametrize("how", ["bypass", "unmanaged"])
async def test_annotations_of_an_obsolete_object_decide(
    running_rig: AutopilotRig, audit_log: AuditLog, how: str
) -> None:
    mark = audit_log.mark()
    former = await upgraded(running_rig, rollout="approve")
    assert await eventually(partial(has_entries, running_rig, OLD_KEY), within=60)
    assert writes(running_rig, audit_log, mark) == []
    prefix = "platform.kubevirt.io/"
    annotations = {"bypass": {f"{prefix}bypass-mcp-rollout-coalescing": "true"}, "unmanaged": UNMANAGED}
    patch = {"metadata": {"annotations": annotations[how]}}
    await running_rig.client.merge_patch(ref_of(former), patch, manager="admin")
    assert await eventually(partial(has_entries, running_rig), within=60)
    if how == "bypass":
        assert await eventually(partial(is_gone, running_rig, former), within=60)
    await has_passed(running_rig)
    assert [one.verb for one in writes(running_rig, audit_log, mark)] == (["delete"] if how == "bypass" else [])


@pytest.mark.parametrize(
    ("verdict", "settled"),
    [
        pytest.param(AssetInSync(), True, id="in-sync"),
        pytest.param(EditWar("x"), True, id="paused"),
        pytest.param(AssetSkipped(SkipReason.CONDITIONS, "x"), True, id="not-wanted"),
        pytest.param(AssetSkipped(SkipReason.CONDITIONS_UNKNOWN, "x"), False, id="perhaps-wanted"),
        pytest.param(AssetFailed(FailureReason.RENDER, "x"), False, id="failed"),
        pytest.param(pending_hco("x"), False, id="pending"),
    ],
)
def test_replaced_object_goes_after_its_replacement(verdict: Verdict, settled: bool) -> None:
    assert Replacement("fast", verdict).is_settled is settled


async def test_failed_replacement_keeps_what_it_replaces(running_rig: AutopilotRig, audit_log: AuditLog) -> None:
    spec = {"deployment": {"nodePlacements": {"infra": {"maxPods": "many"}}}}
    await running_rig.client.merge_patch(Ref(HYPERCONVERGED, HCO), {"spec": spec}, manager="admin")
    mark = audit_log.mark()
    await upgraded(running_rig, rollout="immediate", enable_kubelet_performance_settings="true")
    assert await eventually(partial(running_rig.has_event, "RenderFailed", KUBELET))
    assert await eventually(partial(has_entries, running_rig, OLD_KEY), within=60)
    await has_passed(running_rig)
    assert writes(running_rig, audit_log, mark) == []
