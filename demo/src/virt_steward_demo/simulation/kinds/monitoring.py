"""Rules, scrape targets, dashboards and console plugins of the monitoring stack."""

from virt_steward.objects.identity import Kind
from virt_steward_demo.simulation.schemas import (
    atomic_list,
    boolean,
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
)
from virt_steward_demo.simulation.stubs import Stub, StubVersion

PROMETHEUS_RULE = Kind("monitoring.coreos.com", "PrometheusRule", "prometheusrules")
SERVICE_MONITOR = Kind("monitoring.coreos.com", "ServiceMonitor", "servicemonitors")
POD_MONITOR = Kind("monitoring.coreos.com", "PodMonitor", "podmonitors")
UI_PLUGIN = Kind("observability.openshift.io", "UIPlugin", "uiplugins")
PERSES_DASHBOARD = Kind("perses.dev", "PersesDashboard", "persesdashboards")
PERSES_DATASOURCE = Kind("perses.dev", "PersesDatasource", "persesdatasources")

_RULE = record(
    "expr",
    alert=string(),
    annotations=mapping(string()),
    expr=int_or_string(),
    keep_firing_for=string(),
    labels=mapping(string()),
    record=string(),
    **{"for": string()},
)
_GROUP = record(
    "name",
    interval=string(),
    labels=mapping(string()),
    limit=integer(),
    name=string(),
    partial_response_strategy=string(),
    query_offset=string(),
    rules=plain_list(_RULE),
)
_NAMES_OF_PLUGINS = {
    "Logging": "logging",
    "TroubleshootingPanel": "troubleshooting-panel",
    "DistributedTracing": "distributed-tracing",
    "Monitoring": "monitoring",
}


def _targets(kind: Kind, endpoints: str, short_name: str) -> Stub:
    spec = record(
        "selector",
        endpoints,
        jobLabel=string(),
        scrapeClass=string(),
        namespaceSelector=record(any=boolean(), matchNames=plain_list(string())),
        selector=selector(),
        targetLabels=plain_list(string()),
        **{endpoints: plain_list(untyped())},
    )
    return Stub(kind, "Namespaced", (StubVersion("v1", spec, untyped(), required=("spec",)),), (short_name,))


def _of_perses(kind: Kind, *required: str, **spec: dict[str, object]) -> Stub:
    status = record(conditions=map_list(condition(), "type"))
    return Stub(kind, "Namespaced", (StubVersion("v1alpha1", record(*required, **spec), status),))


STUBS = (
    Stub(
        PROMETHEUS_RULE,
        "Namespaced",
        (StubVersion("v1", record(groups=map_list(_GROUP, "name")), untyped(), required=("spec",)),),
        ("promrule",),
    ),
    _targets(SERVICE_MONITOR, "endpoints", "smon"),
    _targets(POD_MONITOR, "podMetricsEndpoints", "pmon"),
    _of_perses(
        PERSES_DASHBOARD,
        "duration",
        "layouts",
        "panels",
        display=untyped(),
        duration=string(),
        layouts=plain_list(untyped()),
        panels=mapping(untyped()),
        variables=plain_list(untyped()),
    ),
    _of_perses(PERSES_DATASOURCE, client=untyped(), config=untyped()),
    Stub(
        UI_PLUGIN,
        "Cluster",
        (
            StubVersion(
                "v1alpha1",
                record(
                    "type",
                    deployment=record(nodeSelector=mapping(string()), tolerations=plain_list(untyped())),
                    distributedTracing=record(timeout=string()),
                    logging=record(
                        logsLimit=integer(least=0),
                        lokiStack=reference("name", "namespace"),
                        schema=string("viaq", "otel", "select"),
                        timeout=string(),
                    ),
                    monitoring=record(
                        acm=record("enabled", enabled=boolean(), alertmanager=reference("url")),
                        incidents=record("enabled", enabled=boolean()),
                        perses=record("enabled", enabled=boolean()),
                    ),
                    troubleshootingPanel=record(timeout=string()),
                    type=string(*_NAMES_OF_PLUGINS),
                ),
                record(conditions=atomic_list(condition())),
                rules=tuple(
                    (f"self.spec.type != '{kind}' || self.metadata.name == '{name}'", f"a {kind} is named {name}")
                    for kind, name in _NAMES_OF_PLUGINS.items()
                ),
            ),
        ),
    ),
)
