"""What is held back: each rule on histories that keep it, and on ones that break it."""

import pytest

from tests.checker.builders import (
    ADMIN,
    Log,
    a_config,
    a_machine_config,
    a_pool,
    an_item,
    an_offered_plan,
    approve,
    at,
    found,
    user,
)
from tests.checker.history import Object
from tests.checker.placement import CLUSTER

ADVISOR, AUTOPILOT, PLACEMENT = map(user, ("advisor", "autopilot", "placement"))
DESCHEDULER = "ops/cluster"
PLATFORM = "openshift-cnv/kubevirt-hyperconverged"
ALERTS = "openshift-cnv/virt-platform-autopilot-alerts"
PREFIX = "platform.kubevirt.io/"
IN_HALF_A_YEAR, ALWAYS = {"schedule": "0 0 1 6 *"}, {"schedule": "* * * * *"}


@pytest.mark.parametrize(("hold", "invariant"), [("virt-steward-freeze", "freeze"), ("closes-gate", "gate")])
@pytest.mark.parametrize(("seconds", "is_held"), [(2, False), (6, True), (12, False)])
def test_nothing_begins_in_a_freeze_or_at_a_closed_gate(
    hold: str, invariant: str, seconds: float, *, is_held: bool
) -> None:
    log = an_offered_plan()
    log.put(1.5, ADMIN, "ConfigMap", f"virt-steward/{hold}", {"data": {"reason": "holidays"}})
    if seconds < 10:
        approve(log, seconds, approver="")
    log.delete(10, ADMIN, "ConfigMap", f"virt-steward/{hold}")
    if seconds > 10:
        approve(log, seconds, approver="")
    assert found(log) == ([invariant] if is_held else [])


@pytest.mark.parametrize(
    ("data", "corrected", "placed"),
    [({}, [], []), ({"scope": "all"}, ["freeze"], []), ({"controllers": "advisor,placement"}, [], ["freeze"])],
)
def test_freeze_holds_what_it_names(data: Object, corrected: list[str], placed: list[str]) -> None:
    log = Log()
    log.put(0, AUTOPILOT, "Service", "ops/metrics", {"spec": {"type": "A"}})
    log.put(0, ADMIN, "Machine", "team/web", {"metadata": {"creationTimestamp": at(0).isoformat()}})
    log.put(1, ADMIN, "ConfigMap", "virt-steward/virt-steward-freeze", {"data": data})
    log.put(2, ADMIN, "Service", "ops/metrics", {"spec": {"type": "B"}})
    log.put(5, AUTOPILOT, "Service", "ops/metrics", {"spec": {"type": "A"}})
    assert found(log) == corrected
    log.put(6, PLACEMENT, "Machine", "team/web", {"metadata": {"annotations": {CLUSTER: "east"}}})
    assert found(log) == [*corrected, *placed]


@pytest.mark.parametrize("is_known", [False, True])
def test_autopilot_creates_nothing_new_in_a_freeze(*, is_known: bool) -> None:
    log = Log()
    if is_known:
        log.put(0, AUTOPILOT, "Service", "ops/metrics", {"spec": {"type": "A"}})
    log.put(1, ADMIN, "ConfigMap", "virt-steward/virt-steward-freeze", {"data": {}})
    if is_known:
        log.delete(2, ADMIN, "Service", "ops/metrics")
    log.put(5, AUTOPILOT, "Service", "ops/metrics", {"spec": {"type": "A"}})
    assert found(log) == ([] if is_known else ["freeze"])


@pytest.mark.parametrize(
    ("policy", "scope", "creator", "broken"),
    [
        ("delete", "metrics-service", AUTOPILOT, []),
        ("keep", "metrics-service", AUTOPILOT, ["opt-out"]),
        ("delete", "metrics-service,prometheus-alerts", AUTOPILOT, ["opt-out"]),
        ("delete", "metrics-service", ADMIN, ["opt-out"]),
    ],
)
def test_autopilot_deletes_what_it_created_and_nobody_wants(
    policy: str, scope: str, creator: str, broken: list[str]
) -> None:
    log = Log()
    annotations = {f"{PREFIX}on-opt-out": policy, f"{PREFIX}autopilot": scope}
    log.put(0, ADMIN, "HyperConverged", PLATFORM, {"metadata": {"annotations": annotations}})
    log.put(1, creator, "PrometheusRule", ALERTS, {"spec": {"groups": []}})
    log.put(2, AUTOPILOT, "PrometheusRule", ALERTS, {"spec": {"groups": ["a"]}})
    log.delete(5, AUTOPILOT, "PrometheusRule", ALERTS)
    assert found(log) == broken


