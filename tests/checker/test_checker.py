"""Each invariant on two small histories: one that keeps it, and one that breaks it."""

import ast
import json
import sys
from pathlib import Path

import pytest

from tests.checker.autopilot import release_id
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
    owned,
    the_facts,
    user,
)
from tests.checker.facts import MemberAnswer, Wanted
from tests.checker.history import Interval, Ref

HERE = Path(__file__).parent
ADVISOR, AUTOPILOT, APPROVER, PLACEMENT = map(user, ("advisor", "autopilot", "approver", "placement"))
DESCHEDULER = "ops/cluster"
PLATFORM = "openshift-cnv/kubevirt-hyperconverged"
FORCED = "fieldManager=virt-advisor-operator&force=true"
RELEASE = "platform.kubevirt.io/rollout-release"
IGNORED = "platform.kubevirt.io/ignore-fields"
CLUSTER = "vitistack.io/kubevirt-config"
STAGED = {"asset": "swap-enable", "stagedAt": "2026-03-01T12:00:09Z", "desiredHash": "sha256:2", "liveHash": "sha256:1"}


def test_checker_imports_nothing_of_what_it_judges() -> None:
    imported = set()
    for module in HERE.glob("*.py"):
        for node in ast.walk(ast.parse(module.read_text())):
            if isinstance(node, ast.Import):
                imported |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom):
                assert node.level == 0, f"{module.name} imports relatively"
                imported.add(node.module or "")
    foreign = {name for name in imported if name.partition(".")[0] not in sys.stdlib_module_names}
    assert {name for name in foreign if not name.startswith("tests.checker")} == {"msgspec", "pytest"}


@pytest.mark.parametrize(
    ("config", "broken"),
    [
        (a_config("Apply", an_item()), []),
        (a_config("Apply", an_item(), approved="1"), []),
        (a_config("Rollback", an_item(), approved="sha256:1"), []),
        (a_config("Apply", an_item(), approved="sha256:0"), ["advisor"]),
        (a_config("Rollback", an_item()), ["advisor"]),
        (a_config("DryRun", an_item()), ["advisor"]),
        (a_config("Apply", an_item("another")), ["advisor"]),
    ],
)
def test_advisor_writes_what_an_approved_plan_names(config: dict[str, object], broken: list[str]) -> None:
    log = Log()
    log.put(0, ADMIN, "VirtPlatformConfig", "load-aware", config)
    log.put(5, ADVISOR, "KubeDescheduler", DESCHEDULER, {"spec": {"mode": "Automatic"}})
    assert found(log) == broken


def test_advisor_may_act_on_a_config_that_changed_a_moment_ago() -> None:
    log = Log()
    log.put(0, ADMIN, "VirtPlatformConfig", "load-aware", a_config("Apply", an_item()))
    log.put(4, ADMIN, "VirtPlatformConfig", "load-aware", {"spec": {"action": "Ignore"}})
    log.put(5, ADVISOR, "KubeDescheduler", DESCHEDULER, {"spec": {"mode": "Automatic"}})
    assert found(log, the_facts(tolerance=2.0)) == []
    assert found(log, the_facts(tolerance=0.5)) == ["advisor"]


@pytest.mark.parametrize(("listed", "broken"), [(("kubectl",), []), ((), ["force"])])
def test_advisor_takes_listed_fields_only(listed: tuple[str, ...], broken: list[str]) -> None:
    log = Log()
    log.put(0, ADMIN, "VirtPlatformConfig", "load-aware", a_config("Apply", an_item("cluster", *listed)))
    log.put(1, ADMIN, "KubeDescheduler", DESCHEDULER, {"spec": {"mode": "A"}, "metadata": owned(mode="kubectl")})
    taken = {"spec": {"mode": "B"}, "metadata": owned(mode="virt-advisor-operator")}
    log.put(2, ADVISOR, "KubeDescheduler", DESCHEDULER, taken, query=FORCED)
    assert found(log) == broken


def a_staged_change() -> Log:
    log = Log()
    log.put(0, ADMIN, "HyperConverged", PLATFORM, {"metadata": {"annotations": {}}})
    log.put(0, ADMIN, "MachineConfigPool", "worker", a_pool("rendered-1", "rendered-1"))
    log.put(1, AUTOPILOT, "MachineConfig", "swap", a_machine_config("a"))
    log.put(2, ADMIN, "MachineConfigPool", "worker", a_pool("rendered-2", "rendered-2"))
    data = {"swap": json.dumps(STAGED)}
    log.put(9, AUTOPILOT, "ConfigMap", "openshift-cnv/virt-platform-autopilot-mc-staging", {"data": data})
    return log


def test_autopilot_creates_what_reboots_and_holds_changes_back() -> None:
    log = a_staged_change()
    assert found(log) == []
    log.put(20, AUTOPILOT, "MachineConfig", "swap", a_machine_config("b"))
    assert found(log) == ["rollout"]


