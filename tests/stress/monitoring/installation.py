"""An installation whose controllers run as processes here, and a real Prometheus that scrapes them.

All objects are those of `virt-steward manifests --monitoring prometheus`. Each process has the arguments of its
Deployment and the rights of its ServiceAccount; only addresses and the folder of the certificate are other ones.
"""

import re
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack, asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import yaml

from tests.clients import a_client
from tests.controllers.approver.process import Process, a_process
from tests.eventually import eventually
from tests.kube.certificates import a_pair, an_authority
from tests.ports import a_free_port
from tests.prometheus.operator import discovered, scrape_config
from tests.prometheus.server import PrometheusServer, a_prometheus
from tests.runtime.tls_clients import MountedSecret
from virt_steward.kube.client import Client
from virt_steward.objects.identity import Key, Kind, Ref
from virt_steward.packaging.monitoring import CLUSTER_MONITORING, METRICS, MonitoringApis, MonitoringOptions
from virt_steward.packaging.parts import CERTIFICATE, InstallOptions, installed
from virt_steward.runtime.access import Installation
from virt_steward_demo.local.accounts import token_for, write_kubeconfig
from virt_steward_demo.local.controlplane import ControlPlane
from virt_steward_demo.simulation.install import install, make_namespace

Object = dict[str, Any]

NAMESPACE = "virt-steward"
PROMETHEUS = Key("openshift-monitoring", "prometheus-k8s")
OPTIONS = InstallOptions(
    Installation(NAMESPACE, secret_namespaces=(NAMESPACE,)), monitoring=MonitoringOptions(MonitoringApis.PROMETHEUS)
)
HURRY = {
    "> 3 * 86400": "> 2",
    "> 14 * 86400": "> 2",
    "> 3600": "> 2",
    "> 900": "> 2",
    "[1h]": "[20s]",
    "[30m]": "[3s]",
    "offset 30m": "offset 3s",
}
"""Waits of rules, and what they are in these tests. Nothing else of a rule is changed but `for` and the intervals."""


def hurried(group: Object) -> Object:
    """The same alerts, which fire within seconds of their cause."""
    rules = []
    for rule in group["rules"]:
        expr = rule["expr"]
        for usual, short in HURRY.items():
            expr = expr.replace(usual, short)
        assert not re.search(r"\d{3,}|\d[hm]\b", expr), f"add the wait to HURRY: {expr}"
        rules.append({**{name: value for name, value in rule.items() if name != "for"}, "expr": expr})
    return {"name": group["name"], "interval": "1s", "rules": rules}


