"""What needs a person, and in which order."""

from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from tests.controllers.advisor.builders import PLAN, a_config, a_status, an_item
from tests.controllers.placement.builders import a_machine
from virt_steward.apis.kubevirtconfig import KUBEVIRT_CONFIG
from virt_steward.apis.meta import Condition
from virt_steward.apis.virtplatformconfig import VIRT_PLATFORM_CONFIG, BlastRadius, PlanApprovalRules, PoolRadius
from virt_steward.controllers.approver.olm import INSTALL_PLAN
from virt_steward.controllers.placement.observation import MACHINE, MachineCondition, MachineStatus
from virt_steward.controllers.placement.observe import KubevirtConfig as Cluster
from virt_steward.controllers.placement.observe import KubevirtConfigMeta, KubevirtConfigReport
from virt_steward.insight.approvals import UNCOVERED, PendingInstallPlan
from virt_steward.insight.inbox import (
    InboxItem,
    Urgency,
    command_for,
    inbox,
    of_clusters,
    of_machines,
    of_plans,
    of_profiles,
)
from virt_steward.objects.identity import Key, Ref
from virt_steward.objects.meta import Meta
from virt_steward.platform.hco import HYPERCONVERGED
from virt_steward.platform.pools import Pool, PoolSpec, PoolStatus

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
RADIUS = BlastRadius(pools=(PoolRadius("worker", 3, 3),), node_count=3, message="3 nodes reboot")


def a_condition(type_: str, message: str = "", *, reason: str = "Said", status: str = "True") -> Condition:
    return msgspec.convert(
        {"type": type_, "status": status, "reason": reason, "message": message, "lastTransitionTime": NOON}, Condition
    )


def of_phase(
    phase: str, *items: Any, message: str = "because", reason: str = "Said", **changes: Any
) -> list[InboxItem]:
    said = (a_condition(phase, message, reason=reason),)
    return list(of_profiles([a_config(a_status(phase, *items, conditions=said, **changes))], []))


@pytest.mark.parametrize(
    ("phase", "tag", "button"),
    [
        ("Failed", "Failed", "See what failed"),
        ("CompletedWithErrors", "Errors", "See what failed"),
        ("Drifted", "Drifted", "See the change"),
        ("PrerequisiteFailed", "Blocked", "See what is missing"),
        ("CompletedWithUpgrade", "Upgrade", "See the profile"),
    ],
)
def test_inbox_lists_profile_that_needs_a_person(phase: str, tag: str, button: str) -> None:
    [item] = of_phase(phase)
    assert (item.tag, item.why, item.button) == (tag, "because", button)


@pytest.mark.parametrize("phase", ["Pending", "Drafting", "InProgress", "Completed", "Ignored"])
def test_inbox_omits_profile_that_needs_nobody(phase: str) -> None:
    assert of_phase(phase) == []


@pytest.mark.parametrize(("hold", "tags"), [("Frozen", ["Frozen"]), ("WaitingForGates", ["Gate closed"]), ("X", [])])
def test_inbox_lists_plan_that_is_held(hold: str, tags: list[str]) -> None:
    said = (a_condition("InProgress", "it runs"), a_condition(hold, "a reason"))
    found = list(of_profiles([a_config(a_status("InProgress", conditions=said))], []))
    assert [(item.tag, item.why) for item in found] == [(tag, "a reason") for tag in tags]


def test_inbox_review_states_impact() -> None:
    item = an_item(impact_severity="High", blast_radius=RADIUS)
    [item] = of_phase("ReviewRequired", item)
    assert (item.tag, item.tone, item.why) == ("High impact", "bad", "3 nodes reboot")
    [item] = of_phase("ReviewRequired", an_item())
    assert item.tag == "Low impact"
    assert item.why == "Changes KubeDescheduler configure-descheduler; no node reboots."


@pytest.mark.parametrize("reason", ["ApprovalVoid", "InputChanged"])
def test_inbox_review_is_repeated_after_change(reason: str) -> None:
    [item] = of_phase("ReviewRequired", reason=reason, message="it is another plan")
    assert item.says == "needs another review"
    assert item.why.startswith("it is another plan. ")


def test_inbox_review_counts_approvals() -> None:
    notes = {"approvals": f"{PLAN} - - ann"}
    config = a_config(a_status("ReviewRequired"), notes=notes, approvals=PlanApprovalRules(2))
    [item] = of_profiles([config], [])
    assert item.says == "waits for approvals"
    assert item.why.startswith("1 of 2 approvals (ann); needs one more. Changes KubeDescheduler")


def test_inbox_review_of_rollback_says_so() -> None:
    [item] = of_phase("ReviewRequired", plan_action="Rollback")
    assert "rolled back" in item.says