@pytest.mark.parametrize("wanted", ["sha256:2", "sha256:3"])
def test_autopilot_writes_what_was_released(wanted: str) -> None:
    log = a_staged_change()
    released = release_id({**STAGED, "desiredHash": wanted})
    log.put(15, ADMIN, "HyperConverged", PLATFORM, {"metadata": {"annotations": {RELEASE: f"other@1, {released}"}}})
    log.put(20, AUTOPILOT, "MachineConfig", "swap", a_machine_config("b"))
    assert found(log) == ([] if wanted == STAGED["desiredHash"] else ["rollout"])


@pytest.mark.parametrize("policy", ["coalesce", "approve", "immediate"])
def test_autopilot_joins_a_rollout_if_the_policy_says_so(policy: str) -> None:
    log = a_staged_change()
    annotations = {"platform.kubevirt.io/rollout": policy}
    log.put(15, ADMIN, "HyperConverged", PLATFORM, {"metadata": {"annotations": annotations}})
    log.put(19, ADMIN, "MachineConfigPool", "worker", a_pool("rendered-3", "rendered-2", updating=True))
    log.put(20, AUTOPILOT, "MachineConfig", "swap", a_machine_config("b"))
    assert found(log) == (["rollout"] if policy == "approve" else [])


@pytest.mark.parametrize(("field", "broken"), [("/spec/type", ["mask"]), ("/spec/other", [])])
def test_autopilot_leaves_ignored_fields(field: str, broken: list[str]) -> None:
    log = Log()
    log.put(0, ADMIN, "Service", "ops/metrics", {"metadata": {"annotations": {IGNORED: field}}, "spec": {"type": "A"}})
    log.put(9, AUTOPILOT, "Service", "ops/metrics", {"spec": {"type": "B"}})
    assert found(log) == broken


def count(log: Log, number: int) -> None:
    status = {"status": {"approvedCount": number}}
    log.put(6, APPROVER, "InstallPlanApprover", "virt-steward/all", status)


def test_approver_approves_a_pinned_plan_and_counts_it() -> None:
    log = an_offered_plan()
    approve(log)
    count(log, 1)
    assert found(log) == []


@pytest.mark.parametrize("number", [0, 2])
def test_approver_counts_exactly(number: int) -> None:
    log = an_offered_plan()
    approve(log)
    count(log, number)
    assert found(log) == ["count"]


def test_approver_does_not_count_what_others_approved_in_its_name() -> None:
    log = an_offered_plan()
    approve(log, by="mallory")
    count(log, 1)
    assert found(log) == ["count"]


@pytest.mark.parametrize(
    "log",
    [an_offered_plan(phase=""), an_offered_plan(pin="op.v2"), an_offered_plan(home="another-team")],
    ids=["too early", "not pinned", "not covered"],
)
def test_approver_keeps_the_rules(log: Log) -> None:
    approve(log, approver="")
    assert found(log) == ["approval"]


def a_placed_machine(*clusters: str) -> Log:
    log = Log()
    log.put(0, ADMIN, "Machine", "team/web", {"metadata": {"creationTimestamp": at(0).isoformat()}})
    for number, cluster in enumerate(clusters, start=5):
        log.put(number, PLACEMENT, "Machine", "team/web", {"metadata": {"annotations": {CLUSTER: cluster}}})
    return log


def answers(east: set[str] | None, west: set[str] | None) -> tuple[MemberAnswer, ...]:
    given = {"east": east, "west": west}
    return tuple(
        MemberAnswer(name, at(1), "team", None if vms is None else frozenset(vms)) for name, vms in given.items()
    )


@pytest.mark.parametrize(
    ("clusters", "east", "west", "broken"),
    [
        (("east",), set(), set(), []),
        (("east",), {"vm-web"}, None, []),
        (("east",), set(), None, ["placement"]),
        (("east",), set(), {"vm-web"}, ["placement"]),
        (("east", "west"), set(), set(), ["placement"]),
    ],
)
def test_machine_is_placed_once_and_knowingly(
    clusters: tuple[str, ...], east: set[str] | None, west: set[str] | None, broken: list[str]
) -> None:
    facts = the_facts(members=("east", "west"), answers=answers(east, west))
    assert found(a_placed_machine(*clusters), facts) == broken


def test_placement_keeps_conditions_of_others() -> None:
    log = Log()
    ready, placed = {"type": "Ready", "status": "True"}, {"type": "Placed", "status": "True"}
    log.put(0, ADMIN, "Machine", "team/web", {"status": {"conditions": [ready]}})
    log.put(1, PLACEMENT, "Machine", "team/web", {"status": {"conditions": [ready, placed]}})
    assert found(log) == []
    log.put(2, PLACEMENT, "Machine", "team/web", {"status": {"conditions": [placed]}})
    assert found(log) == ["placement"]


