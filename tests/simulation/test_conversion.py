"""HyperConverged in two layouts: what is written in one is read in the other."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from tests.eventually import eventually
from virt_steward.kube.client import Client
from virt_steward.kube.discovery import CUSTOM_RESOURCE_DEFINITION
from virt_steward.kube.errors import NotServed
from virt_steward.objects.identity import Key, Ref
from virt_steward_demo.simulation.conversion import FIELD_PATHS, convert
from virt_steward_demo.simulation.converter import ConversionWebhook
from virt_steward_demo.simulation.install import install, uninstall
from virt_steward_demo.simulation.kinds.hyperconverged import HYPER_CONVERGED, hyper_converged

NAME = "kubevirt-hyperconverged"
FLAT = {
    "liveMigrationConfig": {"parallelMigrationsPerCluster": 7},
    "higherWorkloadDensity": {"memoryOvercommitPercentage": 150},
    "featureGates": {"CPUManager": True, "downwardMetrics": False},
    "enableApplicationAwareQuota": True,
    "applicationAwareConfig": {"vmiCalcConfigName": "VmiPodUsage"},
    "workloads": {"nodePlacement": {"nodeSelector": {"tier": "virt"}}},
}
BY_TOPIC = {
    "virtualization": {
        "liveMigrationConfig": {"parallelMigrationsPerCluster": 7},
        "higherWorkloadDensity": {"memoryOvercommitPercentage": 150},
    },
    "featureGates": [{"name": "CPUManager", "state": "Enabled"}, {"name": "downwardMetrics", "state": "Disabled"}],
    "deployment": {
        "applicationAwareConfig": {"enable": True, "vmiCalcConfigName": "VmiPodUsage"},
        "nodePlacements": {"workload": {"nodeSelector": {"tier": "virt"}}},
    },
}


@pytest.fixture
async def converter(admin: Client) -> AsyncIterator[ConversionWebhook]:
    await uninstall(admin, "HyperConverged")
    async with ConversionWebhook() as serving:
        yield serving
        await uninstall(admin, "HyperConverged")


def an_hco(namespace: str, version: str, spec: dict[str, Any]) -> dict[str, Any]:
    metadata = {"name": NAME, "namespace": namespace}
    return {"apiVersion": f"hco.kubevirt.io/{version}", "kind": "HyperConverged", "metadata": metadata, "spec": spec}


@pytest.mark.parametrize(
    ("spec", "version", "converted"),
    [(FLAT, "v1", BY_TOPIC), (BY_TOPIC, "v1beta1", FLAT), ({}, "v1", {}), ({}, "v1beta1", {})],
    ids=["v1beta1-to-v1", "v1-to-v1beta1", "nothing-to-v1", "nothing-to-v1beta1"],
)
def test_convert_moves_fields(spec: dict[str, Any], version: str, converted: dict[str, Any]) -> None:
    other = {"v1": "v1beta1", "v1beta1": "v1"}[version]
    assert convert(an_hco("cnv", other, spec), version) == an_hco("cnv", version, converted)


def test_field_paths_are_unique() -> None:
    for side in zip(*FIELD_PATHS, strict=True):
        assert len(set(side)) == len(FIELD_PATHS)


@pytest.mark.parametrize(("written", "read"), [("v1", "v1beta1"), ("v1beta1", "v1")])
async def test_webhook_converts_stored_objects(
    admin: Client, namespace: str, converter: ConversionWebhook, written: str, read: str
) -> None:
    await install(admin, hyper_converged("v1", "v1beta1", conversion=converter.conversion).definition())
    specs = {"v1": BY_TOPIC, "v1beta1": FLAT}
    await admin.create(an_hco(namespace, written, specs[written]))
    patch = an_hco(namespace, read, {})
    found = (await admin.apply(patch, manager="a-reader", dry_run=True)).object["spec"]
    if read == "v1":
        assert found["virtualization"]["liveMigrationConfig"]["parallelMigrationsPerCluster"] == 7
        assert {"name": "CPUManager", "state": "Enabled"} in found["featureGates"]
    else:
        assert found["liveMigrationConfig"]["parallelMigrationsPerCluster"] == 7
        assert found["featureGates"]["CPUManager"] is True


async def test_webhook_supports_change_of_served_versions(
    admin: Client, namespace: str, converter: ConversionWebhook
) -> None:
    ref = Ref(HYPER_CONVERGED, Key(namespace, NAME))
    await install(admin, hyper_converged("v1beta1", conversion=converter.conversion).definition())
    await admin.create(an_hco(namespace, "v1beta1", FLAT))
    assert (await admin.get(ref))["spec"]["liveMigrationConfig"]["parallelMigrationsPerCluster"] == 7
    with pytest.raises(NotServed):
        await admin.discovery.resource(HYPER_CONVERGED, "v1")
    await install(admin, hyper_converged("v1", conversion=converter.conversion).definition())
    assert await eventually(lambda: _reads_by_topic(admin, ref))
    with pytest.raises(NotServed):
        await admin.discovery.resource(HYPER_CONVERGED, "v1beta1")


@pytest.mark.parametrize(("version", "path"), [("v1", ("virtualization",)), ("v1beta1", ())])
async def test_single_version_needs_no_webhook(
    admin: Client, namespace: str, converter: ConversionWebhook, version: str, path: tuple[str, ...]
) -> None:
    assert converter
    await install(admin, hyper_converged(version).definition())
    spec = (await admin.create(an_hco(namespace, version, {})))["spec"]
    for name in path:
        spec = spec[name]
    limits = spec["liveMigrationConfig"]
    assert (limits["parallelMigrationsPerCluster"], limits["parallelOutboundMigrationsPerNode"]) == (5, 1)
    definition = await admin.get(Ref(CUSTOM_RESOURCE_DEFINITION, Key("", "hyperconvergeds.hco.kubevirt.io")))
    assert definition["spec"]["conversion"] == {"strategy": "None"}


async def _reads_by_topic(client: Client, ref: Ref) -> bool:
    spec = (await client.get(ref))["spec"]
    return spec.get("virtualization", {}).get("liveMigrationConfig", {}).get("parallelMigrationsPerCluster") == 7
