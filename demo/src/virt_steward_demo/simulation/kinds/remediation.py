"""NodeHealthCheck and the remediations that it may ask for."""

from virt_steward.objects.identity import Kind
from virt_steward_demo.simulation.schemas import (
    anything,
    condition,
    defaulted,
    keyed,
    listed,
    mapping,
    number,
    number_or_text,
    record,
    reference,
    selector,
    text,
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
_UNHEALTHY = record("duration", "status", "type", duration=text(), status=text(), type=text())
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
                    escalatingRemediations=listed(
                        record(
                            "order",
                            "remediationTemplate",
                            "timeout",
                            order=number(),
                            remediationTemplate=_TEMPLATE,
                            timeout=text(),
                        )
                    ),
                    maxUnhealthy=number_or_text(),
                    minHealthy=number_or_text(),
                    pauseRequests=listed(text()),
                    remediationTemplate=_TEMPLATE,
                    selector=selector(),
                    unhealthyConditions=defaulted(keyed(_UNHEALTHY, "type", "status"), _NOT_READY),
                ),
                record(
                    conditions=keyed(condition(), "type"),
                    healthyNodes=number(),
                    inFlightRemediations=mapping(text()),
                    observedNodes=number(),
                    phase=text(),
                    reason=text(),
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
                        spec=record(remediationStrategy=text(*_STRATEGIES, default="Automatic")),
                    ),
                ),
                anything(),
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
                record("template", template=record("spec", spec=anything())),
                anything(),
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
                record(detectOnlyMode=text("Enabled", "Disabled"), sharedStorageClass=text()),
                record(conditions=keyed(condition(), "type")),
            ),
        ),
    ),
)
