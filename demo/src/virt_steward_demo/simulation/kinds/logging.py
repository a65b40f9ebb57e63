"""LokiStack and ClusterLogForwarder."""

from virt_steward.objects.identity import Kind
from virt_steward_demo.simulation.schemas import anything, condition, defaulted, keyed, listed, number, record, text
from virt_steward_demo.simulation.stubs import Stub, StubVersion

LOKI_STACK = Kind("loki.grafana.com", "LokiStack", "lokistacks")
CLUSTER_LOG_FORWARDER = Kind("observability.openshift.io", "ClusterLogForwarder", "clusterlogforwarders")

_SIZES = ("1x.demo", "1x.pico", "1x.extra-small", "1x.small", "1x.medium")
_MODES = ("static", "dynamic", "openshift-logging", "openshift-network")
_SCHEMA = record("effectiveDate", "version", effectiveDate=text(), version=text("v11", "v12", "v13"))
_SECRET = record(
    "name",
    "type",
    credentialMode=text("static", "token", "token-cco"),
    name=text(),
    type=text("azure", "gcs", "s3", "swift", "alibabacloud"),
)
_NAMED = anything() | {"properties": {"name": text()}, "required": ["name"]}

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
                        **{"global": record(retention=record("days", days=number(least=1)))},
                        tenants=anything(),
                    ),
                    managementState=text("Managed", "Unmanaged", default="Managed"),
                    size=text(*_SIZES),
                    storage=record("secret", schemas=listed(_SCHEMA), secret=_SECRET),
                    storageClassName=text(),
                    tenants=defaulted(record(mode=text(*_MODES)), {"mode": "openshift-logging"}),
                ),
                record(conditions=listed(condition()), components=anything()),
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
                    collector=anything(),
                    filters=keyed(_NAMED, "name"),
                    inputs=keyed(_NAMED, "name"),
                    managementState=text("Managed", "Unmanaged", default="Managed"),
                    outputs=keyed(_NAMED, "name"),
                    pipelines=keyed(
                        record(
                            "inputRefs",
                            "name",
                            "outputRefs",
                            filterRefs=listed(text()),
                            inputRefs=listed(text()),
                            name=text(),
                            outputRefs=listed(text()),
                        ),
                        "name",
                    ),
                    serviceAccount=record("name", name=text()),
                ),
                record(conditions=keyed(condition(), "type")),
            ),
        ),
        ("obsclf",),
    ),
)
