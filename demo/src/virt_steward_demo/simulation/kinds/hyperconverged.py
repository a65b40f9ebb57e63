"""HyperConverged in its two versions: v1beta1 with a flat spec, v1 with a spec that is grouped by topic."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from virt_steward.objects.identity import Kind
from virt_steward_demo.simulation.schemas import (
    Schema,
    atomic_list,
    boolean,
    condition,
    integer,
    map_list,
    mapping,
    plain_list,
    record,
    selector,
    string,
    untyped,
    with_default,
    with_rules,
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
    return StubVersion(name, spec, _status(), name_pattern=f"^{NAME}$", served=served, storage=storage)


def _by_topic() -> Schema:
    gate = record("name", name=string(), state=string("Enabled", "Disabled"))
    unique = {
        "self.all(x, self.exists_one(y, x.name.lowerAscii() == y.name.lowerAscii()))": "a feature gate is named once"
    }
    bounded = {"maxItems": 64} | with_rules(plain_list(_bounded(gate)), unique)
    virtualization = record(vmiCPUAllocationRatio=_ratio(), **_virtualization())
    defaults: dict[str, Any] = {"virtualization": {"liveMigrationConfig": MIGRATION_DEFAULTS}}
    layout = record(
        deployment=record(
            applicationAwareConfig=record(**_quota(), enable=boolean(default=False)),
            deployVmConsoleProxy=boolean(default=False),
            nodePlacements=record(infra=untyped(), workload=untyped()),
            uninstallStrategy=_uninstalling(),
        ),
        featureGates=bounded,
        security=record(tlsSecurityProfile=untyped()),
        virtualization=with_default(virtualization, defaults["virtualization"]),
        workloadSources=record(enableCommonBootImageImport=boolean(default=True)),
    )
    return with_default(layout, defaults)


def _flat() -> Schema:
    layout = record(
        applicationAwareConfig=record(**_quota()),
        deployVmConsoleProxy=boolean(default=False),
        enableApplicationAwareQuota=boolean(default=False),
        enableCommonBootImageImport=boolean(default=True),
        featureGates=with_default(mapping(boolean()), GATE_DEFAULTS),
        infra=record(nodePlacement=untyped()),
        resourceRequirements=record(vmiCPUAllocationRatio=_ratio()),
        tlsSecurityProfile=untyped(),
        uninstallStrategy=_uninstalling(),
        workloads=record(nodePlacement=untyped()),
        **_virtualization(),
    )
    return with_default(layout, {"featureGates": GATE_DEFAULTS, "liveMigrationConfig": MIGRATION_DEFAULTS})


def _virtualization() -> dict[str, Schema]:
    """What both layouts say in the same words, in different places."""
    device = {"disabled": boolean(), "externalResourceProvider": boolean(), "resourceName": string()}
    return {
        "evictionStrategy": string("None", "LiveMigrate", "LiveMigrateIfPossible", "External"),
        "higherWorkloadDensity": with_default(
            record(memoryOvercommitPercentage=integer(default=100, least=10)), {"memoryOvercommitPercentage": 100}
        ),
        "ksmConfiguration": record(nodeLabelSelector=selector()),
        "liveMigrationConfig": with_default(
            record(
                allowAutoConverge=boolean(default=False),
                allowPostCopy=boolean(default=False),
                bandwidthPerMigration=string(),
                completionTimeoutPerGiB=integer(default=20),
                network=string(),
                parallelMigrationsPerCluster=integer(default=5),
                parallelOutboundMigrationsPerNode=integer(default=1),
                progressTimeout=integer(default=150),
            ),
            MIGRATION_DEFAULTS,
        ),
        "permittedHostDevices": record(
            mediatedDevices=map_list(
                record("mdevNameSelector", "resourceName", mdevNameSelector=string(), **device),
                "mdevNameSelector",
            ),
            pciHostDevices=map_list(
                record("pciDeviceSelector", "resourceName", pciDeviceSelector=string(), **device),
                "pciDeviceSelector",
            ),
            usbHostDevices=map_list(
                record(
                    "resourceName",
                    selectors=atomic_list(record("product", "vendor", product=string(), vendor=string())),
                    **device,
                ),
                "resourceName",
            ),
        ),
        "workloadUpdateStrategy": with_default(
            record(
                "workloadUpdateMethods",
                batchEvictionInterval=string(default=UPDATE_DEFAULTS["batchEvictionInterval"]),
                batchEvictionSize=integer(default=UPDATE_DEFAULTS["batchEvictionSize"]),
                workloadUpdateMethods=with_default(atomic_list(string()), UPDATE_DEFAULTS["workloadUpdateMethods"]),
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
        "allowApplicationAwareClusterResourceQuota": boolean(default=False),
        "namespaceSelector": selector(),
        "vmiCalcConfigName": string(*calculators, default="DedicatedVirtualResources"),
    }


def _ratio() -> Schema:
    return integer(default=10, least=1)


def _uninstalling() -> Schema:
    return string("RemoveWorkloads", "BlockUninstallIfWorkloadsExist", default="BlockUninstallIfWorkloadsExist")


def _status() -> Schema:
    return record(
        conditions=atomic_list(condition()),
        infrastructureHighlyAvailable=boolean(),
        observedGeneration=integer(),
        relatedObjects=atomic_list(record(apiVersion=string(), kind=string(), name=string(), namespace=string())),
        systemHealthStatus=string(),
        versions=atomic_list(record(name=string(), version=string())),
    )


def _bounded(gate: Schema) -> Schema:
    """CEL is priced by the longest value that may come."""
    name = gate["properties"]["name"] | {"maxLength": 128}
    return gate | {"properties": gate["properties"] | {"name": name}}


STUBS = (hyper_converged("v1"),)
