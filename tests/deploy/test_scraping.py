"""One controller as its Deployment starts it, read as its ServiceMonitor says. `make stress` has Prometheus do it."""

import ssl
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from tests.controllers.approver.process import a_process
from tests.deploy.test_manifests import the_deployment
from tests.eventually import eventually
from tests.kube.certificates import a_pair
from tests.ports import a_free_port
from tests.runtime.tls_clients import MountedSecret, a_client_context
from virt_steward.kube.client import Client
from virt_steward.kube.errors import NotFound
from virt_steward.objects.identity import Key, ref_of
from virt_steward.packaging.monitoring import METRICS, MonitoringOptions, monitor
from virt_steward.packaging.parts import CERTIFICATE, InstallOptions, installed
from virt_steward.runtime.access import Installation
from virt_steward_demo.local.accounts import token_for, write_kubeconfig
from virt_steward_demo.local.controlplane import ControlPlane

Object = dict[str, Any]


@pytest.fixture
async def options(admin: Client, namespace: str) -> AsyncIterator[InstallOptions]:
    """An installation in a namespace of its own, for which another account is that of Prometheus."""
    installation = Installation(namespace, prefix=namespace)
    options = InstallOptions(installation, monitoring=MonitoringOptions(prometheus=Key(namespace, "prometheus")))
    objects = [obj for topic in ("advisor", "metrics") for obj in installed(options)[topic]]
    for obj in objects:
        if obj["kind"] != "Deployment":
            await admin.apply(obj, manager="installer")
    yield options
    for obj in objects:
        if "namespace" not in obj["metadata"]:
            with suppress(NotFound):
                await admin.delete(ref_of(obj))


async def read(port: int, endpoint: Object, token: str, trust: ssl.SSLContext) -> tuple[int, str]:
    """The answer to Prometheus, with the settings of the endpoint."""
    url = f"{endpoint['scheme']}://127.0.0.1:{port}{endpoint['path']}"
    name = endpoint["tlsConfig"]["serverName"]
    headers = {"Authorization": f"Bearer {token}"}
    try:
        async with (
            aiohttp.ClientSession() as session,
            session.get(url, headers=headers, ssl=trust, server_hostname=name) as answer,
        ):
            return answer.status, await answer.text()
    except aiohttp.ClientConnectionError:
        return 0, ""


async def test_controller_is_read_as_its_service_monitor_says(
    admin: Client, control_plane: ControlPlane, options: InstallOptions, namespace: str, tmp_path: Path
) -> None:
    def account(name: str) -> Object:
        return {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name, "namespace": namespace}}

    pod = the_deployment(installed(options)["advisor"])["spec"]["template"]["spec"]
    [endpoint] = monitor(options.installation)["spec"]["endpoints"]
    write_kubeconfig(
        tmp_path / "kubeconfig", control_plane, await token_for(admin, [account(pod["serviceAccountName"])])
    )
    secret = MountedSecret(tmp_path / "tls", a_pair(endpoint["tlsConfig"]["serverName"]))
    port = a_free_port()
    args = [
        one.replace(f"=:{METRICS}", f"=127.0.0.1:{port}").replace(CERTIFICATE, str(secret.folder))
        for one in pod["containers"][0]["args"]
    ]
    token, trust = await token_for(admin, [account("prometheus")]), a_client_context()
    with a_process(tmp_path / "kubeconfig", namespace, *args, controller="advisor") as process:

        async def leads() -> bool:
            status, text = await read(port, endpoint, token, trust)
            return status == 200 and 'leader_election_master_status{name="advisor"} 1.0' in text

        assert await eventually(leads, within=30), process.log()
        stranger = await token_for(admin, [account("stranger")])
        assert (await read(port, endpoint, stranger, trust))[0] == 403
