"""The alerts of all controllers: valid, on metrics that exist, with a runbook each, and firing when they should."""

import copy
import re
import subprocess
from pathlib import Path
from random import Random
from typing import Any

import pytest
import yaml

from tests.assets.contexts import Cluster, rendered
from tests.assets.test_observability import INSTALLED_MONITORING, RENAMED
from tests.runtime.clocks import ManualClock
from virt_steward.controllers import NAMES
from virt_steward.controllers.advisor.reporter import AdvisorMetrics
from virt_steward.controllers.approver.reporter import ApproverReporter
from virt_steward.controllers.approver.verdicts import PlanReason
from virt_steward.controllers.autopilot.metrics import AutopilotMetrics
from virt_steward.controllers.placement.reporter import PlacementReporter
from virt_steward.controllers.placement.verdicts import PlacementReason as UnplacedReason
from virt_steward.objects.tls_parameters import TlsParameters
from virt_steward.packaging.dashboards import dashboards
from virt_steward.packaging.monitoring import PROCESSES, MonitoringOptions, alerts
from virt_steward.runtime.access import Installation
from virt_steward.runtime.metrics import Metrics
from virt_steward.runtime.notifier import Notifier
from virt_steward.runtime.serving_tls import CertificateFiles, ServingTls

ROOT = Path(__file__).parents[2]
UNIT_TESTS = Path(__file__).parent / "rules"
INSTALLED = {name: rule["spec"] for name, rule in alerts(Installation(), MonitoringOptions()).items()}
RULES = [
    pytest.param(rule, id=rule["alert"])
    for spec in INSTALLED.values()
    for group in spec["groups"]
    for rule in group["rules"]
]
METRIC = re.compile(r"\b(?:kubevirt_autopilot|leader_election|virt|installplan)_[a-z_]+")
OF_MANY = re.compile(rf"{METRIC.pattern}|\b(?:controller_runtime|workqueue|process)_[a-z_]+")
SUFFIXES = {"counter": ("_total",), "histogram": ("_bucket", "_count", "_sum")}
WAITING = set(PlanReason) - {PlanReason.ALREADY_APPROVED, PlanReason.AUTOMATIC, PlanReason.NOT_WAITING}


def exported() -> set[str]:
    metrics = Metrics()
    nobody: Any = None  # nothing is reported here
    AdvisorMetrics(metrics.registry)
    ApproverReporter(nobody, nobody, ManualClock(), metrics.registry)
    AutopilotMetrics(metrics.registry)
    PlacementReporter(nobody, ManualClock(), metrics.registry)
    Notifier({}, ManualClock(), Random(1), metrics.registry)
    files = CertificateFiles(Path("tls.crt"), Path("tls.key"))
    ServingTls(files, TlsParameters("VersionTLS12", ()), ManualClock(), metrics.registry, verifies_clients=False)
    families = metrics.registry.collect()
    return {f"{family.name}{suffix}" for family in families for suffix in SUFFIXES.get(family.type, ("",))}


def checked(promtool: Path, folder: Path, *arguments: str) -> str:
    """What promtool says if it objects; nothing if it does not."""
    ended = subprocess.run([promtool, *arguments], cwd=folder, capture_output=True, text=True, check=False)
    return f"{ended.stdout}{ended.stderr}" if ended.returncode else ""


def stories(component: str) -> dict[str, Any]:
    """What is to fire when. Whatever is said of a renamed alert holds for its deprecated name, too."""
    known: dict[str, Any] = yaml.load((UNIT_TESTS / f"{component}.yaml").read_text(), yaml.BaseLoader)
    for story in known["tests"]:
        checks = story["alert_rule_test"]
        checks += [
            _as_before(check, old) for check in checks for old, new in RENAMED.items() if check["alertname"] == new
        ]
    return known


def _as_before(check: dict[str, Any], old: str) -> dict[str, Any]:
    fired = copy.deepcopy(check["exp_alerts"])
    for alert in fired:
        alert["exp_labels"]["operator_health_impact"] = alert["exp_labels"]["severity"]
        alert["exp_annotations"]["deprecated"] = (
            f"renamed to {check['alertname']}; this name goes with the next release"
        )
    return check | {"alertname": old, "exp_alerts": fired}


@pytest.mark.parametrize("component", INSTALLED)
def test_alerts_are_valid_and_fire_as_expected(component: str, promtool: Path, tmp_path: Path) -> None:
    (tmp_path / "rules.yaml").write_text(yaml.safe_dump(INSTALLED[component]))
    (tmp_path / "tests.yaml").write_text(yaml.safe_dump(stories(component), width=10_000))
    assert checked(promtool, tmp_path, "check", "rules", "--lint-fatal", "rules.yaml") == ""
    assert checked(promtool, tmp_path, "test", "rules", "tests.yaml") == ""


