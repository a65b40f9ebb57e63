"""The alerts that the autopilot brings by itself: valid, on metrics that there are, and firing when they should."""

import copy
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.assets.contexts import Cluster, rendered
from tests.assets.test_observability import RENAMED
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
    (tmp_path / "tests.yaml").write_text(yaml.safe_dump(stories(), width=10_000))
    return tmp_path


def stories() -> dict[str, Any]:
    """What is to fire when. Whatever is said of a renamed alert holds for its deprecated name, too."""
    known: dict[str, Any] = yaml.load(STORIES.read_text(), yaml.BaseLoader)  # texts: 0x40 is no number
    for story in known["tests"]:
        checks = story["alert_rule_test"]
        checks += [
            _as_before(check, old) for check in checks for old, new in RENAMED.items() if check["alertname"] == new
        ]
    return known


def _as_before(check: dict[str, Any], old: str) -> dict[str, Any]:
    alerts = copy.deepcopy(check["exp_alerts"])
    for alert in alerts:
        severity = alert["exp_labels"]["severity"]
        alert["exp_labels"]["operator_health_impact"] = severity
        alert["exp_annotations"]["deprecated"] = (
            f"renamed to {check['alertname']}; this name goes with the next release"
        )
    return check | {"alertname": old, "exp_alerts": alerts}


def test_autopilot_alerts_are_valid_and_fire_as_expected(folder: Path, promtool: Path) -> None:
    assert checked(promtool, folder, "check", "rules", "--lint-fatal", "rules.yaml") == ""
    assert checked(promtool, folder, "test", "rules", "tests.yaml") == ""


def test_autopilot_alerts_have_metrics_and_runbooks(folder: Path) -> None:
    known = stories()["tests"]
    fired = {check["alertname"] for story in known for check in story["alert_rule_test"] if check["exp_alerts"]}
    groups = yaml.safe_load((folder / "rules.yaml").read_text())["groups"]
    rules = {rule["alert"]: rule for group in groups for rule in group["rules"]}
    assert fired == rules.keys()
    metrics = Metrics()
    AutopilotMetrics(metrics.registry)
    exported = {family.name for family in metrics.registry.collect()}
    for alert, rule in rules.items():
        assert {*METRIC.findall(rule["expr"])} <= exported
        assert (ROOT / "docs" / "runbooks" / f"{alert}.md").read_text().startswith(f"# {alert}\n")
