"""Alerts are valid, ask for what is told, and fire when they should."""

import re
import subprocess
from pathlib import Path
from random import Random
from typing import Any

import pytest
import yaml

from tests.runtime.clocks import ManualClock
from virt_steward.controllers.advisor.reporter import AdvisorMetrics as AdvisorGauges
from virt_steward.controllers.approver.reporter import ApproverMetrics
from virt_steward.controllers.approver.verdicts import PlanReason
from virt_steward.controllers.placement.reporter import PlacementMetrics
from virt_steward.controllers.placement.verdicts import PlacementReason as UnplacedReason
from virt_steward.objects.tls_parameters import TlsParameters
from virt_steward.runtime.metrics import Metrics
from virt_steward.runtime.notifier import Notifier
from virt_steward.runtime.serving_tls import CertificateFiles, ServingTls

ROOT = Path(__file__).parents[2]
FILES = [pytest.param(path, id=path.stem) for path in sorted((ROOT / "deploy" / "alerts").glob("*.yaml"))]
UNIT_TESTS = Path(__file__).parent / "rules"
RULES = [
    pytest.param(rule, id=rule["alert"])
    for path in sorted((ROOT / "deploy" / "alerts").glob("*.yaml"))
    for group in yaml.safe_load(path.read_text())["spec"]["groups"]
    for rule in group["rules"]
]
METRIC = re.compile(r"\b[a-z]+(?:_[a-z]+)+(?=[{\[]| offset)")
WAITING = set(PlanReason) - {PlanReason.ALREADY_APPROVED, PlanReason.AUTOMATIC, PlanReason.NOT_WAITING}


def exported() -> set[str]:
    metrics = Metrics()
    AdvisorGauges(metrics.registry)
    ApproverMetrics(metrics.registry)
    PlacementMetrics(metrics.registry)
    Notifier({}, ManualClock(), Random(1), metrics.registry)
    files = CertificateFiles(Path("tls.crt"), Path("tls.key"))
    ServingTls(files, TlsParameters("VersionTLS12", ()), ManualClock(), metrics.registry, verifies_clients=False)
    return {
        f"{family.name}_total" if family.type == "counter" else family.name for family in metrics.registry.collect()
    }


def checked(promtool: Path, folder: Path, *arguments: str) -> str:
    """What promtool says if it objects; nothing if it does not."""
    ended = subprocess.run([promtool, *arguments], cwd=folder, capture_output=True, text=True, check=False)
    return f"{ended.stdout}{ended.stderr}" if ended.returncode else ""


def write_rules(path: Path, folder: Path) -> None:
    """As Prometheus reads them, without what is around them in the cluster."""
    groups = yaml.safe_load(path.read_text())["spec"]["groups"]
    (folder / "rules.yaml").write_text(yaml.safe_dump({"groups": groups}))


@pytest.mark.parametrize("path", FILES)
def test_alerts_are_valid(path: Path, promtool: Path, tmp_path: Path) -> None:
    write_rules(path, tmp_path)
    assert checked(promtool, tmp_path, "check", "rules", "--lint-fatal", "rules.yaml") == ""


@pytest.mark.parametrize("path", [one for one in FILES if (UNIT_TESTS / f"{one.id}.yaml").exists()])
def test_alerts_fire_as_expected(path: Path, promtool: Path, tmp_path: Path) -> None:
    write_rules(path, tmp_path)
    (tmp_path / "tests.yaml").write_bytes((UNIT_TESTS / path.name).read_bytes())
    assert checked(promtool, tmp_path, "test", "rules", "tests.yaml") == ""


@pytest.mark.parametrize("name", ["advisor", "approver", "placement"])
def test_alerts_have_a_test_each(name: str) -> None:
    stories = yaml.safe_load((UNIT_TESTS / f"{name}.yaml").read_text())["tests"]
    fired = {check["alertname"] for story in stories for check in story["alert_rule_test"] if check["exp_alerts"]}
    groups = yaml.safe_load((ROOT / "deploy" / "alerts" / f"{name}.yaml").read_text())["spec"]["groups"]
    assert fired == {rule["alert"] for group in groups for rule in group["rules"]}


@pytest.mark.parametrize("rule", RULES)
def test_alerts_use_existing_metrics(rule: dict[str, Any]) -> None:
    asked = set(METRIC.findall(rule["expr"]))
    assert asked
    assert asked <= exported()


@pytest.mark.parametrize("rule", RULES)
def test_alerts_use_existing_reasons(rule: dict[str, Any]) -> None:
    named = {name for names in re.findall(r'reason\W+"([^"]*)"', rule["expr"]) for name in names.split("|")}
    assert named <= WAITING


@pytest.mark.parametrize("rule", RULES)
def test_alerts_have_runbooks(rule: dict[str, Any]) -> None:
    runbook = rule["annotations"]["runbook_url"]
    assert runbook == f"docs/runbooks/{rule['alert']}.md"
    assert (ROOT / runbook).read_text().startswith(f"# {rule['alert']}\n")


def test_runbook_of_blocked_plans_covers_reasons() -> None:
    [rule] = [one.values[0] for one in RULES if one.id == "InstallPlanBlocked"]
    [names] = re.findall(r'reason=~"([^"]*)"', rule["expr"])
    table = (ROOT / rule["annotations"]["runbook_url"]).read_text()
    assert set(names.split("|")) == set(re.findall(r"`(\w+)`(?=[,` \w]*\|)", table))


def test_runbook_of_unplaced_machines_covers_reasons() -> None:
    table = (ROOT / "docs" / "runbooks" / "MachineUnplaced.md").read_text()
    assert set(UnplacedReason) == set(re.findall(r"`(\w+)`(?=[,` \w]*\|)", table))
