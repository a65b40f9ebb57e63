"""LokiStack and ClusterLogForwarder."""

from virt_steward.objects.identity import Kind
from virt_steward_demo.simulation.schemas import (
    condition,
    integer,
    map_list,
    plain_list,
    record,
    string,
    untyped,
    with_default,
)
from virt_steward_demo.simulation.stubs import Stub, StubVersion

LOKI_STACK = Kind("loki.grafana.com", "LokiStack", "lokistacks")
CLUSTER_LOG_FORWARDER = Kind("observability.openshift.io", "ClusterLogForwarder", "clusterlogforwarders")

_SIZES = ("1x.demo", "1x.pico", "1x.extra-small", "1x.small", "1x.medium")
_MODES = ("static", "dynamic", "openshift-logging", "openshift-network")
_SCHEMA = record("effectiveDate", "version", effectiveDate=string(), version=string("v11", "v12", "v13"))
_SECRET = record(
    "name",
    "type",
    credentialMode=string("static", "token", "token-cco"),
    name=string(),
    type=string("azure", "gcs", "s3", "swift", "alibabacloud"),
)
_NAMED = untyped() | {"properties": {"name": string()}, "required": ["name"]}

STUBS = (
    Stub(
        LOKI_STACK,
        "Namespaced",
        (
            StubVersion(
                "v1",
                record(
                    "size",
                    "storage",
                    "storageClassName",
                    limits=record(
                        **{"global": record(retention=record("days", days=integer(least=1)))},
                        tenants=untyped(),
                    ),
                    managementState=string("Managed", "Unmanaged", default="Managed"),
                    size=string(*_SIZES),
                    storage=record("secret", schemas=plain_list(_SCHEMA), secret=_SECRET),
                    storageClassName=string(),
                    tenants=with_default(record(mode=string(*_MODES)), {"mode": "openshift-logging"}),
                ),
                record(conditions=plain_list(condition()), components=untyped()),
            ),
        ),
    ),
    Stub(
        CLUSTER_LOG_FORWARDER,
        "Namespaced",
        (
            StubVersion(
                "v1",
                record(
                    "outputs",
                    "pipelines",
                    "serviceAccount",
                    collector=untyped(),
                    filters=map_list(_NAMED, "name"),
                    inputs=map_list(_NAMED, "name"),
                    managementState=string("Managed", "Unmanaged", default="Managed"),
                    outputs=map_list(_NAMED, "name"),
                    pipelines=map_list(
                        record(
                            "inputRefs",
                            "name",
                            "outputRefs",
                            filterRefs=plain_list(string()),
                            inputRefs=plain_list(string()),
                            name=string(),
                            outputRefs=plain_list(string()),
                        ),
                        "name",
                    ),
                    serviceAccount=record("name", name=string()),
                ),
                record(conditions=map_list(condition(), "type")),
            ),
        ),
        ("obsclf",),
    ),
)
