"""MachineConfig, MachineConfigPool and KubeletConfig."""

from virt_steward.objects.identity import Kind
from virt_steward_demo.simulation.schemas import (
    anything,
    condition,
    flag,
    listed,
    number,
    number_or_text,
    record,
    selector,
    text,
    undivided,
)
from virt_steward_demo.simulation.stubs import Stub, StubVersion

GROUP = "machineconfiguration.openshift.io"
API_VERSION = f"{GROUP}/v1"

MACHINE_CONFIG = Kind(GROUP, "MachineConfig", "machineconfigs")
MACHINE_CONFIG_POOL = Kind(GROUP, "MachineConfigPool", "machineconfigpools")
KUBELET_CONFIG = Kind(GROUP, "KubeletConfig", "kubeletconfigs")

_SOURCE = record(**{name: text() for name in ("apiVersion", "kind", "name", "namespace", "resourceVersion", "uid")})
_CONFIGURATION = record(name=text(), source=listed(_SOURCE))

STUBS = (
    Stub(
        MACHINE_CONFIG,
        "Cluster",
        (
            StubVersion(
                "v1",
                record(
                    config=anything(),
                    extensions=undivided(text()),
                    fips=flag(),
                    kernelArguments=undivided(text()) | {"nullable": True},
                    kernelType=text(),
                    osImageURL=text(),
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
                    maxUnavailable=number_or_text(),
                    nodeSelector=selector(),
                    paused=flag(),
                ),
                record(
                    conditions=listed(condition()),
                    configuration=_CONFIGURATION,
                    degradedMachineCount=number(),
                    machineCount=number(),
                    observedGeneration=number(),
                    readyMachineCount=number(),
                    unavailableMachineCount=number(),
                    updatedMachineCount=number(),
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
                    autoSizingReserved=flag(),
                    kubeletConfig=anything(),
                    logLevel=number(least=0, most=10),
                    machineConfigPoolSelector=selector(),
                ),
                record(conditions=undivided(condition()), observedGeneration=number()),
                required=("spec",),
            ),
        ),
    ),
)
