"""Helm's own engine, so that a chart is rendered as Helm renders it."""

import json
import os
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import yaml

from tests.goprogram import GoProgram, usual_toolchain

SOURCES = Path(__file__).parent
MONITORS = "monitoring.coreos.com/v1/ServiceMonitor"
RULES = "monitoring.coreos.com/v1/PrometheusRule"
PERSES = "perses.dev/v1alpha1/PersesDashboard"
POLICIES = "admissionregistration.k8s.io/v1/ValidatingAdmissionPolicy"


class NotRendered(Exception):
    """What Helm says against the chart or its values."""


def build() -> Path:
    headline = "Helm's engine (about 2 minutes on two cores, once)"
    program = GoProgram("helm", SOURCES, "virt-steward/helm", headline, usual_toolchain())
    return program.built(os.environ) / "helm"


def rendered(helm: Path, chart: Path, namespace: str, values: dict[str, Any], *served: str) -> list[dict[str, Any]]:
    """What would be installed by a release in this namespace, on a cluster that serves these APIs besides the usual."""
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        json.dump(values, file)
        file.flush()
        command = [helm, chart, namespace, file.name, *served]
        ended = subprocess.run(command, capture_output=True, text=True, check=False)
    if ended.returncode:
        raise NotRendered(ended.stderr)
    return [obj for obj in yaml.safe_load_all(ended.stdout) if obj]
