"""Alerts that ask for something that is never told would never fire."""

import re
from pathlib import Path
from random import Random
from typing import Any

import pytest
import yaml

from tests.runtime.clocks import ManualClock
from virt_steward.controllers.approver.gauges import PendingGauges
from virt_steward.controllers.approver.verdicts import Reason
from virt_steward.runtime.metrics import Metrics
from virt_steward.runtime.notify import Notifier

ROOT = Path(__file__).parents[2]
RULES = [
    pytest.param(rule, id=rule["alert"])
    for path in sorted((ROOT / "deploy" / "alerts").glob("*.yaml"))
    for group in yaml.safe_load(path.read_text())["spec"]["groups"]
    for rule in group["rules"]
]
METRIC = re.compile(r"\b[a-z]+(?:_[a-z]+)+(?=\{)")
WAITING = set(Reason) - {Reason.ALREADY_APPROVED, Reason.AUTOMATIC, Reason.NOT_WAITING}


def exported() -> set[str]:
    metrics = Metrics()
    PendingGauges(metrics.registry)
    Notifier({}, ManualClock(), Random(1), metrics.registry)
    return {
        f"{family.name}_total" if family.type == "counter" else family.name for family in metrics.registry.collect()
    }


@pytest.mark.parametrize("rule", RULES)
def test_an_alert_asks_for_metrics_that_there_are(rule: dict[str, Any]) -> None:
    asked = set(METRIC.findall(rule["expr"]))
    assert asked
    assert asked <= exported()


@pytest.mark.parametrize("rule", RULES)
def test_an_alert_names_reasons_for_which_plans_wait(rule: dict[str, Any]) -> None:
    named = {name for names in re.findall(r'reason\W+"([^"]*)"', rule["expr"]) for name in names.split("|")}
    assert named <= WAITING


@pytest.mark.parametrize("rule", RULES)
def test_an_alert_has_a_runbook_of_its_name(rule: dict[str, Any]) -> None:
    runbook = rule["annotations"]["runbook_url"]
    assert runbook == f"docs/runbooks/{rule['alert']}.md"
    assert (ROOT / runbook).read_text().startswith(f"# {rule['alert']}\n")


def test_the_runbook_of_blocked_plans_knows_every_reason_of_the_alert() -> None:
    [rule] = [one.values[0] for one in RULES if one.id == "InstallPlanBlocked"]
    [names] = re.findall(r'reason=~"([^"]*)"', rule["expr"])
    table = (ROOT / rule["annotations"]["runbook_url"]).read_text()
    assert set(names.split("|")) == set(re.findall(r"`(\w+)`(?=[,` \w]*\|)", table))
