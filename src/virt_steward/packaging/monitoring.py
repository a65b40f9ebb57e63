"""How an installation is monitored: metrics and who may read them, alerts, and dashboards of all controllers.

Services, rights and the ConfigMap of Grafana's dashboards need no CRD, so every installation has them. Alerts and the
ServiceMonitor need the CRDs of the Prometheus operator, and dashboards of Perses need its own.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from importlib import resources
from typing import TYPE_CHECKING, Any

from virt_steward.catalog.context import AssetContext
from virt_steward.catalog.load import load
from virt_steward.catalog.render import Rendered, Renderer
from virt_steward.catalog.yamlread import document
from virt_steward.controllers import NAMES
from virt_steward.controllers.autopilot.options import HCO
from virt_steward.objects.identity import Key
from virt_steward.packaging.dashboards import grafana_files, perses_dashboards
from virt_steward.platform.hco import PREFIX, Hco
from virt_steward.runtime import access
from virt_steward.runtime.access import APP, component_labels
from virt_steward.runtime.metrics_auth import PATH

if TYPE_CHECKING:
    from virt_steward.runtime.access import Installation

Object = dict[str, Any]

METRICS = 8443
SERVING_CERTIFICATE = "service.beta.openshift.io/serving-cert-secret-name"
"""Has OpenShift make a certificate for a Service. Elsewhere, cert-manager or an admin makes the Secret."""
INJECTED_AUTHORITY = "service.beta.openshift.io/inject-cabundle"
"""Has OpenShift write the authority of these certificates into a ConfigMap, in the key service-ca.crt."""
CLUSTER_MONITORING = "openshift.io/cluster-monitoring"
"""A label of a namespace: OpenShift's own Prometheus follows the ServiceMonitors and PrometheusRules there."""
GRAFANA_DASHBOARD = "grafana_dashboard"
"""A label of a ConfigMap: the sidecar of Grafana loads the dashboards in it."""
PROMETHEUS = Key("openshift-monitoring", "prometheus-k8s")
"""The ServiceAccount of OpenShift's own Prometheus."""
RUNBOOKS = "docs/runbooks"
PROCESSES = "processes"
"""The alerts that concern every process, whichever controllers run in it."""
AUTOPILOT_ALERTS = "prometheus-alerts"
"""The asset of the autopilot that has the same alerts, for clusters where the installation brings none."""


class MonitoringApis(StrEnum):
    """Whose objects an installation contains, besides those that every cluster accepts."""

    NONE = "none"
    PROMETHEUS = "prometheus"
    ALL = "all"


@dataclass(frozen=True, slots=True)
class MonitoringOptions:
    """What an admin chooses about monitoring."""

    apis: MonitoringApis = MonitoringApis.NONE
    """Which operators' CRDs the cluster has: none, those of the Prometheus operator, or also those of Perses."""
    prometheus: Key = PROMETHEUS
    """The ServiceAccount that discovers and scrapes our pods."""
    runbooks: str = RUNBOOKS
    """Where the runbooks are: a folder, or a URL in which %s stands for the name of the alert."""

    def runbook(self, alert: str) -> str:
        place = self.runbooks if "%s" in self.runbooks else f"{self.runbooks.rstrip('/')}/%s.md"
        return place.replace("%s", alert)


def certificate(installation: Installation) -> str:
    """The name of the Secret with the certificate of the metrics."""
    return f"{installation.prefix}-metrics-tls"


def _metrics(installation: Installation) -> str:
    """The name of the Service of all metrics."""
    return f"{installation.prefix}-metrics"


def _authority(installation: Installation) -> str:
    """The name of the ConfigMap with the authority of that certificate."""
    return f"{installation.prefix}-metrics-ca"


def on_every_cluster(installation: Installation, options: MonitoringOptions) -> dict[str, list[Object]]:
    """What needs no CRD, by topic."""
    return {
        "metrics": [*metrics(installation), *prometheus_rights(installation, options.prometheus)],
        "dashboards": [grafana(installation)],
    }


