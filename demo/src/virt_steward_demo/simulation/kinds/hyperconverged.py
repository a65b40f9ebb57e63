"""HyperConverged in its two layouts, v1beta1 flat and v1 by topic."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from virt_steward.objects.identity import Kind
from virt_steward_demo.simulation.schemas import (
    Schema,
    anything,
    checked,
    condition,
    defaulted,
    flag,
    keyed,
    listed,
    mapping,
    number,
    record,
    selector,
    text,
    undivided,
)
from virt_steward_demo.simulation.stubs import Stub, StubVersion

if TYPE_CHECKING:
    from virt_steward.kube.client import Object

GROUP = "hco.kubevirt.io"
HYPER_CONVERGED = Kind(GROUP, "HyperConverged", "hyperconvergeds")
NAME = "kubevirt-hyperconverged"
VERSIONS = ("v1", "v1beta1")

MIGRATION_DEFAULTS = {
    "allowAutoConverge": False,
    "allowPostCopy": False,
    "completionTimeoutPerGiB": 20,
    "parallelMigrationsPerCluster": 5,
    "parallelOutboundMigrationsPerNode": 1,
    "progressTimeout": 150,
}
UPDATE_DEFAULTS: dict[str, Any] = {
    "batchEvictionInterval": "1m0s",
    "batchEvictionSize": 10,
    "workloadUpdateMethods": ["LiveMigrate"],
}
GATE_DEFAULTS = {"downwardMetrics": False, "persistentReservation": False}


def hyper_converged(*served: str, conversion: Object | None = None) -> Stub:
    """The kind, served in v1, v1beta1 or both. Both, or a change from one to the other, need a conversion.

    With a conversion objects are stored as v1, whichever version is served.
    """
    if conversion is None:
        (only,) = served
        return Stub(HYPER_CONVERGED, "Namespaced", (_version(only, served=True, storage=True),), ("hco", "hcos"))
    versions = tuple(_version(name, served=name in served, storage=name == "v1") for name in VERSIONS)
    return Stub(HYPER_CONVERGED, "Namespaced", versions, ("hco", "hcos"), conversion)


def _version(name: str, *, served: bool, storage: bool) -> StubVersion:
    spec = _by_topic() if name == "v1" else _flat()
    return StubVersion(name, spec, _status(), named=f"^{NAME}$", served=served, storage=storage)


def _by_topic() -> Schema:
    gate = record("name", name=text(), state=text("Enabled", "Disabled"))
    unique = {
        "self.all(x, self.exists_one(y, x.name.lowerAscii() == y.name.lowerAscii()))": "a feature gate is named once"
    }
    bounded = {"maxItems": 64} | checked(listed(_bounded(gate)), unique)
    virtualization = record(vmiCPUAllocationRatio=_ratio(), **_virtualization())
    defaults: dict[str, Any] = {"virtualization": {"liveMigrationConfig": MIGRATION_DEFAULTS}}
    layout = record(
        deployment=record(
            applicationAwareConfig=record(**_quota(), enable=flag(default=False)),
            deployVmConsoleProxy=flag(default=False),
            nodePlacements=record(infra=anything(), workload=anything()),
            uninstallStrategy=_uninstalling(),
        ),
        featureGates=bounded,
        virtualization=defaulted(virtualization, defaults["virtualization"]),
        workloadSources=record(enableCommonBootImageImport=flag(default=True)),
    )
    return defaulted(layout, defaults)


def _flat() -> Schema:
    layout = record(
        applicationAwareConfig=record(**_quota()),
        deployVmConsoleProxy=flag(default=False),
        enableApplicationAwareQuota=flag(default=False),
        enableCommonBootImageImport=flag(default=True),
        featureGates=defaulted(mapping(flag()), GATE_DEFAULTS),
        infra=record(nodePlacement=anything()),
        resourceRequirements=record(vmiCPUAllocationRatio=_ratio()),
        uninstallStrategy=_uninstalling(),
        workloads=record(nodePlacement=anything()),
        **_virtualization(),
    )
    return defaulted(layout, {"featureGates": GATE_DEFAULTS, "liveMigrationConfig": MIGRATION_DEFAULTS})


def _virtualization() -> dict[str, Schema]:
    """What both layouts say in the same words, in different places."""
    device = {"disabled": flag(), "externalResourceProvider": flag(), "resourceName": text()}
    return {
        "evictionStrategy": text("None", "LiveMigrate", "LiveMigrateIfPossible", "External"),
        "higherWorkloadDensity": defaulted(
            record(memoryOvercommitPercentage=number(default=100, least=10)), {"memoryOvercommitPercentage": 100}
        ),
        "ksmConfiguration": record(nodeLabelSelector=selector()),
        "liveMigrationConfig": defaulted(
            record(
                allowAutoConverge=flag(default=False),
                allowPostCopy=flag(default=False),
                bandwidthPerMigration=text(),
                completionTimeoutPerGiB=number(default=20),
                network=text(),
                parallelMigrationsPerCluster=number(default=5),
                parallelOutboundMigrationsPerNode=number(default=1),
                progressTimeout=number(default=150),
            ),
            MIGRATION_DEFAULTS,
        ),
        "permittedHostDevices": record(
            mediatedDevices=keyed(
                record("mdevNameSelector", "resourceName", mdevNameSelector=text(), **device),
                "mdevNameSelector",
            ),
            pciHostDevices=keyed(
                record("pciDeviceSelector", "resourceName", pciDeviceSelector=text(), **device),
                "pciDeviceSelector",
            ),
            usbHostDevices=keyed(
                record(
                    "resourceName",
                    selectors=undivided(record("product", "vendor", product=text(), vendor=text())),
                    **device,
                ),
                "resourceName",
            ),
        ),
        "workloadUpdateStrategy": defaulted(
            record(
                "workloadUpdateMethods",
                batchEvictionInterval=text(default=UPDATE_DEFAULTS["batchEvictionInterval"]),
                batchEvictionSize=number(default=UPDATE_DEFAULTS["batchEvictionSize"]),
                workloadUpdateMethods=defaulted(undivided(text()), UPDATE_DEFAULTS["workloadUpdateMethods"]),
            ),
            UPDATE_DEFAULTS,
        ),
    }


def _quota() -> dict[str, Schema]:
    calculators = (
        "VmiPodUsage",
        "VirtualResources",
        "DedicatedVirtualResources",
        "IgnoreVmiCalculator",
        "GuestEffectiveResources",
    )
    return {
        "allowApplicationAwareClusterResourceQuota": flag(default=False),
        "namespaceSelector": selector(),
        "vmiCalcConfigName": text(*calculators, default="DedicatedVirtualResources"),
    }


def _ratio() -> Schema:
    return number(default=10, least=1)


def _uninstalling() -> Schema:
    return text("RemoveWorkloads", "BlockUninstallIfWorkloadsExist", default="BlockUninstallIfWorkloadsExist")


def _status() -> Schema:
    return record(
        conditions=undivided(condition()),
        infrastructureHighlyAvailable=flag(),
        observedGeneration=number(),
        relatedObjects=undivided(record(apiVersion=text(), kind=text(), name=text(), namespace=text())),
        systemHealthStatus=text(),
        versions=undivided(record(name=text(), version=text())),
    )


def _bounded(gate: Schema) -> Schema:
    """CEL is priced by the longest value that may come."""
    name = gate["properties"]["name"] | {"maxLength": 128}
    return gate | {"properties": gate["properties"] | {"name": name}}


STUBS = (hyper_converged("v1"),)
