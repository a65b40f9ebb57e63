"""The generated reference is complete: what users meet elsewhere is found in it."""

import re
from pathlib import Path
from typing import Any

import pytest

from virt_steward.controllers.autopilot.metrics import AutopilotMetrics
from virt_steward.packaging.monitoring import MonitoringOptions, alerts
from virt_steward.runtime.access import Installation
from virt_steward.runtime.metrics import Metrics

ROOT = Path(__file__).parents[2]
REFERENCE = ROOT / "docs" / "reference"
KEY = re.compile(
    r"\b(?:advisor\.kubevirt\.io|platform\.kubevirt\.io|vitistack\.io|operators\.bapu\.cloud)/(?!v1)[a-z-]*[a-z]\b(?!-)"
)
METRIC = re.compile(r"\b(?:virt_steward|virt_advisor|installplan_approver|kubevirt_autopilot)_[a-z_]+")
OF_EXAMPLES = {"platform.kubevirt.io/enable-vm-priority", "advisor.kubevirt.io/hold", "vitistack.io/kubevirt-cluster"}
"""Keys that a page makes up."""


def codes_in(*names: str) -> set[str]:
    text = "".join((REFERENCE / f"{name}.md").read_text() for name in names)
    return {code.partition("=")[0] for code in re.findall(r"`([^`]+)`", text)}


def pages() -> list[Path]:
    return sorted(
        path for folder in ("howto", "runbooks", "explanation") for path in (ROOT / "docs" / folder).glob("*.md")
    )


@pytest.mark.parametrize("page", pages(), ids=lambda page: page.stem)
def test_annotations_of_page_are_in_reference(page: Path) -> None:
    assert set(KEY.findall(page.read_text())) - OF_EXAMPLES <= codes_in("annotations", "assets")


@pytest.mark.parametrize("page", pages(), ids=lambda page: page.stem)
def test_metrics_of_page_are_in_reference(page: Path) -> None:
    assert set(METRIC.findall(page.read_text())) <= codes_in("metrics")


def test_metrics_of_alerts_are_in_reference() -> None:
    named = {name for rule in installed_rules() for name in METRIC.findall(rule["expr"])}
    assert named
    assert named <= codes_in("metrics")


def test_every_alert_has_a_runbook_and_every_runbook_an_alert() -> None:
    linked = set(
        re.findall(r"^\| \[(\w+)\]\(\.\./runbooks/\1\.md\)", (REFERENCE / "alerts.md").read_text(), re.MULTILINE)
    )
    assert linked == {page.stem for page in (ROOT / "docs" / "runbooks").glob("*.md")}
    assert {rule["alert"] for rule in installed_rules()} <= linked


def installed_rules() -> list[dict[str, Any]]:
    manifests = alerts(Installation(), MonitoringOptions()).values()
    groups = (group for manifest in manifests for group in manifest["spec"]["groups"])
    return [rule for group in groups for rule in group["rules"] if "alert" in rule]


def test_metrics_of_process_are_in_reference() -> None:
    """Those that exist without a cluster; that is enough to find a mistake in how they are read from the source."""
    metrics = Metrics()
    AutopilotMetrics(metrics.registry)
    registered = {family.name for family in metrics.registry.collect() if not family.name.startswith("process_")}
    documented = {name.removesuffix("_total") for name in codes_in("metrics")}
    assert len(registered) > 20
    assert registered <= documented