def test_only_the_leader_writes_and_only_within_its_lease() -> None:
    log = Log()
    log.leads(0, "placement", "a")
    log.put(1, user("placement", "a"), "Service", "ops/one", {"spec": {"by": "a"}})
    log.leads(6, "placement", "b")
    log.put(7, user("placement", "b"), "Service", "ops/one", {"spec": {"by": "b"}})
    assert found(log) == []
    log.put(8, user("placement", "a"), "Service", "ops/one", {"spec": {"by": "late"}})
    log.put(11, user("placement", "b"), "Service", "ops/one", {"spec": {"by": "later"}})
    assert found(log) == ["leader", "leader"]
    assert found(log, the_facts(outages=(Interval(at(7.5), at(11)),))) == [], "the server was stopped meanwhile"


def test_correction_is_applied_once() -> None:
    log = Log()
    log.put(0, AUTOPILOT, "Service", "ops/metrics", {"spec": {"type": "A"}})
    log.put(1, ADMIN, "Service", "ops/metrics", {"spec": {"type": "B"}})
    log.put(2, AUTOPILOT, "Service", "ops/metrics", {"spec": {"type": "A"}})
    assert found(log) == []
    log.put(3, AUTOPILOT, "Service", "ops/metrics", {"spec": {"type": "A"}})
    assert found(log) == ["twice"]


def test_release_of_fields_is_no_repetition() -> None:
    log = Log()
    ours = owned(type="virt-steward-release")
    log.put(0, AUTOPILOT, "Service", "ops/metrics", {"spec": {"type": "A"}, "metadata": ours})
    log.put(1, AUTOPILOT, "Service", "ops/metrics", {"metadata": owned(port="virt-steward-release")})
    assert found(log) == []
    log.put(2, AUTOPILOT, "Service", "ops/metrics", {"spec": {"type": "A"}})
    assert found(log) == ["twice"]


def test_fields_of_others_are_taken_or_stay() -> None:
    log = Log()
    log.put(0, ADMIN, "Service", "ops/metrics", {"spec": {"type": "A"}, "metadata": owned(type="kubectl", port="helm")})
    taken = {"spec": {"type": "B"}, "metadata": owned(type="virt-platform-autopilot", port="helm")}
    log.put(1, AUTOPILOT, "Service", "ops/metrics", taken)
    assert found(log) == []
    log.put(
        2, AUTOPILOT, "Service", "ops/metrics", {"metadata": owned(type="virt-platform-autopilot"), "spec": {"x": 1}}
    )
    assert found(log) == ["foreign"]
    log.put(3, ADMIN, "Service", "ops/other", {"metadata": owned(type="kubectl")})
    log.delete(4, PLACEMENT, "Service", "ops/other")
    assert found(log) == ["foreign", "foreign"]


def test_fields_converge_and_silence_follows() -> None:
    log = Log()
    log.put(1, AUTOPILOT, "Service", "ops/metrics", {"spec": {"type": "A"}})
    service, quiet = Ref("services", "ops", "metrics"), Interval(at(5), at(9))
    wanted = (Wanted(service, ("spec", "type"), ("A",)), Wanted(service, ("spec", "other"), ()))
    assert found(log, the_facts(wanted=wanted, quiet=quiet)) == []
    log.put(2, ADMIN, "Service", "ops/metrics", {"spec": {"type": "B"}})
    log.put(6, AUTOPILOT, "Service", "ops/metrics", {"spec": {"other": "C"}})
    assert found(log, the_facts(wanted=wanted, quiet=quiet)) == ["convergence", "convergence", "silence"]


def test_write_after_a_lost_answer_is_not_attributed() -> None:
    log = an_offered_plan(phase="")
    log.put(2, ADMIN, "InstallPlan", "team/install-1", {"status": {"phase": "RequiresApproval"}}, code=504)
    approve(log, approver="")
    assert found(log) == []
    killed = an_offered_plan(phase="")
    approve(killed, approver="")
    assert found(killed, None, Interval(at(2), at(3))) == []
    assert found(killed) == ["approval"]


def test_object_whose_last_write_is_unknown_is_judged_as_it_was_read() -> None:
    log = Log()
    log.put(0, ADMIN, "Service", "ops/metrics", {"spec": {"type": "A"}})
    log.put(1, AUTOPILOT, "Service", "ops/metrics", {"spec": {"type": "B"}}, code=504)
    service = Ref("services", "ops", "metrics")
    assert log.history().lost == {service}
    wanted = (Wanted(service, ("spec", "type"), ("B",)),)
    assert found(log, the_facts(wanted=wanted)) == ["convergence"]
    assert found(log, the_facts(wanted=wanted, live={service: {"spec": {"type": "B"}}})) == []


def test_history_of_a_deleted_object_starts_again() -> None:
    log = Log()
    log.put(0, ADMIN, "Service", "ops/metrics", {"spec": {"type": "A"}})
    log.delete(1, ADMIN, "Service", "ops/metrics")
    log.put(2, AUTOPILOT, "Service", "ops/metrics", {"spec": {"type": "A"}})
    versions = log.history().of(Ref("services", "ops", "metrics"))
    assert [one.obj is None for one in versions] == [False, True, False]
    assert versions[-1].before is None
