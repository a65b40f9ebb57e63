"""A real API server takes what the assets render, whole, and finds nothing to change in it the next time."""

from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

from tests.assets.contexts import Cluster, an_hco, catalog, rendered, stub
from tests.clients import a_client
from tests.cluster import a_control_plane
from virt_steward.kube.client import Client
from virt_steward.objects.paths import leaves
from virt_steward.ssa.managers import AUTOPILOT
from virt_steward_demo.local.controlplane import ControlPlane
from virt_steward_demo.simulation.install import install, make_namespace
from virt_steward_demo.simulation.kinds import STUBS

DEFINED = {stub.kind for stub in STUBS}
REMEDIATORS = ("self-node-remediation-automatic-strategy-template", "fenceagentsremediationtemplate-default")
EVERYTHING = Cluster(
    {"enable-audit-logging": "true", "sbr-storage-class": "cephfs"},
    {
        "virtualization": {
            "permittedHostDevices": {
                "pciHostDevices": [{"pciDeviceSelector": "10DE:1EB8", "resourceName": "example.com/gpu"}],
                "usbHostDevices": [
                    {"resourceName": "example.com/key", "selectors": [{"vendor": "46f4", "product": "0001"}]}
                ],
            }
        }
    },
    objects={
        **{name: {"metadata": {"name": name}} for name in REMEDIATORS},
        "descheduler-rules": {"spec": {"groups": []}},
    },
)


@pytest.fixture(scope="module")
def a_cluster_of_its_own(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """Since assets are about objects of which a cluster has one."""
    with a_control_plane(tmp_path_factory.mktemp("assets")) as started:
        yield started


@pytest.fixture
async def server(a_cluster_of_its_own: ControlPlane) -> AsyncIterator[Client]:
    async with a_client(a_cluster_of_its_own) as client:
        yield client


async def test_the_server_takes_every_asset_whole_and_once(server: Client) -> None:
    targets = [asset.object for asset in catalog().assets]
    kinds = {target.kind for target in targets}
    await install(server, *(stub(f"{kind.plural}.{kind.group}") for kind in sorted(kinds & DEFINED)))
    for namespace in sorted({target.namespace for target in targets} - {"", "@hco"} | {"openshift-cnv"}):
        await make_namespace(server, namespace)
    await server.create(an_hco({}, {}))

    for asset in catalog().assets:
        wanted = rendered(asset.name, EVERYTHING)
        taken = await server.apply(wanted, manager=AUTOPILOT.name, force=True)
        assert said(wanted) <= said(taken.object), asset.name
        again = await server.apply(wanted, manager=AUTOPILOT.name, force=True, dry_run=True)
        assert version(again.object) == version(taken.object), asset.name


def said(obj: dict[str, Any]) -> set[tuple[str, str]]:
    return {(str(path), repr(value)) for path, value in leaves(obj)}


def version(obj: dict[str, Any]) -> str:
    return str(obj["metadata"]["resourceVersion"])