@pytest.mark.parametrize(("window", "broken"), [("* * * * * 1h", []), ("0 0 1 6 * 1h", ["rollout"])])
def test_autopilot_reboots_inside_its_window(window: str, broken: list[str]) -> None:
    log = Log()
    annotations = {f"{PREFIX}rollout": "window", f"{PREFIX}rollout-window": window}
    log.put(0, ADMIN, "HyperConverged", PLATFORM, {"metadata": {"annotations": annotations}})
    log.put(1, ADMIN, "MachineConfigPool", "worker", a_pool("rendered-1", "rendered-1"))
    log.put(9, AUTOPILOT, "MachineConfig", "swap", a_machine_config("b"))
    assert found(log) == broken


@pytest.mark.parametrize(
    ("spec", "broken"),
    [
        ({"window": ALWAYS, "freeze": IN_HALF_A_YEAR}, []),
        ({"window": IN_HALF_A_YEAR}, ["window"]),
        ({"freeze": ALWAYS}, ["window"]),
    ],
)
def test_no_item_begins_outside_of_its_window(spec: Object, broken: list[str]) -> None:
    log = Log()
    config = a_config("Apply", an_item())
    log.put(0, ADMIN, "VirtPlatformConfig", "load-aware", {**config, "spec": {**config["spec"], **spec}})
    log.put(5, ADVISOR, "KubeDescheduler", DESCHEDULER, {"spec": {"mode": "Automatic"}})
    assert found(log) == broken


@pytest.mark.parametrize(
    ("policy", "broken"),
    [
        ({"windows": [IN_HALF_A_YEAR, ALWAYS], "freezes": [IN_HALF_A_YEAR]}, []),
        ({"windows": [IN_HALF_A_YEAR]}, ["approval"]),
        ({"freezes": [ALWAYS]}, ["approval"]),
        ({"approvals": {"required": 2}}, []),
        ({"approvals": {"required": 3}}, ["approval"]),
    ],
)
def test_approver_waits_for_windows_and_people(policy: Object, broken: list[str]) -> None:
    log = an_offered_plan()
    log.put(2, ADMIN, "InstallPlanApprover", "virt-steward/all", {"spec": {"policy": policy}})
    lines = "1 - - first\n1 - - second\n1 - again second\n2 - - third"
    notes = {"annotations": {"operators.bapu.cloud/approvals": lines}}
    log.put(3, ADMIN, "InstallPlan", "team/install-1", {"metadata": notes})
    approve(log, 8, approver="")
    assert found(log) == broken


@pytest.mark.parametrize(("people", "broken"), [("first second", []), ("first first", ["advisor"])])
def test_advisor_waits_for_several_people(people: str, broken: list[str]) -> None:
    log = Log()
    config = a_config("Apply", an_item(), approved="sha256:1")
    lines = "\n".join(f"1 - - {one}" for one in people.split())
    notes = {**config["metadata"]["annotations"], "advisor.kubevirt.io/approvals": lines}
    spec = {**config["spec"], "approvals": {"required": 2}}
    log.put(0, ADMIN, "VirtPlatformConfig", "load-aware", {**config, "spec": spec, "metadata": {"annotations": notes}})
    log.put(5, ADVISOR, "KubeDescheduler", DESCHEDULER, {"spec": {"mode": "Automatic"}})
    assert found(log) == broken


@pytest.mark.parametrize(("began", "broken"), [(4, []), (12, ["advisor"])])
def test_advisor_goes_on_with_what_was_approved_when_it_began(began: float, broken: list[str]) -> None:
    log = Log()
    log.put(0, ADMIN, "VirtPlatformConfig", "load-aware", a_config("Apply", an_item()))
    runs = {"status": {"phase": "InProgress"}}
    if began < 8:
        log.put(began, ADVISOR, "VirtPlatformConfig", "load-aware", runs)
    log.put(8, ADMIN, "VirtPlatformConfig", "load-aware", {"spec": {"approvals": {"required": 2}}})
    if began > 8:
        log.put(began, ADVISOR, "VirtPlatformConfig", "load-aware", runs)
    log.put(20, ADVISOR, "KubeDescheduler", DESCHEDULER, {"spec": {"mode": "Automatic"}})
    assert found(log) == broken
