"""`virt-steward switch-check` on what the Go operators leave behind: findings, exit codes, and no write."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pytest

from tests.cli.commands import steward
from tests.console.people import People, a_rule, user_of
from tests.controllers.approver.lifecycle import define_all
from tests.controllers.autopilot.staging_rig import workers_are_settled
from tests.eventually import eventually
from tests.leftovers import delete_all
from tests.otheroperator import OtherOperator
from tests.recordings import recording, restore
from tests.widgets import install_crd
from virt_steward.apis.virtplatformconfig import VIRT_PLATFORM_CONFIG_CRD
from virt_steward.controllers.autopilot.access import GO_LEASE
from virt_steward.kube.errors import NotFound
from virt_steward.objects.identity import Key, ref_of
from virt_steward_demo.simulation.install import make_namespace
from virt_steward_demo.simulation.kinds.virtualmachines import VIRTUAL_MACHINE, VIRTUAL_MACHINE_INSTANCE
from virt_steward_demo.simulation.platform import PlatformShape, SimulatedPlatform

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from tests.audit import AuditLog
    from tests.cli.commands import Ended
    from virt_steward.kube.client import Client, Object
    from virt_steward_demo.local.controlplane import ControlPlane

RECORDINGS = ("autopilot-default", "advisor-load-aware-completed")
HOLDER = "virt-platform-autopilot-6d5f8c9b7-x2x4z_1234"
DEPLOYMENT = Key("openshift-cnv", "virt-platform-autopilot")


def a_deployment(key: Key, *arguments: str) -> Object:
    labels = {"app": key.name}
    container = {"name": "manager", "image": "example/manager", "args": list(arguments)}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": key.name, "namespace": key.namespace},
        "spec": {
            "replicas": 0,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": [container]}},
        },
    }


def recorded() -> list[Object]:
    """Both recordings on one platform, which serves one version of HyperConverged."""
    objects = [one for name in RECORDINGS for one in recording(name) if one["apiVersion"] != "hco.kubevirt.io/v1beta1"]
    for rule in (one for one in objects if one["kind"] == "PrometheusRule"):  # its content was left out
        for group in rule["spec"]["groups"]:
            group["rules"] = [{"alert": "VirtPlatformAutopilotRenderFailed", "expr": "up"}]
    for service in (one for one in objects if one["kind"] == "Service"):  # the address is of another network
        service["spec"] = {name: value for name, value in service["spec"].items() if not name.startswith("clusterIP")}
    return objects


@pytest.fixture
async def left_behind(admin: Client) -> AsyncIterator[Client]:
    """A platform with what two Go operators have left; the autopilot still runs."""
    await delete_all(admin, VIRTUAL_MACHINE, VIRTUAL_MACHINE_INSTANCE)
    async with SimulatedPlatform(admin, PlatformShape(machines_per_worker=1, packages=(), pace=0.02)):
        await install_crd(admin, VIRT_PLATFORM_CONFIG_CRD.manifest())
        objects = recorded()
        await restore(admin, objects)
        deployment = a_deployment(DEPLOYMENT, "run", "--namespace=openshift-cnv", "--metrics-bind-address=:8443")
        await admin.create(deployment)
        other = OtherOperator(admin, Key(DEPLOYMENT.namespace, GO_LEASE))
        await other.renew(HOLDER, 300)
        assert await eventually(lambda: workers_are_settled(admin), within=60)  # else a rollout takes changes along
        yield admin
        await other.delete()
        for obj in (deployment, *objects):
            if obj["kind"] != "MachineConfigPool":
                with suppress(NotFound):
                    await admin.delete(ref_of(obj))


async def check(control_plane: ControlPlane, token: str, folder: Path, *arguments: str) -> Ended:
    kubeconfig = folder / "kubeconfig"
    kubeconfig.write_text(control_plane.kubeconfig.read_text().replace(control_plane.token, token))
    return await steward("switch-check", *arguments, kubeconfig=kubeconfig)


def findings(ended: Ended) -> dict[str, dict[str, str]]:
    """The messages by controller and subject."""
    found: dict[str, dict[str, str]] = {}
    for report in json.loads(ended.stdout)["controllers"]:
        messages = found.setdefault(report["controller"], {})
        for one in report["findings"]:
            messages[one["subject"]] = f"{messages.get(one['subject'], '')}{one['message']}\n"
    return found


def details(ended: Ended, subject: str) -> dict[str, Any]:
    reports = json.loads(ended.stdout)["controllers"]
    return next(one for report in reports for one in report["findings"] if one["subject"] == subject)


async def test_switch_check_previews_all_without_a_write(
    left_behind: Client, namespace: str, control_plane: ControlPlane, audit_log: AuditLog, tmp_path: Path
) -> None:
    token = await People(left_behind, namespace).admin()
    begin = audit_log.mark()
    ended = await check(control_plane, token, tmp_path, "advisor", "autopilot", "-o", "json")
    assert ended.code == 2, ended.stderr
    mine = [one for one in audit_log.since(begin) if one.user == user_of(token)]
    assert mine
    assert [f"{one.verb} {one.uri}" for one in mine if one.is_write and "dryRun=All" not in one.uri] == []
    found = findings(ended)
    autopilot = found["autopilot"]
    swap = details(ended, "MachineConfig 90-worker-swap-online")
    assert swap["message"].startswith("would be staged, not changed (asset swap-enable)")
    assert (
        "3 nodes reboot (worker: 3 in 3 rounds); 2 VMs must migrate; 1 cannot migrate and stops instead"
        in swap["disruption"]
    )
    assert swap["diff"]
    assert (
        "VirtPlatformAutopilotRenderFailed" in autopilot["PrometheusRule openshift-cnv/virt-platform-autopilot-alerts"]
    )
    assert "would be staged, not changed (asset observability-operator)" in autopilot["UIPlugin monitoring"]
    assert "virt-platform-autopilot runs now" in autopilot[f"Lease {DEPLOYMENT.namespace}/{GO_LEASE}"]
    settings = autopilot[f"Deployment {DEPLOYMENT}"]
    assert "--hyperconverged openshift-cnv/kubevirt-hyperconverged" in settings
    assert "metrics are on :8443" in settings
    assert "becomes CompletedWithUpgrade" in found["advisor"]["VirtPlatformConfig load-aware-rebalancing"]
    assert (
        "would change once you approve the plan"
        in found["advisor"]["KubeDescheduler openshift-kube-descheduler-operator/cluster"]
    )


async def test_switch_check_says_which_right_is_missing(
    admin: Client, namespace: str, control_plane: ControlPlane, tmp_path: Path
) -> None:
    await define_all(admin)
    await make_namespace(admin, "ip-1")
    objects = recording("approver-counting")
    await restore(admin, objects)
    rules = a_rule("operators.coreos.com", "operators.bapu.cloud"), a_rule("", resources=("namespaces",))
    token = await People(admin, namespace).somebody(*rules)
    try:
        ended = await check(control_plane, token, tmp_path, "approver")
    finally:
        for obj in objects:
            await admin.delete(ref_of(obj))
    assert ended.code == 1
    assert "Verdict: cannot tell" in ended.stdout
    assert "? Lease 08a05259.bapu.cloud: cannot tell: list Lease.coordination.k8s.io" in ended.stdout
    assert "~ InstallPlanApprover ip-1/all: covers all namespaces now" in ended.stdout, "what can be told is told"
    assert "Traceback" not in ended.stderr
