"""What the Prometheus operator makes of a ServiceMonitor, and what Prometheus discovers for it.

Our Prometheus is built without the discovery of clouds and clusters, so that a test names the targets, with the same
labels that the discovery of endpoints gives them. Relabelling, TLS and authorization are those of the operator.
"""

import re
from pathlib import Path
from typing import Any

Object = dict[str, Any]

TOKEN = "/var/run/secrets/kubernetes.io/serviceaccount/token"
"""Where a pod has the token of its ServiceAccount."""


def discovered(service: Object, pod: Object, name: str, address: str) -> Object:
    """A static target with the labels of the discovery: one pod behind a Service."""
    [port] = service["spec"]["ports"]
    [container] = pod["spec"]["containers"]
    [listening] = [one for one in container["ports"] if one["containerPort"] == port["targetPort"]]
    assert service["spec"]["selector"].items() <= pod["metadata"]["labels"].items(), "the Service selects the pod"
    labels = {
        "namespace": service["metadata"]["namespace"],
        "service_name": service["metadata"]["name"],
        "endpoint_port_name": port["name"],
        "endpoint_address_target_kind": "Pod",
        "endpoint_address_target_name": name,
        "pod_name": name,
        "pod_phase": "Running",
        "pod_container_name": container["name"],
        "pod_container_port_name": listening["name"],
    }
    for key, value in service["metadata"]["labels"].items():
        labels |= {f"service_label_{_sane(key)}": value, f"service_labelpresent_{_sane(key)}": "true"}
    return {"targets": [address], "labels": {f"__meta_kubernetes_{key}": value for key, value in labels.items()}}


def scrape_config(monitor: Object, authority: Path, token: Path, targets: list[Object]) -> Object:
    """The configuration for the one endpoint of a ServiceMonitor."""
    [endpoint] = monitor["spec"]["endpoints"]
    metadata = monitor["metadata"]
    assert endpoint["bearerTokenFile"] == TOKEN
    assert endpoint["tlsConfig"]["ca"]["configMap"]["key"] == authority.name
    return {
        "job_name": f"serviceMonitor/{metadata['namespace']}/{metadata['name']}/0",
        "honor_labels": endpoint.get("honorLabels", False),
        "scrape_interval": endpoint["interval"],
        "scrape_timeout": endpoint["interval"],
        "metrics_path": endpoint["path"],
        "scheme": endpoint["scheme"],
        "authorization": {"type": "Bearer", "credentials_file": str(token)},
        "tls_config": {"ca_file": str(authority), "server_name": endpoint["tlsConfig"]["serverName"]},
        "static_configs": targets,
        "relabel_configs": [
            {"source_labels": ["job"], "target_label": "__tmp_prometheus_job_name"},
            *(
                _keep(f"{value};true", f"service_label_{_sane(key)}", f"service_labelpresent_{_sane(key)}")
                for key, value in monitor["spec"]["selector"]["matchLabels"].items()
            ),
            _keep(endpoint["port"], "endpoint_port_name"),
            _copy("pod", "endpoint_address_target_kind", "endpoint_address_target_name", regex="Pod;(.*)"),
            _copy("namespace", "namespace"),
            _copy("service", "service_name"),
            _copy("pod", "pod_name"),
            _copy("container", "pod_container_name"),
            {"action": "drop", "source_labels": ["__meta_kubernetes_pod_phase"], "regex": "(Failed|Succeeded)"},
            _copy("job", "service_name"),
            {"target_label": "endpoint", "replacement": endpoint["port"]},
        ],
    }


def _keep(regex: str, *sources: str) -> Object:
    return {"action": "keep", "source_labels": [f"__meta_kubernetes_{one}" for one in sources], "regex": regex}


def _copy(target: str, *sources: str, regex: str = "(.*)") -> Object:
    names = [f"__meta_kubernetes_{one}" for one in sources]
    return {"source_labels": names, "separator": ";", "regex": regex, "target_label": target, "replacement": "$1"}


def _sane(label: str) -> str:
    return re.sub(r"[^a-zA-Z0-9_]", "_", label)
