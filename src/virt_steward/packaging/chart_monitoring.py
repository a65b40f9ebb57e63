"""The monitoring of the chart: templates that count only where a kind is served, and the values about them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from virt_steward.controllers import NAMES
from virt_steward.packaging.monitoring import PROMETHEUS, RUNBOOKS, MonitoringOptions, alerts, monitor, perses

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from virt_steward.runtime.access import Installation

Object = dict[str, Any]

_RUNBOOK_OF = "open-runbook-of-"
_MORE_LABELS = "open-labels"

MONITORING_VALUES = f"""\
# Alerts and the ServiceMonitor are installed where the Prometheus operator is, dashboards for Perses where Perses is.
# Dashboards for Grafana are in a ConfigMap with the label grafana_dashboard, which the sidecar of Grafana looks for.
monitoring:
  # The ServiceAccount of the Prometheus that scrapes: it may read our metrics, and discover pods in our namespace.
  prometheus:
    namespace: {PROMETHEUS.namespace}
    name: {PROMETHEUS.name}
  # More labels on alerts and ServiceMonitor, if your Prometheus selects by label: {{release: kube-prometheus-stack}}.
  labels: {{}}
  # Where the runbooks are, for runbook_url: a folder, or a URL in which %s stands for the name of the alert.
  runbooks: {RUNBOOKS}
"""


def _record(**properties: Object) -> Object:
    return {"type": "object", "additionalProperties": False, "properties": properties}


_TEXT: Object = {"type": "string", "minLength": 1}
MONITORING_SCHEMA = _record(
    prometheus=_record(namespace=_TEXT, name=_TEXT),
    labels={"type": "object", "additionalProperties": {"type": "string"}},
    runbooks=_TEXT,
)

_RUNBOOKS = """\
{{- $runbooks := $.Values.monitoring.runbooks }}
{{- if not (contains "%s" $runbooks) }}
{{- $runbooks = printf "%s/%%s.md" (trimSuffix "/" $runbooks) }}
{{- end }}
"""


def monitoring_templates(installation: Installation, template: Callable[[Iterable[Object]], str]) -> dict[str, str]:
    """The templates by name; `template` writes objects as the text of a template."""
    rules = alerts(installation, MonitoringOptions(runbooks=f"{_RUNBOOK_OF}%s"))
    texts = {component: f"---\n{_opened(template([_labelled(rule)]))}" for component, rule in rules.items()}
    found = "".join(
        _when(f"$.Values.controllers.{component}.enabled", text) if component in NAMES else text
        for component, text in texts.items()
    )
    return {
        "alerts": _where("monitoring.coreos.com/v1/PrometheusRule", _RUNBOOKS + found),
        "servicemonitor": _where(
            "monitoring.coreos.com/v1/ServiceMonitor", _opened(template([_labelled(monitor(installation))]))
        ),
        "perses": _where("perses.dev/v1alpha1/PersesDashboard", template(perses(installation))),
    }


def _labelled(obj: Object) -> Object:
    metadata = obj["metadata"]
    return {**obj, "metadata": {**metadata, "labels": {**metadata["labels"], _MORE_LABELS: _MORE_LABELS}}}


def _opened(text: str) -> str:
    more = "{{- with $.Values.monitoring.labels }}{{ toYaml . | nindent 4 }}{{- end }}\n"
    text = text.replace(f"    {_MORE_LABELS}: {_MORE_LABELS}\n", f"    {more}")
    return re.sub(rf"{_RUNBOOK_OF}(\w+)", r'{{ $runbooks | replace "%s" "\1" | quote }}', text)


def _where(kind: str, text: str) -> str:
    return _when(f'.Capabilities.APIVersions.Has "{kind}"', text)


def _when(condition: str, text: str) -> str:
    return f"{{{{- if {condition} }}}}\n{text}{{{{- end }}}}\n"
