"""MachineConfig, MachineConfigPool and KubeletConfig."""

from virt_steward.objects.identity import Kind
from virt_steward_demo.simulation.schemas import (
    atomic_list,
    boolean,
    condition,
    int_or_string,
    integer,
    plain_list,
    record,
    selector,
    string,
    untyped,
)
from virt_steward_demo.simulation.stubs import Stub, StubVersion

GROUP = "machineconfiguration.openshift.io"
API_VERSION = f"{GROUP}/v1"

MACHINE_CONFIG = Kind(GROUP, "MachineConfig", "machineconfigs")
MACHINE_CONFIG_POOL = Kind(GROUP, "MachineConfigPool", "machineconfigpools")
KUBELET_CONFIG = Kind(GROUP, "KubeletConfig", "kubeletconfigs")

_SOURCE = record(**{name: string() for name in ("apiVersion", "kind", "name", "namespace", "resourceVersion", "uid")})
_CONFIGURATION = record(name=string(), source=plain_list(_SOURCE))

STUBS = (
    Stub(
        MACHINE_CONFIG,
        "Cluster",
        (
            StubVersion(
                "v1",
                record(
                    config=untyped(),
                    extensions=atomic_list(string()),
                    fips=boolean(),
                    kernelArguments=atomic_list(string()) | {"nullable": True},
                    kernelType=string(),
                    osImageURL=string(),
                ),
                columns=(("IgnitionVersion", ".spec.config.ignition.version"),),
            ),
        ),
        ("mc",),
    ),
    Stub(
        MACHINE_CONFIG_POOL,
        "Cluster",
        (
            StubVersion(
                "v1",
                record(
                    configuration=_CONFIGURATION,
                    machineConfigSelector=selector(),
                    maxUnavailable=int_or_string(),
                    nodeSelector=selector(),
                    paused=boolean(),
                ),
                record(
                    conditions=plain_list(condition()),
                    configuration=_CONFIGURATION,
                    degradedMachineCount=integer(),
                    machineCount=integer(),
                    observedGeneration=integer(),
                    readyMachineCount=integer(),
                    unavailableMachineCount=integer(),
                    updatedMachineCount=integer(),
                ),
                columns=(
                    ("Config", ".status.configuration.name"),
                    ("Updated", '.status.conditions[?(@.type=="Updated")].status'),
                    ("Updating", '.status.conditions[?(@.type=="Updating")].status'),
                    ("Degraded", '.status.conditions[?(@.type=="Degraded")].status'),
                    ("MachineCount", ".status.machineCount"),
                    ("UpdatedMachineCount", ".status.updatedMachineCount"),
                ),
            ),
        ),
        ("mcp",),
    ),
    Stub(
        KUBELET_CONFIG,
        "Cluster",
        (
            StubVersion(
                "v1",
                record(
                    autoSizingReserved=boolean(),
                    kubeletConfig=untyped(),
                    logLevel=integer(least=0, most=10),
                    machineConfigPoolSelector=selector(),
                ),
                record(conditions=atomic_list(condition()), observedGeneration=integer()),
                required=("spec",),
            ),
        ),
    ),
)
