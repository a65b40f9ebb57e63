"""A real Prometheus scrapes running controllers by the shipped configuration, and each alert fires for its cause."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.clients import a_client
from tests.controllers.advisor.rig import AdvisorRig, no_reboots
from tests.controllers.approver.lifecycle import Lifecycle, a_lifecycle, an_approver
from tests.controllers.placement.scene import Scene
from tests.eventually import eventually
from tests.fleet import a_machine_definition
from tests.machines import a_definition_of_machines
from tests.ports import a_free_port
from tests.prometheus.server import PrometheusServer
from tests.stress.monitoring.installation import (
    NAMESPACE,
    MonitoredInstallation,
    a_monitored_installation,
    alerts_of,
)
from tests.widgets import install_crd
from virt_steward.catalog.load import load
from virt_steward.controllers import NAMES
from virt_steward.controllers.advisor.profiles.load_aware_rebalancing import DESCHEDULER
from virt_steward.controllers.autopilot.options import HCO
from virt_steward.controllers.autopilot.watches import ref_of_asset
from virt_steward.kube.client import Client, Selection
from virt_steward.kube.errors import Forbidden, Refused
from virt_steward.objects.identity import Kind, Ref
from virt_steward.platform.hco import HYPERCONVERGED
from virt_steward_demo.local.controlplane import ControlPlane
from virt_steward_demo.simulation.install import install
from virt_steward_demo.simulation.kinds.descheduler import KUBE_DESCHEDULER, LATEST, kube_descheduler
from virt_steward_demo.simulation.platform import PlatformShape, SimulatedPlatform

Object = dict[str, Any]

WITHIN = 60.0
NOT_RUNNING = {
    "advisor": "AdvisorNotRunning",
    "approver": "InstallPlanApproverNotRunning",
    "autopilot": "AutopilotNotRunning",
    "placement": "PlacementNotRunning",
}
SHAPE = PlatformShape(machines_per_worker=0, packages=())


@asynccontextmanager
async def a_platform(control_plane: ControlPlane, shape: PlatformShape = SHAPE) -> AsyncIterator[None]:
    async with a_client(control_plane) as client, SimulatedPlatform(client, shape):
        for definition in (a_definition_of_machines(), a_machine_definition()):
            await install_crd(client, definition)
        yield


class Expected:
    """Waits for alerts, and remembers which have fired."""

    def __init__(self, server: PrometheusServer, controller: str) -> None:
        self.fired: set[str] = set()
        self._server = server
        self._known = {*alerts_of(controller), *alerts_of("processes")}

    async def fires(self, *alerts: str, **labels: str) -> None:
        for alert in alerts:
            assert alert in self._known
            fired = await eventually(partial(self._server.fires, alert, **labels), within=WITHIN)
            assert fired, (alert, await self._server.firing(), await self._server.troubles())
            self.fired.add(alert)

    async def ends(self, alert: str) -> None:
        async def is_over() -> bool:
            return not await self._server.fires(alert)

        assert await eventually(is_over, within=WITHIN), alert

    async def is_all_of(self, controller: str) -> None:
        """Every alert of the controller was seen, and no rule failed."""
        assert {*alerts_of(controller)} - self.fired == set()
        assert await self._server.failed_rules() == []


async def test_all_controllers_are_scraped_and_alert_when_they_stop(
    empty_cluster: ControlPlane, tmp_path: Path
) -> None:
    async with (
        a_platform(empty_cluster),
        a_monitored_installation(empty_cluster, tmp_path) as installation,
    ):
        for name in NAMES:
            await installation.start(name)
        await may_discover_and_nothing_else(installation, empty_cluster)
        async with installation.scraped() as server:
            up = [labels for labels, value in await server.query("up") if value == 1]
            assert {one["pod"] for one in up} == {f"virt-steward-{name}-1" for name in NAMES}
            assert {(one["namespace"], one["job"], one["endpoint"]) for one in up} == {
                (NAMESPACE, "virt-steward-metrics", "metrics")
            }
            assert await eventually(partial(is_quiet, server), within=WITHIN), await server.firing()
            for name in NAMES:
                installation.processes[name].kill()
                assert await eventually(partial(server.fires, NOT_RUNNING[name], severity="critical"), within=WITHIN)
            fired = {one["alertname"] for one in await server.firing()}
            assert fired == {*NOT_RUNNING.values()}, "nothing else fires because of that"


async def is_quiet(server: PrometheusServer) -> bool:
    return await server.firing() == []


async def may_discover_and_nothing_else(installation: MonitoredInstallation, control_plane: ControlPlane) -> None:
    async with a_client(control_plane, await installation.prometheus_token()) as prometheus:
        for kind in (
            Kind("", "Service", "services"),
            Kind("", "Endpoints", "endpoints"),
            Kind("", "Pod", "pods"),
            Kind("discovery.k8s.io", "EndpointSlice", "endpointslices"),
        ):
            await prometheus.list(kind, Selection(NAMESPACE))
        for kind, namespace in (("ConfigMap", NAMESPACE), ("Service", "openshift-cnv")):
            with pytest.raises(Forbidden):
                await prometheus.list(Kind("", kind, f"{kind.lower()}s"), Selection(namespace))


async def test_alerts_of_the_advisor_arrive(empty_cluster: ControlPlane, tmp_path: Path) -> None:
    shape = PlatformShape(machines_per_worker=0, packages=(), without=(KUBE_DESCHEDULER.name,))
    async with (
        a_platform(empty_cluster, shape),
        a_monitored_installation(empty_cluster, tmp_path) as installation,
    ):
        await installation.start("advisor")
        advisor = AdvisorRig(installation.client)
        async with installation.scraped() as server:
            expected = Expected(server, "advisor")
            await advisor.ask("DryRun", options=no_reboots())
            await expected.fires("VirtPlatformConfigFailed", phase="PrerequisiteFailed", profile=advisor.profile)
            await install(installation.client, kube_descheduler(LATEST).definition())
            await expected.fires("VirtPlatformConfigUnreviewed", profile=advisor.profile)
            await expected.ends("VirtPlatformConfigFailed")
            await advisor.ask("Apply")
            assert await advisor.reaches("Completed", within=WITHIN), await advisor.status()
            await installation.client.merge_patch(DESCHEDULER, {"spec": {"deschedulingIntervalSeconds": 7200}})
            await expected.fires("VirtPlatformConfigDrifted", profile=advisor.profile)
            installation.processes["advisor"].kill()
            await expected.fires(NOT_RUNNING["advisor"])
            await expected.is_all_of("advisor")


async def test_alerts_of_the_approver_and_of_every_process_arrive(empty_cluster: ControlPlane, tmp_path: Path) -> None:
    (tmp_path / "notify.yaml").write_text(f"chat: {{url: 'http://127.0.0.1:{a_free_port()}/hook'}}\n")
    async with (
        a_platform(empty_cluster),
        a_monitored_installation(empty_cluster, tmp_path) as installation,
    ):
        await installation.start("approver", f"--notify-config={tmp_path}/notify.yaml")
        olm = await a_lifecycle(installation.client, "shop")
        async with installation.scraped() as server:
            expected = Expected(server, "approver")
            await plans_that_wait(installation.client, olm)
            about = {"namespace": "shop", "approver": "ann"}
            await expected.fires("InstallPlanBlocked", reason="NoSubscription", **about)
            await expected.fires("InstallPlanForgotten", reason="NotPinned", **about)
            await expected.fires("NotificationsLost", endpoint="chat")
            installation.certificate.swap_content(b"garbage", b"garbage")
            await expected.fires("MetricsCertificateStale", pod="virt-steward-approver-1", namespace=NAMESPACE)
            assert await server.query("up == 1"), "with the previous certificate"
            installation.processes["approver"].kill()
            await expected.fires(NOT_RUNNING["approver"])
            await expected.is_all_of("approver")
            assert {*alerts_of("processes")} <= expected.fired


async def plans_that_wait(client: Client, olm: Lifecycle) -> None:
    await an_approver(client, olm.namespace, notify="chat")
    await olm.offer_alone("orphan-operator.v1.0.0")
    await olm.subscribe("demo-operator")
    await olm.offer("demo-operator.v1.0.0")


async def test_alerts_of_placement_arrive(empty_cluster: ControlPlane, tmp_path: Path) -> None:
    async with (
        a_platform(empty_cluster),
        a_monitored_installation(empty_cluster, tmp_path) as installation,
    ):
        await installation.start("placement")
        scene = Scene(installation.client, empty_cluster, "openshift-cnv", NAMESPACE)
        async with installation.scraped() as server:
            expected = Expected(server, "placement")
            await scene.machine("lonely")
            await expected.fires("MachineUnplaced")
            await scene.join("dark", server=f"https://127.0.0.1:{a_free_port()}")
            await expected.fires("KubevirtClusterUnreachable", cluster="dark")
            installation.processes["placement"].kill()
            await expected.fires(NOT_RUNNING["placement"])
            await expected.is_all_of("placement")


async def test_alerts_of_the_autopilot_arrive(empty_cluster: ControlPlane, tmp_path: Path) -> None:
    shape = PlatformShape(machines_per_worker=0, packages=(), without=("MetalLB",))
    async with (
        a_platform(empty_cluster, shape),
        a_monitored_installation(empty_cluster, tmp_path) as installation,
    ):
        client = installation.client
        stone = {"apiVersion": "remediation.medik8s.io/v1alpha1", "kind": "NodeHealthCheck"}
        await client.create({**stone, "metadata": {"name": "virt-node-health-check"}, "spec": {}})  # without our label
        await installation.start("autopilot")
        async with installation.scraped() as server:
            expected = Expected(server, "autopilot")
            await refuse(client, "forkliftcontrollers", "forklift.konveyor.io")
            await activate(client, enable_metallb="true", enable_logging="true", enable_mtv="true", rollout="approve")
            await expected.fires(*both("TombstoneStuck"), name="virt-node-health-check")
            await expected.fires(*both("DependencyMissing"), kind="MetalLB")
            await expected.fires("VirtPlatformAutopilotLoggingStorageNotConfigured", asset="logging-lokistack")
            await expected.fires("VirtPlatformAutopilotMachineConfigUpdateStaged", pool="worker")
            await expected.fires(*both("SyncFailed"), kind="ForkliftController")
            await annotate(client, "descheduler-loadaware", drift="report")
            await client.merge_patch(
                the_object("descheduler-loadaware"), {"spec": {"deschedulingIntervalSeconds": 7200}}
            )
            await expected.fires("VirtPlatformDriftReported", kind="KubeDescheduler")
            await annotate(client, "descheduler-dashboard", reconcile_paused="true")
            await expected.fires(*both("ThrashingDetected"), kind="PersesDashboard")
            rules = (await client.get(the_object("prometheus-alerts")))["spec"]["groups"]
            assert not [rule for group in rules for rule in group["rules"]], "no alert fires twice"
            assert (await client.get(the_object("metrics-servicemonitor")))["spec"]["endpoints"] == []
            installation.processes["autopilot"].kill()
            await expected.fires(NOT_RUNNING["autopilot"])
            await expected.is_all_of("autopilot")


def both(name: str) -> tuple[str, str]:
    """The alert by its name, and by the deprecated one."""
    return f"VirtPlatformAutopilot{name}", f"VirtPlatform{name}"


def the_object(asset: str) -> Ref:
    [found] = [one for one in load().assets if one.name == asset]
    return ref_of_asset(found, HCO)


async def activate(client: Client, **annotations: str) -> None:
    await annotated(client, Ref(HYPERCONVERGED, HCO), autopilot="true", **annotations)


async def annotate(client: Client, asset: str, **annotations: str) -> None:
    await annotated(client, the_object(asset), **annotations)


async def annotated(client: Client, ref: Ref, **annotations: str) -> None:
    given = {f"platform.kubevirt.io/{name.replace('_', '-')}": value for name, value in annotations.items()}
    await client.merge_patch(ref, {"metadata": {"annotations": given}}, manager="admin")


async def refuse(client: Client, resource: str, group: str) -> None:
    """Have the API server refuse all writes to a kind."""
    rule = {"apiGroups": [group], "apiVersions": ["*"], "resources": [resource], "operations": ["CREATE", "UPDATE"]}
    api = {"apiVersion": "admissionregistration.k8s.io/v1", "metadata": {"name": "refuse"}}
    spec: Object = {
        "matchConstraints": {"resourceRules": [rule]},
        "validations": [{"expression": "false", "message": "not today"}],
    }
    await client.create({**api, "kind": "ValidatingAdmissionPolicy", "spec": spec})
    binding = {"policyName": "refuse", "validationActions": ["Deny"]}
    await client.create({**api, "kind": "ValidatingAdmissionPolicyBinding", "spec": binding})
    probe = {
        "apiVersion": f"{group}/v1beta1",
        "kind": "ForkliftController",
        "metadata": {"name": "probe", "namespace": "openshift-mtv"},
        "spec": {},
    }

    async def is_refused() -> bool:
        try:
            await client.create(probe, dry_run=True)
        except Refused:
            return True
        return False

    assert await eventually(is_refused, within=WITHIN)
