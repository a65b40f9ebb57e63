"""Findings on a switch-over, from records of what was found."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from virt_steward.apis.profiles import ProfileOptions
from virt_steward.apis.virtplatformconfig import BlastRadius, PlanItem, TargetRef
from virt_steward.cli.switch_check import EXIT_CODES, report_lines
from virt_steward.controllers.approver.observation import Approver
from virt_steward.controllers.approver.olm import Subscription
from virt_steward.controllers.approver.options import ApproverOptions
from virt_steward.controllers.placement.options import PlacementRules
from virt_steward.insight.approvals import APPROVES, PendingInstallPlan
from virt_steward.insight.assets.changes import OBSOLETE, AssetChange, ChangeAction
from virt_steward.insight.deployments import flags_in
from virt_steward.insight.placements import VmWhereabouts
from virt_steward.insight.plans import PlannedChanges
from virt_steward.insight.switchover.advisor import AdvisorSeen, ConfigSeen, advisor_findings
from virt_steward.insight.switchover.approver import ApproverSeen, approver_findings
from virt_steward.insight.switchover.autopilot import AssetContact, AutopilotSeen, Contact, autopilot_findings
from virt_steward.insight.switchover.findings import Effect, SwitchFinding, SwitchReport, SwitchVerdict, verdict_on
from virt_steward.insight.switchover.operators import (
    OPERATORS,
    DeploymentSeen,
    LeaseSeen,
    OperatorSeen,
    operator_findings,
)
from virt_steward.insight.switchover.placement import PlacementSeen, placement_findings
from virt_steward.objects.identity import Key, Kind, Ref
from virt_steward.platform.machineconfigs import MACHINE_CONFIG

BY_NAME = {one.controller: one for one in OPERATORS}
SWAP = Ref(MACHINE_CONFIG, Key("", "90-worker-swap-online"))
RULE = Ref(Kind("monitoring.coreos.com", "PrometheusRule"), Key("openshift-cnv", "alerts"))


def a_report(*effects: Effect) -> SwitchReport:
    return SwitchReport("advisor", ("a trace",), tuple(SwitchFinding(one, "it", "is so") for one in effects))


def an_obsolete(ref: Ref, staged: str = "") -> AssetChange:
    return AssetChange("", ref, ChangeAction.DELETE, OBSOLETE, staged=staged, is_obsolete=True)


@pytest.mark.parametrize(
    ("effects", "verdict", "code"),
    [
        ((), SwitchVerdict.SAME, 0),
        ((Effect.NOTE,), SwitchVerdict.SAME, 0),
        ((Effect.NOTE, Effect.CHANGE), SwitchVerdict.CHANGES, 2),
        ((Effect.CHANGE, Effect.UNKNOWN), SwitchVerdict.UNKNOWN, 1),
    ],
)
def test_verdict_is_unknown_if_anything_is(effects: tuple[Effect, ...], verdict: SwitchVerdict, code: int) -> None:
    assert verdict_on((a_report(), a_report(*effects))) is verdict
    assert EXIT_CODES[verdict] == code


def test_report_lines_fit_80_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    finding = SwitchFinding(Effect.CHANGE, "MachineConfig a", "would be " + "staged " * 20, "-a\n+b", "all " * 30)
    lines = list(report_lines((SwitchReport("autopilot", ("Lease x",), (finding,)),), SwitchVerdict.CHANGES))
    assert lines[0].endswith("autopilot: 1 change\x1b[0m")
    assert all(len(line) <= 80 for line in lines[1:])
    assert lines[-1] == "Verdict: something would change. Nothing was changed"


def test_report_lines_cut_long_diffs() -> None:
    finding = SwitchFinding(Effect.CHANGE, "PersesDashboard a", "would be created", "+a\n" * 100)
    lines = list(report_lines((SwitchReport("autopilot", ("Lease x",), (finding,)),), SwitchVerdict.CHANGES))
    assert "      70 more lines; -o json has all of them" in lines
    assert len(lines) < 40


def test_report_lines_say_where_no_operator_is() -> None:
    lines = list(report_lines((SwitchReport("approver", ()),), SwitchVerdict.SAME))
    assert "approver: no trace of installplan-approver-operator" in lines[0]


def test_flags_in_reads_both_forms() -> None:
    words = ["/manager", "--leader-elect", "--namespace", "cnv", "-metrics-bind-address=:8443", "--zap-devel"]
    assert flags_in(words) == {
        "leader-elect": "",
        "namespace": "cnv",
        "metrics-bind-address": ":8443",
        "zap-devel": "",
    }


@pytest.mark.parametrize(
    ("controller", "flags", "words"),
    [
        pytest.param(
            "autopilot", {"namespace": "cnv"}, ["--hyperconverged cnv/kubevirt-hyperconverged"], id="namespace"
        ),
        pytest.param("autopilot", {"metrics-bind-address": ":8443"}, ["metrics are on :8443"], id="metrics by TLS"),
        pytest.param("autopilot", {"metrics-bind-address": ":8080"}, [], id="the same port"),
        pytest.param(
            "approver",
            {"health-probe-bind-address": ":8081"},
            ["serves no metrics", "probes are on :8081"],
            id="defaults",
        ),
    ],
)
def test_operator_findings_name_settings_that_differ(controller: str, flags: dict[str, str], words: list[str]) -> None:
    seen = OperatorSeen(BY_NAME[controller], deployments=(DeploymentSeen(Key("cnv", "op"), flags),))
    found = list(operator_findings(seen))
    assert {one.effect for one in found} <= {Effect.NOTE}
    assert len(found) == len(words)
    assert all(word in one.message for one, word in zip(found, words, strict=True))


@pytest.mark.parametrize(("is_renewed", "count"), [(True, 1), (False, 0)])
def test_operator_findings_say_who_runs(is_renewed: bool, count: int) -> None:
    seen = OperatorSeen(BY_NAME["advisor"], (LeaseSeen(Key("a", "b"), "pod-1", is_renewed),))
    assert [one.message for one in operator_findings(seen)] == [
        "virt-advisor-operator runs now. virt-steward stands by and writes nothing until you stop it"
    ] * count


def test_operator_findings_cannot_tell_without_leases() -> None:
    (found,) = operator_findings(OperatorSeen(BY_NAME["advisor"], problem="forbidden (403) to list leases"))
    assert (found.effect, found.message) == (Effect.UNKNOWN, "cannot tell: forbidden (403) to list leases")


def an_approver(namespace: str = "ops", **spec: Any) -> Approver:
    return msgspec.convert({"metadata": {"name": "all", "namespace": namespace}, "spec": spec}, Approver)


def a_subscription(**spec: Any) -> Subscription:
    document = {
        "metadata": {"name": "etcd", "namespace": "apps"},
        "spec": {"name": "etcd", "installPlanApproval": "Manual", **spec},
        "status": {"installedCSV": "etcd.v1"},
    }
    return msgspec.convert(document, Subscription)


@pytest.mark.parametrize(
    ("approver", "covers"),
    [
        pytest.param(an_approver(), "covers all namespaces now, and would cover ops alone", id="all namespaces"),
        pytest.param(
            an_approver(targetNamespaces=["apps", "ops"]), "covers apps, ops now, and would cover ops alone", id="two"
        ),
        pytest.param(an_approver(targetNamespaces=["apps"]), "covers apps now, and would cover nothing", id="another"),
        pytest.param(an_approver(targetNamespaces=["ops"]), "", id="its own"),
        pytest.param(an_approver("virt-steward"), "", id="a policy namespace"),
    ],
)
def test_approver_findings_name_lost_scope(approver: Approver, covers: str) -> None:
    found = list(approver_findings(ApproverSeen((approver,)), ApproverOptions()))
    assert [covers in one.message for one in found] == ([True] if covers else [])
    assert all("--policy-namespaces ops" in one.message for one in found)


@pytest.mark.parametrize(
    ("approver", "subscription", "is_lost"),
    [
        pytest.param({}, a_subscription(), True, id="no pin"),
        pytest.param({}, a_subscription(startingCSV="etcd.v1"), False, id="a pin"),
        pytest.param({}, a_subscription(installPlanApproval="Automatic"), False, id="automatic"),
        pytest.param({"autoApprove": False}, a_subscription(), False, id="approves nothing"),
        pytest.param({"targetNamespaces": ["other"]}, a_subscription(), False, id="another namespace"),
        pytest.param({"operatorNames": ["mesh"]}, a_subscription(), False, id="another operator"),
        pytest.param({"operatorNames": ["etcd"]}, a_subscription(), True, id="this operator"),
    ],
)
def test_approver_findings_name_subscriptions_without_pin(
    approver: dict[str, Any], subscription: Subscription, is_lost: bool
) -> None:
    seen = ApproverSeen((an_approver("virt-steward", **approver),), (subscription,))
    found = list(approver_findings(seen, ApproverOptions()))
    assert [one.subject for one in found] == (["Subscription apps/etcd"] if is_lost else [])
    assert all("startingCSV: etcd.v1" in one.message and one.effect is Effect.CHANGE for one in found)


@pytest.mark.parametrize(("reason", "count"), [(APPROVES, 1), ("PinNotOffered", 0)])
def test_approver_findings_name_plans_that_ours_approves(reason: str, count: int) -> None:
    plan = PendingInstallPlan(Key("apps", "install-1"), ("etcd.v1",), datetime.now(UTC), reason, "it is pinned")
    found = list(approver_findings(ApproverSeen(pending=(plan,)), ApproverOptions()))
    assert [one.message for one in found] == ["would be approved: it is pinned"] * count


def a_plan(*states: str) -> PlannedChanges:
    items = tuple(
        PlanItem(
            f"item-{number}",
            TargetRef("v1", "ConfigMap", "target"),
            "High",
            state=state,  # type: ignore[arg-type] # from a table
            diff="+a" if state == "Pending" else "",
            blast_radius=BlastRadius(message="3 nodes reboot"),
        )
        for number, state in enumerate(states)
    )
    return PlannedChanges("p", ProfileOptions(), "High", "hash", items, (), len(items))


@pytest.mark.parametrize(
    ("config", "words"),
    [
        pytest.param(ConfigSeen("p", "Apply", "Completed", plan=a_plan("Completed")), [], id="the same plan"),
        pytest.param(
            ConfigSeen("p", "Apply", "Completed", plan=a_plan("Completed", "Pending")),
            ["becomes CompletedWithUpgrade", "would change once you approve the plan (item-1, impact High)"],
            id="another plan",
        ),
        pytest.param(
            ConfigSeen("p", "DryRun", "ReviewRequired", plan=a_plan("Pending")),
            ["stays in review", "would change once"],
            id="in review",
        ),
        pytest.param(
            ConfigSeen("p", "Apply", "InProgress", plan=a_plan("Pending")),
            ["what is left is put into review", "would change once"],
            id="in progress",
        ),
        pytest.param(
            ConfigSeen("p", "Apply", "Drifted", plan=a_plan("Pending")), ["stays Drifted", "would change"], id="drifted"
        ),
        pytest.param(
            ConfigSeen("p", "Apply", None, plan=a_plan("Pending")),
            ["virt-steward plans and executes it. Set DryRun first", "would change once"],
            id="to be executed",
        ),
        pytest.param(
            ConfigSeen("p", "Apply", "Drafting", plan=a_plan("Pending")),
            ["is put into review with our plan", "would change once"],
            id="drafting",
        ),
        pytest.param(
            ConfigSeen("p", "Apply", "Failed", plan=a_plan("Pending")), ["stays Failed", "would change"], id="failed"
        ),
        pytest.param(
            ConfigSeen("p", "DryRun", None, plan=a_plan("Pending")), ["waits for review", "would change"], id="new"
        ),
        pytest.param(ConfigSeen("p", "Ignore", "Ignored"), [], id="ignored"),
        pytest.param(ConfigSeen("p", "Apply", "Completed", is_ours=True), [], id="of virt-steward already"),
        pytest.param(ConfigSeen("p", "Apply", "Failed", no_plan="no such kind"), ["has no plan here"], id="no plan"),
        pytest.param(ConfigSeen("p", "Apply", "Completed", forbidden="403"), ["cannot tell: 403"], id="forbidden"),
    ],
)
def test_advisor_findings_by_phase(config: ConfigSeen, words: list[str]) -> None:
    found = list(advisor_findings(AdvisorSeen((config,))))
    assert len(found) == len(words)
    assert all(word in one.message for one, word in zip(found, words, strict=True))


def test_advisor_findings_carry_diff_and_disruption() -> None:
    seen = AdvisorSeen((ConfigSeen("p", "Apply", "Completed", plan=a_plan("Pending")),))
    *_, item = advisor_findings(seen)
    assert (item.subject, item.diff, item.disruption) == ("ConfigMap target", "+a", "3 nodes reboot")


@pytest.mark.parametrize(
    ("contact", "effect", "words"),
    [
        pytest.param(
            AssetContact("swap", SWAP, Contact.CREATE),
            Effect.CHANGE,
            "nodes reboot at once. To review it",
            id="reboots",
        ),
        pytest.param(AssetContact("alerts", RULE, Contact.CREATE), Effect.CHANGE, "would be created (", id="created"),
        pytest.param(
            AssetContact("swap", SWAP, Contact.CHANGE, staged="it waits"),
            Effect.CHANGE,
            "staged, not changed (asset swap): it waits. It is also applied once you release it",
            id="staged",
        ),
        pytest.param(
            AssetContact("swap", SWAP, Contact.CREATE, staged="it waits"),
            Effect.CHANGE,
            "staged, not created (asset swap): it waits",
            id="staged creation",
        ),
        pytest.param(AssetContact("alerts", RULE, Contact.CHANGE), Effect.CHANGE, "would be changed", id="changed"),
        pytest.param(AssetContact("alerts", RULE, Contact.REOWN), Effect.NOTE, "no value changes", id="reowned"),
        pytest.param(AssetContact("alerts", RULE, Contact.LEAVE, "no key"), Effect.CHANGE, "by nobody", id="left"),
        pytest.param(
            AssetContact("alerts", RULE, Contact.FAIL, "403"), Effect.UNKNOWN, "cannot tell: 403", id="failed"
        ),
    ],
)
def test_autopilot_findings_by_contact(contact: AssetContact, effect: Effect, words: str) -> None:
    (found,) = autopilot_findings(AutopilotSeen(contacts=(contact,), managed=1))
    assert found.effect is effect
    assert words in found.message


def test_autopilot_findings_name_alerts_that_go() -> None:
    contact = AssetContact("alerts", RULE, Contact.CHANGE, alerts_gone=("OldAlert",))
    _, found = autopilot_findings(AutopilotSeen(contacts=(contact,)))
    assert found.message.endswith("that name them: OldAlert")


@pytest.mark.parametrize(
    ("seen", "words"),
    [
        pytest.param(
            AutopilotSeen("no annotation", managed=3, others=(SWAP,)), ["virt-steward would be idle"], id="idle"
        ),
        pytest.param(AutopilotSeen("is false", is_off=True, managed=3, others=(SWAP,)), [], id="off for both"),
        pytest.param(AutopilotSeen("no HyperConverged"), [], id="nothing there"),
        pytest.param(
            AutopilotSeen(others=(SWAP,), managed=1), ["virt-steward has no asset for it"], id="not in our catalog"
        ),
        pytest.param(AutopilotSeen(obsolete=(an_obsolete(RULE),), managed=1), ["would be deleted"], id="obsolete"),
        pytest.param(
            AutopilotSeen(obsolete=(an_obsolete(SWAP, "it waits"),), managed=1),
            ["it is obsolete; would be kept for now: it waits"],
            id="obsolete and not reviewed",
        ),
        pytest.param(AutopilotSeen(renamed=("nhc-far",)), ["is called node-remediation here"], id="renamed"),
        pytest.param(AutopilotSeen(problems=("403",)), ["cannot tell: 403"], id="forbidden"),
    ],
)
def test_autopilot_findings_on_what_is_not_managed(seen: AutopilotSeen, words: list[str]) -> None:
    found = list(autopilot_findings(seen))
    assert len(found) == len(words)
    assert all(word in one.message for one, word in zip(found, words, strict=True))


@pytest.mark.parametrize(
    ("templates", "found", "is_lost"),
    [
        pytest.param(("vm-{machine}",), {"east": "web"}, True, id="named as its machine"),
        pytest.param(("vm-{machine}",), {"east": "vm-web"}, False, id="named as ours"),
        pytest.param(("vm-{machine}", "{machine}"), {"east": "web"}, False, id="both are searched"),
        pytest.param(("vm-{machine}",), {}, False, id="no VM"),
    ],
)
def test_placement_findings_name_vms_called_otherwise(
    templates: tuple[str, ...], found: dict[str, str], is_lost: bool
) -> None:
    seen = PlacementSeen((VmWhereabouts(Key("shop", "web"), found, {}),))
    changes = [
        one for one in placement_findings(seen, PlacementRules(vm_names=templates)) if one.effect is Effect.CHANGE
    ]
    assert [one.message.endswith("--vm-name 'vm-{machine},{machine}'") for one in changes] == (
        [True] if is_lost else []
    )


def test_placement_findings_cannot_tell_without_cluster() -> None:
    seen = PlacementSeen((VmWhereabouts(Key("shop", "web"), {}, {"east": "cluster east: timed out"}),) * 2)
    unknown = [one for one in placement_findings(seen, PlacementRules()) if one.effect is Effect.UNKNOWN]
    assert [(one.subject, one.message) for one in unknown] == [
        ("Cluster east", "cannot tell: cluster east: timed out")
    ], "once, however many Machines there are"
