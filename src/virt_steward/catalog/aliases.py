"""What users may still write: names of assets in the Go autopilot, and annotations that have no effect any more."""

from __future__ import annotations

from typing import TYPE_CHECKING

from virt_steward.platform.hco import PREFIX

if TYPE_CHECKING:
    from collections.abc import Mapping

_EXPORTER = "kubevirt-metrics-exporter"

ALIASES: Mapping[str, str] = {
    "monitoring-ui-plugin": "observability-operator",
    "nhc-far": "node-remediation",
    "sbr-detection-config": "node-remediation-storage",
    "logging-collector-sa": "logging-collector",
    "logging-collector-crb-application": "logging-collector-application",
    "logging-collector-crb-audit": "logging-collector-audit",
    "logging-collector-crb-infrastructure": "logging-collector-infrastructure",
    "logging-collector-crb-writer": "logging-collector-logs-writer",
    f"{_EXPORTER}-clusterrole": f"{_EXPORTER}-role",
    f"{_EXPORTER}-clusterrolebinding": f"{_EXPORTER}-role-binding",
    f"{_EXPORTER}-podmonitor": f"{_EXPORTER}-servicemonitor",
    f"{_EXPORTER}-prometheusrule": f"{_EXPORTER}-alerts",
    f"{_EXPORTER}-scc-clusterrole": f"{_EXPORTER}-scc-role",
    f"{_EXPORTER}-scc-clusterrolebinding": f"{_EXPORTER}-scc-role-binding",
    f"{_EXPORTER}-serviceaccount": f"{_EXPORTER}-account",
}
"""By the name in the Go releases 4.22 and 5.0. Names that both have, and names of groups, are not listed."""


ALWAYS_ON: Mapping[str, str] = {
    f"{PREFIX}enable-observability": "observability-operator",
    f"{PREFIX}enable-incident-detection": "observability-operator",
    f"{PREFIX}enable-korrel8r": "troubleshooting-panel-ui-plugin",
}
"""Annotations of releases before 5.0, by which users opted in to assets that are always installed now."""


def current_name(name: str) -> str:
    return ALIASES.get(name, name)
