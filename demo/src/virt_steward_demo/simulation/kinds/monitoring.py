"""Rules, scrape targets, dashboards and console plugins of the monitoring stack."""

from virt_steward.objects.identity import Kind
from virt_steward_demo.simulation.schemas import (
    anything,
    condition,
    flag,
    keyed,
    listed,
    mapping,
    number,
    number_or_text,
    record,
    reference,
    selector,
    text,
    undivided,
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
    alert=text(),
    annotations=mapping(text()),
    expr=number_or_text(),
    keep_firing_for=text(),
    labels=mapping(text()),
    record=text(),
    **{"for": text()},
)
_GROUP = record(
    "name",
    interval=text(),
    labels=mapping(text()),
    limit=number(),
    name=text(),
    partial_response_strategy=text(),
    query_offset=text(),
    rules=listed(_RULE),
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
        jobLabel=text(),
        namespaceSelector=record(any=flag(), matchNames=listed(text())),
        selector=selector(),
        targetLabels=listed(text()),
        **{endpoints: listed(anything())},
    )
    return Stub(kind, "Namespaced", (StubVersion("v1", spec, anything(), required=("spec",)),), (short_name,))


def _of_perses(kind: Kind, *required: str, **spec: dict[str, object]) -> Stub:
    status = record(conditions=keyed(condition(), "type"))
    return Stub(kind, "Namespaced", (StubVersion("v1alpha1", record(*required, **spec), status),))


STUBS = (
    Stub(
        PROMETHEUS_RULE,
        "Namespaced",
        (StubVersion("v1", record(groups=keyed(_GROUP, "name")), anything(), required=("spec",)),),
        ("promrule",),
    ),
    _targets(SERVICE_MONITOR, "endpoints", "smon"),
    _targets(POD_MONITOR, "podMetricsEndpoints", "pmon"),
    _of_perses(
        PERSES_DASHBOARD,
        "duration",
        "layouts",
        "panels",
        display=anything(),
        duration=text(),
        layouts=listed(anything()),
        panels=mapping(anything()),
        variables=listed(anything()),
    ),
    _of_perses(PERSES_DATASOURCE, client=anything(), config=anything()),
    Stub(
        UI_PLUGIN,
        "Cluster",
        (
            StubVersion(
                "v1alpha1",
                record(
                    "type",
                    deployment=record(nodeSelector=mapping(text()), tolerations=listed(anything())),
                    distributedTracing=record(timeout=text()),
                    logging=record(
                        logsLimit=number(least=0),
                        lokiStack=reference("name", "namespace"),
                        schema=text("viaq", "otel", "select"),
                        timeout=text(),
                    ),
                    monitoring=record(
                        acm=record("enabled", enabled=flag(), alertmanager=reference("url")),
                        incidents=record("enabled", enabled=flag()),
                        perses=record("enabled", enabled=flag()),
                    ),
                    troubleshootingPanel=record(timeout=text()),
                    type=text(*_NAMES_OF_PLUGINS),
                ),
                record(conditions=undivided(condition())),
                rules=tuple(
                    (f"self.spec.type != '{kind}' || self.metadata.name == '{name}'", f"a {kind} is named {name}")
                    for kind, name in _NAMES_OF_PLUGINS.items()
                ),
            ),
        ),
    ),
)