@pytest.mark.parametrize(
    ("notes", "is_in"),
    [
        pytest.param({"rejected-plan": PLAN, "rejected-generation": "1"}, False, id="this-one"),
        pytest.param({"rejected-plan": PLAN, "rejected-generation": "0"}, True, id="when-it-was-asked-for-before"),
        pytest.param({"rejected-plan": "b" * 64, "rejected-generation": "1"}, True, id="another"),
        pytest.param({}, True, id="none"),
    ],
)
def test_inbox_omits_rejected_plan(notes: dict[str, str], is_in: bool) -> None:
    assert bool(list(of_profiles([a_config(a_status(), notes=notes)], []))) is is_in


@pytest.mark.parametrize(
    ("pool", "says"),
    [
        pytest.param(Pool(Meta("worker"), PoolSpec(paused=True)), "is paused", id="paused"),
        pytest.param(Pool(Meta("worker"), status=PoolStatus(degraded_machine_count=1)), "1 degraded", id="degraded"),
    ],
)
def test_inbox_lists_stuck_rollout(pool: Pool, says: str) -> None:
    config = a_config(a_status("InProgress", an_item(state="InProgress", blast_radius=RADIUS)))
    [item] = of_profiles([config], [pool])
    assert (item.tag, says in item.why) == ("Stuck", True)
    assert list(of_profiles([config], [Pool(Meta("master"), PoolSpec(paused=True))])) == []


@pytest.mark.parametrize(
    ("reason", "until", "is_in"),
    [
        (UNCOVERED, None, True),
        ("UnpinnedUpgradeRidesAlong", None, True),
        ("Superseded", None, False),
        ("OutsideWindow", NOON, False),
        ("Approves", None, False),
    ],
)
def test_inbox_lists_install_plan_that_needs_a_person(reason: str, until: datetime | None, is_in: bool) -> None:
    waiting = PendingInstallPlan(Key("shop", "install-1"), ("db.v2",), NOON, reason, "why", until)
    assert bool(list(of_plans([waiting]))) is is_in


def test_inbox_omits_healthy_machines_and_clusters() -> None:
    def machine(status: str) -> Any:
        placed = MachineCondition("Placed", status, "Reason", "why")
        return msgspec.structs.replace(a_machine(), status=MachineStatus((placed,)))

    assert list(of_machines([a_machine(), machine("True")])) == []
    [item] = of_machines([machine("False")])
    assert (item.subject, item.says, item.why) == ("default/my-vm", "has no cluster", "why")

    def cluster(status: str, reason: str) -> Cluster:
        reachable = a_condition("Reachable", "no", status=status, reason=reason)
        return Cluster(KubevirtConfigMeta("east"), status=KubevirtConfigReport(machines=2, conditions=(reachable,)))

    assert list(of_clusters([cluster("True", "Answers")])) == []
    for reason, says in (("NoAnswer", "is unreachable"), ("Refuses", "cannot be used")):
        [item] = of_clusters([cluster("False", reason)])
        assert item.says == f"{says}; 2 machines placed there"


def test_inbox_sorts_by_urgency() -> None:
    waiting = PendingInstallPlan(Key("shop", "install-1"), ("db.v2",), NOON, UNCOVERED, "why")
    high = of_phase("ReviewRequired", an_item(impact_severity="High"))
    low, failed, drifted = of_phase("ReviewRequired"), of_phase("Failed"), of_phase("Drifted")
    upgrade = of_phase("CompletedWithUpgrade")
    found = inbox(upgrade, of_plans([waiting]), low, drifted, high, failed)
    assert [one.tag for one in found] == ["Failed", "High impact", "Drifted", "Low impact", "Held", "Upgrade"]


@pytest.mark.parametrize(
    ("ref", "urgency", "tag", "asset", "command"),
    [
        (Ref(VIRT_PLATFORM_CONFIG, Key("", "x")), Urgency.REVIEW, "Low impact", "", "virt-steward approve x"),
        (Ref(VIRT_PLATFORM_CONFIG, Key("", "x")), Urgency.DRIFTED, "Drifted", "", "virt-steward explain plan x"),
        (Ref(INSTALL_PLAN, Key("shop", "x")), Urgency.HELD, "Held", "", "virt-steward approve shop/x"),
        (Ref(MACHINE, Key("shop", "x")), Urgency.HELD, "Unplaced", "", "virt-steward explain machine shop/x"),
        (Ref(HYPERCONVERGED, Key("cnv", "x")), Urgency.REVIEW, "Staged", "swap", "virt-steward release swap"),
        (Ref(HYPERCONVERGED, Key("cnv", "x")), Urgency.STUCK, "Paused", "swap", "virt-steward resume swap"),
        (Ref(HYPERCONVERGED, Key("cnv", "x")), Urgency.BROKEN, "Fails", "swap", "virt-steward explain asset swap"),
        (
            Ref(KUBEVIRT_CONFIG, Key("", "x")),
            Urgency.STUCK,
            "Cluster",
            "",
            "kubectl describe kubevirtconfigs.vitistack.io x",
        ),
    ],
)
def test_command_for_each_item(ref: Ref, urgency: Urgency, tag: str, asset: str, command: str) -> None:
    assert command_for(InboxItem(urgency, tag, "info", ref, "x", "waits", "because", "See it", asset)) == command
