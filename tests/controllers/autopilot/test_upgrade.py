"""Starts the autopilot on what version 0.1 has left: nothing is written before somebody acts, and choices stay."""

from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from tests.audit import AuditLog
from tests.controllers.autopilot.rig import AutopilotRig, at_work
from tests.controllers.autopilot.staging_rig import is_settled, is_staged, rendered
from tests.controllers.autopilot.test_switchover import boots, written_by
from tests.eventually import eventually
from tests.recordings import V01, recording, restore
from virt_steward.controllers.autopilot.annotation_keys import CREATED, PAUSED
from virt_steward.kube.client import Object
from virt_steward.objects.identity import ref_of
from virt_steward_demo.local.controlplane import ControlPlane
from virt_steward_demo.simulation.platform import PlatformShape

DELETES_KUBELET_CONFIG = "kubelet-perf-settings"
"""The asset of which a drop-in has replaced the KubeletConfig of version 0.1."""
EXPORTER = "kubevirt-metrics-exporter"
CHANGED = {
    "autopilot-default": (
        "autopilot-dashboard",
        "prometheus-alerts",
        "observability-operator",
        "troubleshooting-panel-ui-plugin",
    ),
    "autopilot-opt-ins": (
        "autopilot-dashboard",
        "observability-operator",
        "kubevirt-metrics-exporter-namespace",
        "kubevirt-metrics-exporter-role",
        "kubevirt-metrics-exporter-role-binding",
        "kubevirt-metrics-exporter-scc",
        "kubevirt-metrics-exporter-scc-role",
        "kubevirt-metrics-exporter-scc-role-binding",
    ),
}
"""Assets that reboot no node and that this version wants differently, or that version 0.1 did not create."""
REBOOTING = {"autopilot-default": (), "autopilot-opt-ins": ("ksm-zero-only", "thp-tuning")}


@pytest.fixture
def shape() -> PlatformShape:
    return replace(PlatformShape(workers=1, machines_per_worker=0, packages=()), render_delay=0.5)


def recorded(name: str) -> list[Object]:
    """The recording of the opt-ins has only what differs from the other."""
    found = [*recording("autopilot-default", folder=V01), *recording(name, folder=V01)]
    return [*{ref_of(obj): obj for obj in found if obj["kind"] != "Lease"}.values()]


@pytest.mark.parametrize("name", CHANGED)
async def test_upgrade_writes_nothing_until_somebody_acts(
    rig: AutopilotRig, control_plane: ControlPlane, tmp_path: Path, audit_log: AuditLog, name: str
) -> None:
    objects = recorded(name)
    await restore(rig.client, objects)
    assert await eventually(partial(is_settled, rig), within=60)
    before, renderings = await boots(rig), await rendered(rig)
    live = {ref_of(obj): await rig.client.get(ref_of(obj)) for obj in objects}
    mark = audit_log.mark()
    rebooting = (DELETES_KUBELET_CONFIG, *REBOOTING[name])
    async with at_work(rig, control_plane, tmp_path):
        assert await eventually(partial(is_staged, rig, *rebooting, *CHANGED[name]), within=60)
        assert written_by(rig, audit_log, mark) == []
        assert (await boots(rig), await rendered(rig)) == (before, renderings)
        assert {ref: await rig.client.get(ref) for ref in live} == live
        await rig.activate("true", takeover="accept")
        assert await eventually(partial(is_staged, rig, *rebooting), within=60)
        written = {one.name for one in written_by(rig, audit_log, mark)}
        named = {rig.ref(asset).key.name for asset in CHANGED[name]}
        named |= {
            one.object.name for one in rig.catalog.assets if one.object.namespace == EXPORTER
        }  # follows its namespace
        assert written - named <= {"kubevirt-hyperconverged"}, "which has a new annotation"
        assert (await boots(rig), await rendered(rig)) == (before, renderings)
    assert rig.account.denied(audit_log.since(mark)) == []


async def test_upgrade_keeps_choices_and_signatures(
    rig: AutopilotRig, control_plane: ControlPlane, tmp_path: Path
) -> None:
    await restore(rig.client, recorded("autopilot-opt-ins"))
    assert await eventually(partial(is_settled, rig), within=60)  # else a rollout takes changes along
    await rig.activate("true", takeover="accept")
    async with at_work(rig, control_plane, tmp_path):
        rebooting = (DELETES_KUBELET_CONFIG, *REBOOTING["autopilot-opt-ins"])
        assert await eventually(partial(is_staged, rig, *rebooting), within=60)
    assets = ("prometheus-alerts", "metrics-service", "descheduler-loadaware", "autopilot-dashboard")
    alerts, service, descheduler, dashboard = [await rig.client.get(rig.ref(asset)) for asset in assets]
    assert alerts["metadata"]["annotations"][PAUSED] == "true"
    assert [len(group["rules"]) for group in alerts["spec"]["groups"]] == [0], "as the other client left it"
    assert service["metadata"]["labels"]["app"] == "mine", "it is unmanaged"
    assert descheduler["spec"]["deschedulingIntervalSeconds"] == 300, "the field is ignored"
    assert dashboard["metadata"]["annotations"][CREATED] == dashboard["metadata"]["uid"], "it can be deleted on opt-out"