class MonitoredInstallation:
    """What a test does with it."""

    def __init__(self, client: Client, control_plane: ControlPlane, folder: Path) -> None:
        self.client = client
        service = f"virt-steward-metrics.{NAMESPACE}.svc"
        self.certificate = MountedSecret(folder / "tls", a_pair(service))
        self.processes: dict[str, Process] = {}
        self._control_plane = control_plane
        self._folder = folder
        self._running = ExitStack()
        self._targets: list[Object] = []

    async def install(self) -> None:
        """Apply all of it. There is no node to run the pods of the Deployments on."""
        for namespace in (PROMETHEUS.namespace, "openshift-cnv"):
            await make_namespace(self.client, namespace)
        parts = installed(OPTIONS)
        await install(self.client, *parts.pop("crds"))  # and wait until they are served
        for objects in parts.values():
            for obj in objects:
                await self.client.apply(obj, manager="installer", force=True)
        await self.serve_certificates()

    async def serve_certificates(self) -> str:
        """As OpenShift does it where it is asked to: the authority is injected, and its Prometheus looks here.

        OLM may apply the ConfigMap again, without the authority; OpenShift would inject it again.
        """
        labels = (await self.client.get(Ref(Kind("", "Namespace"), Key("", NAMESPACE))))["metadata"]["labels"]
        assert labels[CLUSTER_MONITORING] == "true", "else OpenShift's Prometheus would not look here"
        authority = {"data": {"service-ca.crt": an_authority().chain.decode()}}
        reference = Ref(Kind("", "ConfigMap"), Key(NAMESPACE, "virt-steward-metrics-ca"))
        data = (await self.client.merge_patch(reference, authority))["data"]
        return str(data["service-ca.crt"])

    async def start(self, controller: str, *more: str) -> None:
        """Run a controller as its Deployment says."""
        deployment = await self.client.get(
            Ref(Kind("apps", "Deployment"), Key(NAMESPACE, f"virt-steward-{controller}"))
        )
        service = await self.client.get(Ref(Kind("", "Service"), Key(NAMESPACE, "virt-steward-metrics")))
        pod = deployment["spec"]["template"]
        account = {"metadata": {"name": pod["spec"]["serviceAccountName"], "namespace": NAMESPACE}}
        folder = self._folder / controller
        folder.mkdir()
        kubeconfig = folder / "kubeconfig"
        write_kubeconfig(kubeconfig, self._control_plane, await self._token(account))
        port = a_free_port()
        address = f"127.0.0.1:{port}"
        [container] = pod["spec"]["containers"]
        args = [
            one.replace(f"=:{METRICS}", f"={address}").replace(CERTIFICATE, str(self.certificate.folder))
            for one in container["args"]
        ]
        options = (*args, "--lease-retry=0.5", *more)
        process = a_process(kubeconfig, NAMESPACE, *options, controller=controller)
        self.processes[controller] = self._running.enter_context(process)
        self._targets.append(discovered(service, pod, f"virt-steward-{controller}-1", address))

    async def _token(self, account: Object) -> str:
        """A token of a ServiceAccount that exists."""
        wanted = {"apiVersion": "v1", "kind": "ServiceAccount", **account}
        return await token_for(self.client, [wanted])

    @asynccontextmanager
    async def scraped(self) -> AsyncIterator[PrometheusServer]:
        """Have Prometheus scrape all that runs, as the objects in the cluster say."""
        monitors = await self.client.list(Kind("monitoring.coreos.com", "ServiceMonitor", "servicemonitors"))
        [monitor] = [one for one in monitors if one["metadata"]["namespace"] == NAMESPACE]
        monitor["spec"]["endpoints"][0]["interval"] = "1s"
        token, authority = self._folder / "token", self._folder / "service-ca.crt"
        token.write_text(await self.prometheus_token())
        authority.write_text(await self.serve_certificates())
        (self._folder / "rules.yaml").write_text(yaml.safe_dump({"groups": [*await self._groups()]}))
        config = scrape_config(monitor, authority, token, self._targets)
        async with a_prometheus(self._folder, scrape_configs=[config]) as server:
            assert await eventually(partial(self._is_up, server), within=60), (
                await server.troubles(),
                {name: process.log()[-5:] for name, process in self.processes.items()},
            )
            yield server

    async def prometheus_token(self) -> str:
        return await self._token({"metadata": {"name": PROMETHEUS.name, "namespace": PROMETHEUS.namespace}})

    async def _groups(self) -> list[Object]:
        """The rules in the cluster, of the controllers that run, and of all processes."""
        rules = await self.client.list(Kind("monitoring.coreos.com", "PrometheusRule", "prometheusrules"))
        names = {f"virt-steward-{name}" for name in (*self.processes, "processes")}
        found = [one for one in rules if one["metadata"]["namespace"] == NAMESPACE and one["metadata"]["name"] in names]
        assert len(found) == len(names)
        return [hurried(group) for one in found for group in one["spec"]["groups"]]

    async def _is_up(self, server: PrometheusServer) -> bool:
        """All are scraped, and one leads of each controller."""
        up = await server.query("up == 1")
        leading = await server.query("leader_election_master_status == 1")
        return len(up) == len(leading) == len(self.processes)

    def stop(self) -> None:
        self._running.close()


@asynccontextmanager
async def a_monitored_installation(control_plane: ControlPlane, folder: Path) -> AsyncIterator[MonitoredInstallation]:
    """The parts of the kinds of others must be installed before."""
    async with a_client(control_plane) as client:
        found = MonitoredInstallation(client, control_plane, folder)
        await found.install()
        try:
            yield found
        finally:
            found.stop()


def alerts_of(controller: str) -> Iterator[str]:
    """The names of its alerts."""
    topic = installed(OPTIONS)[f"alerts-{controller}"]
    return (rule["alert"] for obj in topic for group in obj["spec"]["groups"] for rule in group["rules"])