@pytest.mark.parametrize("component", INSTALLED)
def test_alerts_have_tests_where_they_fire_and_where_not(component: str) -> None:
    checks = [check for story in stories(component)["tests"] for check in story["alert_rule_test"]]
    alerts = {rule["alert"] for group in INSTALLED[component]["groups"] for rule in group["rules"]}
    assert {check["alertname"] for check in checks if check["exp_alerts"]} == alerts
    assert {check["alertname"] for check in checks if not check["exp_alerts"]} == alerts


def test_every_controller_has_alerts_and_one_that_it_does_not_run() -> None:
    assert [*INSTALLED] == [*NAMES, PROCESSES]
    silent = [rule.id for rule in RULES if str(rule.id).endswith("NotRunning")]
    assert len(silent) == len(NAMES)


def test_alert_names_are_unique() -> None:
    names = [rule.id for rule in RULES]
    assert len({*names}) == len(names)


def test_autopilot_alerts_are_those_of_its_asset_and_fire_once(promtool: Path, tmp_path: Path) -> None:
    asset = rendered("prometheus-alerts", Cluster())["spec"]["groups"]
    assert [group for group in INSTALLED["autopilot"]["groups"] if group in asset] == asset
    beside = rendered("prometheus-alerts", Cluster(objects=INSTALLED_MONITORING))["spec"]
    assert not [rule for group in beside["groups"] for rule in group["rules"]]
    (tmp_path / "rules.yaml").write_text(yaml.safe_dump(beside))
    assert checked(promtool, tmp_path, "check", "rules", "--lint-fatal", "rules.yaml") == ""


@pytest.mark.parametrize("rule", RULES)
def test_alerts_use_existing_metrics(rule: dict[str, Any]) -> None:
    asked = set(METRIC.findall(rule["expr"]))
    assert asked
    assert asked <= exported()


def test_dashboards_use_existing_metrics() -> None:
    for name, dashboard in dashboards().items():
        queries = [query.expr for row in dashboard.rows for panel in row.panels for query in panel.queries]
        asked = {metric for query in queries for metric in OF_MANY.findall(query)}
        assert asked, name
        assert asked <= exported(), name


@pytest.mark.parametrize("name", [*dashboards()])
def test_dashboard_queries_are_valid(name: str, promtool: Path, tmp_path: Path) -> None:
    panels = [panel for row in dashboards()[name].rows for panel in row.panels]
    rules = [
        {"record": f"test:query:{number}", "expr": query.expr, "labels": {"panel": panel.key}}
        for number, panel in enumerate(panels)
        for query in panel.queries
    ]
    (tmp_path / "rules.yaml").write_text(yaml.safe_dump({"groups": [{"name": name, "rules": rules}]}))
    assert checked(promtool, tmp_path, "check", "rules", "rules.yaml") == ""


@pytest.mark.parametrize("rule", RULES)
def test_alerts_use_existing_reasons(rule: dict[str, Any]) -> None:
    named = {name for names in re.findall(r'pending\w+\{reason\W+"([^"]*)"', rule["expr"]) for name in names.split("|")}
    assert named <= WAITING


@pytest.mark.parametrize("rule", RULES)
def test_alerts_have_runbooks(rule: dict[str, Any]) -> None:
    runbook = rule["annotations"]["runbook_url"]
    assert runbook == f"docs/runbooks/{RENAMED.get(rule['alert'], rule['alert'])}.md"
    assert (ROOT / "docs" / "runbooks" / f"{rule['alert']}.md").read_text().startswith(f"# {rule['alert']}\n")
    assert (ROOT / runbook).exists()


@pytest.mark.parametrize(
    ("runbooks", "wanted"),
    [
        pytest.param("https://docs.example/runbooks/", "https://docs.example/runbooks/{}.md", id="folder"),
        pytest.param("https://docs.example/r/%s/", "https://docs.example/r/{}/", id="pattern"),
    ],
)
def test_runbooks_may_be_elsewhere(runbooks: str, wanted: str) -> None:
    for rule in alerts(Installation(), MonitoringOptions(runbooks=runbooks)).values():
        for one in (one for group in rule["spec"]["groups"] for one in group["rules"]):
            assert one["annotations"]["runbook_url"] == wanted.format(RENAMED.get(one["alert"], one["alert"]))


def test_runbook_of_blocked_plans_covers_reasons() -> None:
    [rule] = [one.values[0] for one in RULES if one.id == "InstallPlanBlocked"]
    [names] = re.findall(r'reason=~"([^"]*)"', rule["expr"])
    table = (ROOT / rule["annotations"]["runbook_url"]).read_text()
    assert set(names.split("|")) == set(re.findall(r"`(\w+)`(?=[,` \w]*\|)", table))


def test_runbook_of_unplaced_machines_covers_reasons() -> None:
    table = (ROOT / "docs" / "runbooks" / "MachineUnplaced.md").read_text()
    assert set(UnplacedReason) == set(re.findall(r"`(\w+)`(?=[,` \w]*\|)", table))
