"""Cluster-wide configuration of OpenShift, and SecurityContextConstraints."""

from virt_steward.objects.identity import Kind
from virt_steward_demo.simulation.schemas import atomic_list, boolean, integer, plain_list, record, string, untyped
from virt_steward_demo.simulation.stubs import Stub, StubVersion

API_SERVER = Kind("config.openshift.io", "APIServer", "apiservers")
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
_PLATFORM = string(*_PLATFORMS)
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
        API_SERVER,
        "Cluster",
        (StubVersion("v1", record(tlsSecurityProfile=untyped()), untyped(), required=("spec",)),),
    ),
    Stub(
        INFRASTRUCTURE,
        "Cluster",
        (
            StubVersion(
                "v1",
                record(platformSpec=record(type=_PLATFORM)),
                record(
                    controlPlaneTopology=string(*_TOPOLOGIES, default="HighlyAvailable"),
                    infrastructureName=string(),
                    infrastructureTopology=string("HighlyAvailable", "SingleReplica", default="HighlyAvailable"),
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
                    defaultNodeSelector=string(),
                    mastersSchedulable=boolean(),
                    profile=string("", "LowNodeUtilization", "HighNodeUtilization", "NoScoring"),
                ),
                untyped(),
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
                top_level={
                    **{name: boolean() for name in _PERMISSIONS},
                    **{name: atomic_list(string()) | {"nullable": True} for name in _CAPABILITIES},
                    **{name: untyped() for name in _STRATEGIES},
                    "allowPrivilegeEscalation": boolean(),
                    "groups": plain_list(string()),
                    "priority": integer() | {"nullable": True},
                    "users": plain_list(string()),
                },
            ),
        ),
        ("scc",),
    ),
)
