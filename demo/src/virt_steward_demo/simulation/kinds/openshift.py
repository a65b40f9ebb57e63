"""What OpenShift tells about the cluster as a whole, and what it lets pods do."""

from virt_steward.objects.identity import Kind
from virt_steward_demo.simulation.schemas import anything, flag, listed, number, record, text, undivided
from virt_steward_demo.simulation.stubs import Stub, StubVersion

INFRASTRUCTURE = Kind("config.openshift.io", "Infrastructure", "infrastructures")
SCHEDULER = Kind("config.openshift.io", "Scheduler", "schedulers")
SECURITY_CONTEXT_CONSTRAINTS = Kind("security.openshift.io", "SecurityContextConstraints", "securitycontextconstraints")

_TOPOLOGIES = ("HighlyAvailable", "HighlyAvailableArbiter", "SingleReplica", "DualReplica", "External")
_PLATFORMS = (
    "",
    "AWS",
    "Azure",
    "BareMetal",
    "GCP",
    "None",
    "OpenStack",
    "VSphere",
    "IBMCloud",
    "KubeVirt",
    "External",
)
_PLATFORM = text(*_PLATFORMS)
_PERMISSIONS = (
    "allowHostDirVolumePlugin",
    "allowHostIPC",
    "allowHostNetwork",
    "allowHostPID",
    "allowHostPorts",
    "allowPrivilegedContainer",
    "readOnlyRootFilesystem",
)
_CAPABILITIES = ("allowedCapabilities", "defaultAddCapabilities", "requiredDropCapabilities", "volumes")
_STRATEGIES = ("fsGroup", "runAsUser", "seLinuxContext", "supplementalGroups")

STUBS = (
    Stub(
        INFRASTRUCTURE,
        "Cluster",
        (
            StubVersion(
                "v1",
                record(platformSpec=record(type=_PLATFORM)),
                record(
                    controlPlaneTopology=text(*_TOPOLOGIES, default="HighlyAvailable"),
                    infrastructureName=text(),
                    infrastructureTopology=text("HighlyAvailable", "SingleReplica", default="HighlyAvailable"),
                    platform=_PLATFORM,
                    platformStatus=record(type=_PLATFORM),
                ),
                required=("spec",),
            ),
        ),
    ),
    Stub(
        SCHEDULER,
        "Cluster",
        (
            StubVersion(
                "v1",
                record(
                    defaultNodeSelector=text(),
                    mastersSchedulable=flag(),
                    profile=text("", "LowNodeUtilization", "HighNodeUtilization", "NoScoring"),
                ),
                anything(),
                required=("spec",),
            ),
        ),
    ),
    Stub(
        SECURITY_CONTEXT_CONSTRAINTS,
        "Cluster",
        (
            StubVersion(
                "v1",
                record(),
                required=(*_PERMISSIONS, *_CAPABILITIES, "priority"),
                beside={
                    **{name: flag() for name in _PERMISSIONS},
                    **{name: undivided(text()) | {"nullable": True} for name in _CAPABILITIES},
                    **{name: anything() for name in _STRATEGIES},
                    "allowPrivilegeEscalation": flag(),
                    "groups": listed(text()),
                    "priority": number() | {"nullable": True},
                    "users": listed(text()),
                },
            ),
        ),
        ("scc",),
    ),
)