def of_operators(installation: Installation, options: MonitoringOptions) -> dict[str, list[Object]]:
    """What needs the CRDs of the operators that the admin has chosen, by topic."""
    found: dict[str, list[Object]] = {}
    if options.apis is not MonitoringApis.NONE:
        found |= {f"alerts-{component}": [rule] for component, rule in alerts(installation, options).items()}
        found["servicemonitor"] = [monitor(installation)]
    if options.apis is MonitoringApis.ALL:
        found["perses"] = perses(installation)
    return found


def metrics(installation: Installation) -> list[Object]:
    """The Service of all metrics with its certificate, and the authority of that.

    The Service is headless and selects the pods of all controllers: Prometheus scrapes each pod behind it.
    """
    metadata = {"namespace": installation.namespace, "labels": component_labels("metrics")}
    name, secret = _metrics(installation), certificate(installation)
    return [
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": name, **metadata, "annotations": {SERVING_CERTIFICATE: secret}},
            "spec": {
                "clusterIP": "None",
                "selector": APP,
                "ports": [{"name": "metrics", "port": METRICS, "targetPort": METRICS}],
            },
        },
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": _authority(installation), **metadata, "annotations": {INJECTED_AUTHORITY: "true"}},
        },
    ]


def prometheus_rights(installation: Installation, account: Key) -> list[Object]:
    """The rights to read metrics, and to discover the pods behind our Service, both for this ServiceAccount.

    Bindings have the name of the account, so that another one adds to them and takes nothing away.
    """
    reader, finder = f"{installation.prefix}-metrics-reader", f"{installation.prefix}-metrics-discovery"
    subjects = [{"kind": "ServiceAccount", "name": account.name, "namespace": account.namespace}]
    whose, watch = f"{account.namespace}-{account.name}", ["get", "list", "watch"]
    return [
        _rbac("ClusterRole", reader, rules=[{"nonResourceURLs": [PATH], "verbs": ["get"]}]),
        _rbac("ClusterRoleBinding", f"{reader}-{whose}", roleRef=_role("ClusterRole", reader), subjects=subjects),
        _rbac(
            "Role",
            finder,
            installation.namespace,
            rules=[
                {"apiGroups": [""], "resources": ["services", "endpoints", "pods"], "verbs": watch},
                {"apiGroups": ["discovery.k8s.io"], "resources": ["endpointslices"], "verbs": watch},
            ],
        ),
        _rbac(
            "RoleBinding",
            f"{finder}-{whose}",
            installation.namespace,
            roleRef=_role("Role", finder),
            subjects=subjects,
        ),
    ]


def _rbac(kind: str, name: str, namespace: str = "", **content: Any) -> Object:
    where = {"namespace": namespace} if namespace else {}
    metadata = {"name": name, **where, "labels": component_labels("metrics")}
    return {"apiVersion": f"{access.RBAC}/v1", "kind": kind, "metadata": metadata, **content}


def _role(kind: str, name: str) -> Object:
    return {"apiGroup": access.RBAC, "kind": kind, "name": name}


def monitor(installation: Installation) -> Object:
    """The ServiceMonitor of all controllers.

    With `honorLabels`, a series keeps its own `namespace` label: that of the object it is about, not of our pod.
    """
    endpoint = {
        "port": "metrics",
        "path": PATH,
        "scheme": "https",
        "interval": "30s",
        "honorLabels": True,
        "bearerTokenFile": "/var/run/secrets/kubernetes.io/serviceaccount/token",
        "tlsConfig": {
            "serverName": f"{_metrics(installation)}.{installation.namespace}.svc",
            "ca": {"configMap": {"name": _authority(installation), "key": "service-ca.crt"}},
        },
    }
    return {
        "apiVersion": "monitoring.coreos.com/v1",
        "kind": "ServiceMonitor",
        "metadata": {
            "name": installation.prefix,
            "namespace": installation.namespace,
            "labels": component_labels("metrics"),
        },
        "spec": {"selector": {"matchLabels": component_labels("metrics")}, "endpoints": [endpoint]},
    }


