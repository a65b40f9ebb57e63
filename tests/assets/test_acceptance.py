"""A real API server takes what the assets render, whole, and finds nothing to change in it the next time."""

from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from typing import Any

import pytest

from tests.assets.contexts import Cluster, an_asset, an_hco, catalog, rendered
from tests.assets.test_observability import INSTALLED_MONITORING, INSTALLED_SERVICE
from tests.clients import a_client
from tests.cluster import a_control_plane
from tests.leftovers import delete_all
from tests.real_crds import releases_of, served_in
from virt_steward.catalog.asset import Asset
from virt_steward.catalog.render import Rendered, Renderer
from virt_steward.kube.client import Client
from virt_steward.objects.paths import leaves
from virt_steward.packaging.monitoring import MonitoringApis, MonitoringOptions, of_operators
from virt_steward.platform.hco import HYPERCONVERGED, Hco
from virt_steward.runtime.access import Installation
from virt_steward.ssa.managers import AUTOPILOT
from virt_steward_demo.local.controlplane import ControlPlane
from virt_steward_demo.simulation.install import install, make_namespace
from virt_steward_demo.simulation.kinds import STUBS
from virt_steward_demo.simulation.kinds.monitoring import (
    PERSES_DASHBOARD,
    PERSES_DATASOURCE,
    PROMETHEUS_RULE,
    SERVICE_MONITOR,
)

DESCHEDULERS = "kubedeschedulers.operator.openshift.io"
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


def crd_of(asset: Asset) -> str:
    return f"{asset.object.kind.plural}.{asset.object.kind.group}"


def version_of(asset: Asset) -> str:
    return "v1" if asset.object.kind == HYPERCONVERGED else asset.object.version


async def test_the_server_takes_every_asset_whole_and_once(server: Client) -> None:
    """By the CRDs that its operators ship, where they are known; whatever release of the descheduler is installed."""
    assets = catalog().assets
    defined = {crd_of(asset): version_of(asset) for asset in assets if asset.object.kind in DEFINED}
    definitions = {crd: served_in(releases_of(crd)[-1], version) for crd, version in defined.items()}
    await install(server, *definitions.values())
    for namespace in sorted({asset.object.namespace for asset in assets} - {"", "@hco"} | {"openshift-cnv"}):
        await make_namespace(server, namespace)
    await delete_all(server, HYPERCONVERGED)
    await server.create(an_hco({}, {}))

    cluster = replace(EVERYTHING, definitions=definitions)
    for asset in assets:
        await takes(server, rendered(asset.name, cluster))
    for release in releases_of(DESCHEDULERS):
        definition = served_in(release, defined[DESCHEDULERS])
        await install(server, definition)
        await takes(server, rendered("descheduler-loadaware", replace(cluster, definitions={DESCHEDULERS: definition})))


async def test_the_server_takes_the_golden_config_in_every_version(server: Client) -> None:
    crd = f"{HYPERCONVERGED.plural}.{HYPERCONVERGED.group}"
    [definition] = releases_of(crd)
    for version in (one["name"] for one in definition["spec"]["versions"]):
        await install(server, served_in(definition, version))
        hco = an_hco({}, {}) | {"apiVersion": f"{HYPERCONVERGED.group}/{version}"}
        await make_namespace(server, hco["metadata"]["namespace"])
        await delete_all(server, HYPERCONVERGED)
        await server.create(hco)
        context = replace(EVERYTHING.context(), hco=Hco.of(hco))
        made = Renderer(catalog()).render(an_asset("hco-golden-config"), context)
        assert isinstance(made, Rendered)
        assert made.object["apiVersion"] == hco["apiVersion"]
        await takes(server, made.object)


async def test_the_server_takes_monitoring_of_the_installation_and_assets_beside_it(server: Client) -> None:
    kinds = (PROMETHEUS_RULE, SERVICE_MONITOR, PERSES_DASHBOARD, PERSES_DATASOURCE)
    versions = {f"{kind.plural}.{kind.group}": "v1alpha1" if "perses" in kind.group else "v1" for kind in kinds}
    await install(server, *(served_in(releases_of(crd)[-1], version) for crd, version in versions.items()))
    await make_namespace(server, "virt-steward")
    await make_namespace(server, "openshift-cnv")
    for topic in of_operators(Installation(), MonitoringOptions(MonitoringApis.ALL)).values():
        for obj in topic:
            await takes(server, obj)
    for name in ("metrics-servicemonitor", "prometheus-alerts"):
        for installed in ({}, INSTALLED_SERVICE, INSTALLED_MONITORING):
            await takes(server, rendered(name, Cluster(objects=installed)))


async def takes(server: Client, wanted: dict[str, Any]) -> None:
    """The server keeps every field, and a second apply finds nothing to change."""
    taken = await server.apply(wanted, manager=AUTOPILOT.name, force=True)
    assert said(wanted) <= said(taken.object), wanted["metadata"]["name"]
    again = await server.apply(wanted, manager=AUTOPILOT.name, force=True, dry_run=True)
    assert version(again.object) == version(taken.object), wanted["metadata"]["name"]


def said(obj: dict[str, Any]) -> set[tuple[str, str]]:
    return {(str(path), repr(value)) for path, value in leaves(obj)}


def version(obj: dict[str, Any]) -> str:
    return str(obj["metadata"]["resourceVersion"])
