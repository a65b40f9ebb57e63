"""Explanations of decisions: every check has a title and a result, and says what decided."""

from datetime import timedelta

from hypothesis import HealthCheck, given, settings

from tests.controllers.advisor.builders import NOON, a_config, a_status, an_item, an_observation, done
from tests.controllers.advisor.specimens import observations
from virt_steward.apis.drift import DriftEntry
from virt_steward.controllers.advisor.decide import CHECKS, decide, trace
from virt_steward.controllers.advisor.observation import AdvisorObservation, InvalidWindow
from virt_steward.controllers.advisor.steps import Stay
from virt_steward.objects.checks import CheckResult
from virt_steward.objects.windows import Closed

OTHER = "sha256:" + "3" * 64


def decided(observation: AdvisorObservation) -> CheckResult:
    [found] = [one for one in trace(observation, NOON) if one.decided]
    return found


def test_trace_stops_at_missing_prerequisites() -> None:
    missing = "KubeDescheduler CRD is missing (install the Descheduler Operator)"
    found = trace(an_observation(a_config(a_status()), missing=(missing,)), NOON)
    assert found[:4] == (
        CheckResult("Action", "pass", "not Ignore"),
        CheckResult("Status", "pass", "the advisor compares it with its own record"),
        CheckResult("Inputs", "pass", "all read"),
        CheckResult("Prerequisites", "fail", missing, decided=True),
    )
    assert {one.result for one in found[4:]} == {"not reached"}


def test_trace_names_closed_window() -> None:
    config = a_config(a_status("InProgress"), action="Apply")
    closed = decided(an_observation(config, window=Closed(NOON + timedelta(hours=10))))
    assert (closed.title, closed.result) == ("Inside the maintenance window", "fail")
    assert "opens at 2026-03-01T22:00:00Z" in closed.reason
    invalid = decided(an_observation(config, window=InvalidWindow("no such zone")))
    assert invalid.reason == "spec.window is invalid (no such zone); no item starts until it is corrected"


def test_trace_of_review_fails_at_approval() -> None:
    found = decided(an_observation(a_config(a_status())))
    assert (found.title, found.result) == ("Approved", "fail")


def test_trace_of_approved_plan_passes_to_its_start() -> None:
    found = trace(an_observation(a_config(a_status(), generation=2, action="Apply")), NOON)
    results = {one.title: one.result for one in found}
    assert (results["Approved"], results["Targets unchanged"], results["Start"]) == ("pass", "pass", "pass")
    assert results["Inside the maintenance window"] == "not reached"


def test_trace_of_drift_fails_at_targets_as_planned() -> None:
    config = a_config(done(), action="Apply")
    line = (
        "KubeDescheduler configure-descheduler: /spec/mode is Predictive, planned Automatic (changed by kubectl-edit)"
    )
    entry = DriftEntry("/spec/mode", "Automatic", "Predictive", "kubectl-edit")
    found = decided(
        an_observation(config, hashes={"configure-descheduler": OTHER}, drift={"configure-descheduler": (entry,)})
    )
    assert found == CheckResult("Targets as planned", "fail", f"Drifted: {line}", decided=True)


def test_trace_without_decision_means_nothing_to_do() -> None:
    observation = an_observation(a_config(done(), action="Apply"))
    assert decide(observation, NOON) == Stay()
    assert not [one for one in trace(observation, NOON) if one.decided or one.result == "fail"]


def test_trace_of_ready_item_passes() -> None:
    found = decided(an_observation(a_config(a_status("InProgress", an_item()), action="Apply")))
    assert (found.title, found.result, found.reason) == ("Next item", "pass", "configure-descheduler is applied now")


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(observations())
def test_trace_has_every_check_and_at_most_one_decides(observation: AdvisorObservation) -> None:
    found = trace(observation, NOON)
    assert [one.title for one in found] == [check.title for check in CHECKS]
    deciding = [one for one in found if one.decided]
    assert len(deciding) <= 1
    assert deciding or decide(observation, NOON) == Stay()
    assert all(one.decided for one in found if one.result == "fail")
    assert all(one.reason for one in deciding)
