"""NodeHealthCheck and its remediation templates."""

from virt_steward.objects.identity import Kind
from virt_steward_demo.simulation.schemas import (
    condition,
    int_or_string,
    integer,
    map_list,
    mapping,
    plain_list,
    record,
    reference,
    selector,
    string,
    untyped,
    with_default,
)
from virt_steward_demo.simulation.stubs import Stub, StubVersion

NODE_HEALTH_CHECK = Kind("remediation.medik8s.io", "NodeHealthCheck", "nodehealthchecks")
SELF_NODE_REMEDIATION_TEMPLATE = Kind(
    "self-node-remediation.medik8s.io", "SelfNodeRemediationTemplate", "selfnoderemediationtemplates"
)
FENCE_AGENTS_REMEDIATION_TEMPLATE = Kind(
    "fence-agents-remediation.medik8s.io", "FenceAgentsRemediationTemplate", "fenceagentsremediationtemplates"
)
STORAGE_BASED_REMEDIATION_CONFIG = Kind(
    "storage-based-remediation.medik8s.io", "StorageBasedRemediationConfig", "storagebasedremediationconfigs"
)

_TEMPLATE = reference("apiVersion", "fieldPath", "kind", "name", "namespace", "resourceVersion", "uid")
_UNHEALTHY = record("duration", "status", "type", duration=string(), status=string(), type=string())
_NOT_READY = [{"type": "Ready", "status": status, "duration": "300s"} for status in ("False", "Unknown")]
_STRATEGIES = ("Automatic", "ResourceDeletion", "OutOfServiceTaint")

STUBS = (
    Stub(
        NODE_HEALTH_CHECK,
        "Cluster",
        (
            StubVersion(
                "v1alpha1",
                record(
                    escalatingRemediations=plain_list(
                        record(
                            "order",
                            "remediationTemplate",
                            "timeout",
                            order=integer(),
                            remediationTemplate=_TEMPLATE,
                            timeout=string(),
                        )
                    ),
                    maxUnhealthy=int_or_string(),
                    minHealthy=int_or_string(),
                    pauseRequests=plain_list(string()),
                    remediationTemplate=_TEMPLATE,
                    selector=selector(),
                    unhealthyConditions=with_default(map_list(_UNHEALTHY, "type", "status"), _NOT_READY),
                ),
                record(
                    conditions=map_list(condition(), "type"),
                    healthyNodes=integer(),
                    inFlightRemediations=mapping(string()),
                    observedNodes=integer(),
                    phase=string(),
                    reason=string(),
                ),
            ),
        ),
        ("nhc",),
    ),
    Stub(
        SELF_NODE_REMEDIATION_TEMPLATE,
        "Namespaced",
        (
            StubVersion(
                "v1alpha1",
                record(
                    "template",
                    template=record(
                        "spec",
                        spec=record(remediationStrategy=string(*_STRATEGIES, default="Automatic")),
                    ),
                ),
                untyped(),
            ),
        ),
        ("snrt",),
    ),
    Stub(
        FENCE_AGENTS_REMEDIATION_TEMPLATE,
        "Namespaced",
        (
            StubVersion(
                "v1alpha1",
                record("template", template=record("spec", spec=untyped())),
                untyped(),
            ),
        ),
        ("fartemplate",),
    ),
    Stub(
        STORAGE_BASED_REMEDIATION_CONFIG,
        "Namespaced",
        (
            StubVersion(
                "v1alpha1",
                record(detectOnlyMode=string("Enabled", "Disabled"), sharedStorageClass=string()),
                record(conditions=map_list(condition(), "type")),
            ),
        ),
    ),
)