def alerts(installation: Installation, options: MonitoringOptions) -> dict[str, Object]:
    """A PrometheusRule for each controller, and one for all processes."""
    return {
        component: {
            "apiVersion": "monitoring.coreos.com/v1",
            "kind": "PrometheusRule",
            "metadata": {
                "name": f"{installation.prefix}-{component}",
                "namespace": installation.namespace,
                "labels": component_labels(component) | {"prometheus": "k8s", "role": "alert-rules"},
            },
            "spec": {"groups": _groups(component, options)},
        }
        for component in (*NAMES, PROCESSES)
    }


def _groups(component: str, options: MonitoringOptions) -> list[Object]:
    text = (resources.files("virt_steward.packaging") / "data" / "rules" / f"{component}.yaml").read_text("utf-8")
    groups: list[Object] = document(text)["groups"]
    own = [{**group, "rules": [_with_runbook(rule, options) for rule in group["rules"]]} for group in groups]
    return [*own, *(_groups_of_the_asset(options) if component == "autopilot" else ())]


def _with_runbook(rule: Object, options: MonitoringOptions) -> Object:
    return {**rule, "annotations": {**rule["annotations"], "runbook_url": options.runbook(rule["alert"])}}


def _groups_of_the_asset(options: MonitoringOptions) -> list[Object]:
    """The alerts as the autopilot itself would install them, so that both are the same."""
    catalog = load()
    [asset] = [one for one in catalog.assets if one.name == AUTOPILOT_ALERTS]
    notes = {f"{PREFIX}runbooks": options.runbook("%s")}
    metadata = {"name": HCO.name, "namespace": HCO.namespace, "annotations": notes}
    hco = Hco.of({"apiVersion": "hco.kubevirt.io/v1", "kind": "HyperConverged", "metadata": metadata})
    context = AssetContext(hco, objects=dict.fromkeys(read.ref for read in catalog.needs.objects))
    match Renderer(catalog).render(asset, context):
        case Rendered({"spec": {"groups": list(groups)}}):
            return groups
        case other:
            raise TypeError(f"{AUTOPILOT_ALERTS} renders no alerts: {other}")


def grafana(installation: Installation) -> Object:
    """The dashboards as files in a ConfigMap, which the sidecar of Grafana finds by its label."""
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "name": f"{installation.prefix}-dashboards",
            "namespace": installation.namespace,
            "labels": component_labels("dashboards") | {GRAFANA_DASHBOARD: "1"},
        },
        "data": grafana_files(),
    }


def perses(installation: Installation) -> list[Object]:
    """The dashboards for Perses, and the datasource that they name: OpenShift's metrics of the whole cluster."""
    metadata = {"namespace": installation.namespace, "labels": component_labels("dashboards")}
    address = "https://thanos-querier.openshift-monitoring.svc.cluster.local:9091"
    proxy = {"kind": "HTTPProxy", "spec": {"url": address, "secret": f"{DATASOURCE}-secret"}}
    datasource = {
        "apiVersion": "perses.dev/v1alpha1",
        "kind": "PersesDatasource",
        "metadata": {"name": DATASOURCE, **metadata},
        "spec": {
            "client": {"tls": {"enable": True, "caCert": {"type": "file", "certPath": "/ca/service-ca.crt"}}},
            "config": {
                "default": False,
                "display": {"name": "Thanos Querier"},
                "plugin": {"kind": "PrometheusDatasource", "spec": {"proxy": proxy}},
            },
        },
    }
    dashboards = [
        {
            "apiVersion": "perses.dev/v1alpha1",
            "kind": "PersesDashboard",
            "metadata": {"name": f"{installation.prefix}-{name}", **metadata},
            "spec": spec,
        }
        for name, spec in perses_dashboards(DATASOURCE).items()
    ]
    return [datasource, *dashboards]


DATASOURCE = "thanos-querier"
