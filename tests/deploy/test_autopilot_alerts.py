"""The alerts that the autopilot brings by itself: valid, on metrics that there are, and firing when they should."""

import re
from pathlib import Path

import pytest
import yaml

from tests.assets.contexts import Cluster, rendered
from tests.deploy.test_alerts import ROOT, UNIT_TESTS, checked
from virt_steward.controllers.autopilot.metrics import AutopilotMetrics
from virt_steward.runtime.metrics import Metrics

STORIES = UNIT_TESTS / "autopilot.yaml"
METRIC = re.compile(r"\b(?:kubevirt_autopilot|leader_election)_[a-z_]+")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Rules and stories, as Prometheus' checker wants them."""
    spec = rendered("prometheus-alerts", Cluster())["spec"]
    (tmp_path / "rules.yaml").write_text(yaml.safe_dump(spec))
    (tmp_path / "tests.yaml").write_bytes(STORIES.read_bytes())
    return tmp_path


def test_autopilot_alerts_are_valid_and_fire_as_expected(folder: Path, promtool: Path) -> None:
    assert checked(promtool, folder, "check", "rules", "--lint-fatal", "rules.yaml") == ""
    assert checked(promtool, folder, "test", "rules", "tests.yaml") == ""


def test_autopilot_alerts_have_metrics_and_runbooks(folder: Path) -> None:
    stories = yaml.safe_load(STORIES.read_text())["tests"]
    fired = {check["alertname"] for story in stories for check in story["alert_rule_test"] if check["exp_alerts"]}
    groups = yaml.safe_load((folder / "rules.yaml").read_text())["groups"]
    rules = {rule["alert"]: rule for group in groups for rule in group["rules"]}
    assert fired == rules.keys()
    metrics = Metrics()
    AutopilotMetrics(metrics.registry)
    exported = {family.name for family in metrics.registry.collect()}
    for alert, rule in rules.items():
        assert {*METRIC.findall(rule["expr"])} <= exported
        assert (ROOT / "docs" / "runbooks" / f"{alert}.md").read_text().startswith(f"# {alert}\n")
