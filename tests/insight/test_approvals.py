"""Why a plan is approved or not, asked of a real API server."""

from datetime import UTC, datetime

import pytest

from tests.audit import AuditLog
from tests.operators import a_csv, a_pending_plan, a_subscription, an_approver, create, csv_of
from virt_steward.apis.installplanapprover import INSTALL_PLAN_APPROVER
from virt_steward.controllers.approver.checks import CHECKS
from virt_steward.controllers.approver.manual_approval import APPROVED_AT, APPROVED_BY_USER
from virt_steward.controllers.approver.olm import APPROVED_BECAUSE, APPROVED_BY, INSTALL_PLAN
from virt_steward.controllers.approver.options import ApproverOptions
from virt_steward.decisions.installplans import ReviewedPlan, approve_manually
from virt_steward.insight.approvals import (
    ApprovalExplanation,
    Approved,
    Chain,
    NoAnswer,
    explain_approval,
)
from virt_steward.kube.client import Client, Reader
from virt_steward.objects.identity import Key, Ref, ref_of
from virt_steward.ssa import managers

NOW = datetime(2031, 1, 6, 12, 0, tzinfo=UTC)


async def asked(client: Client, namespace: str, plan: str = "install-1", *policies: str) -> ApprovalExplanation:
    options = ApproverOptions(frozenset(policies))
    return await explain_approval(Reader(client.connection, client.discovery), Key(namespace, plan), options, NOW)


def the_chain(found: ApprovalExplanation, approver: str) -> Chain:
    """Approvers of other tests may be about: what they say is not asked."""
    return next(chain for chain in found.approvers if chain.approver == approver)


async def test_explain_approval_of_pinned_plan_passes_every_check(admin: Client, operators: str) -> None:
    await create(
        admin,
        a_pending_plan(operators),
        a_subscription(operators, pin="1.0.0", offered="1.0.0"),
        an_approver(operators),
    )
    found = await asked(admin, operators)
    chain = the_chain(found, f"{operators}/approver")
    assert chain.verdict == "approves"
    assert chain.because == "demo-operator.v1.0.0 is the startingCSV of its Subscription"
    assert [(one.title, one.result) for one in chain.checks] == [(check.title, "pass") for check in CHECKS]
    assert [one.reason for one in chain.checks if one.reason] == [chain.because]


async def test_explain_approval_shows_failed_check_of_unpinned_upgrade(admin: Client, operators: str) -> None:
    await create(
        admin,
        a_pending_plan(operators, "1.1.0"),
        a_subscription(operators, pin="1.0.0", offered="1.1.0", installed="1.0.0"),
        a_csv(operators, "1.0.0", "Succeeded"),
        an_approver(operators),
    )
    found = await asked(admin, operators)
    [csv] = found.csvs
    assert (csv.name, csv.package, csv.pin, csv.installed) == (
        csv_of("1.1.0"),
        "demo-operator",
        csv_of("1.0.0"),
        csv_of("1.0.0"),
    )
    chain = the_chain(found, f"{operators}/approver")
    assert chain.verdict == "waits"
    assert chain.reason == "NotPinned"
    [failed] = [check for check in chain.checks if check.result == "fail"]
    assert (failed.title, failed.decided) == ("Every CSV is pinned or allowed by the policy", True)
    assert "set startingCSV to demo-operator.v1.1.0" in failed.reason
    position = chain.checks.index(failed)
    assert {check.result for check in chain.checks[:position]} == {"pass"}
    assert {check.result for check in chain.checks[position + 1 :]} == {"not reached"}


async def test_explain_approval_says_when_window_opens(admin: Client, operators: str) -> None:
    windows = [{"schedule": "0 22 * * *", "duration": "4h"}]
    await create(
        admin,
        a_pending_plan(operators),
        a_subscription(operators, pin="1.0.0", offered="1.0.0"),
        an_approver(operators, policy={"windows": windows}),
    )
    chain = the_chain(await asked(admin, operators), f"{operators}/approver")
    assert (chain.reason, chain.until) == ("OutsideWindow", "2031-01-06T22:00:00Z")


async def test_explain_approval_shows_scope_of_approver(admin: Client, operators: str) -> None:
    await create(
        admin,
        a_pending_plan(operators),
        a_subscription(operators, pin="1.0.0", offered="1.0.0"),
        an_approver(operators, targetNamespaces=["elsewhere"]),
    )
    chain = the_chain(await asked(admin, operators), f"{operators}/approver")
    assert chain.verdict == "leaves it alone"
    assert [check.title for check in chain.checks if check.decided] == ["Namespace in scope"]


async def test_explain_approval_decides_by_policy_namespaces(admin: Client, operators: str) -> None:
    other = f"{operators}-policies"
    await admin.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": other}})
    await create(
        admin,
        a_pending_plan(operators),
        a_subscription(operators, pin="1.0.0", offered="1.0.0"),
        an_approver(operators),
        an_approver(other, targetNamespaces=[operators], autoApprove=False),
    )
    names = (f"{operators}/approver", f"{other}/approver")
    alone, governed = await asked(admin, operators), await asked(admin, operators, "install-1", other)
    assert [the_chain(alone, name).verdict for name in names] == ["approves", "leaves it alone"]
    assert [the_chain(governed, name).reason for name in names] == ["LeftToPolicyNamespace", "AutoApproveOff"]
    assert governed.policy_namespaces == (other,)


async def test_explain_approval_reads_namespace_labels(admin: Client, operators: str) -> None:
    selector = {"matchLabels": {"kubernetes.io/metadata.name": operators}}
    await create(
        admin,
        a_pending_plan(operators),
        a_subscription(operators, pin="1.0.0", offered="1.0.0"),
        an_approver(operators, namespaceSelector=selector),
    )
    assert the_chain(await asked(admin, operators), f"{operators}/approver").verdict == "approves"


async def test_explain_approval_reports_unreadable_subscription(admin: Client, operators: str) -> None:
    odd = a_subscription(operators, pin="1.0.0", offered="1.0.0")
    odd["spec"]["startingCSV"] = 7
    await create(admin, a_pending_plan(operators), odd, an_approver(operators))
    assert the_chain(await asked(admin, operators), f"{operators}/approver").reason == "SubscriptionUnreadable"
    await admin.delete(ref_of(odd))  # other tests read all Subscriptions of this cluster


async def test_explain_approval_names_user_and_comment(admin: Client, operators: str) -> None:
    await create(admin, a_pending_plan(operators))
    assert (await asked(admin, operators)).decision is None
    await approve_manually(admin, Key(operators, "install-1"), ReviewedPlan(None, None), "CHG-7: tested", NOW)
    found = await asked(admin, operators)
    assert found.approved
    assert found.decision == Approved("admin, manually", "2031-01-06T12:00:00Z", "CHG-7: tested")


@pytest.mark.parametrize("exists", [True, False], ids=["that-exists", "that-is-gone"])
async def test_explain_approval_names_approver(admin: Client, operators: str, exists: bool) -> None:
    await create(admin, a_pending_plan(operators), an_approver(operators))
    approver = Ref(INSTALL_PLAN_APPROVER, Key(operators, "approver"))
    uid = (await admin.get(approver))["metadata"]["uid"]
    stamp = {APPROVED_BY: uid, APPROVED_AT: "2031-01-06T12:00:00Z", APPROVED_BECAUSE: "it is pinned"}
    patch = {"metadata": {"annotations": stamp}, "spec": {"approved": True}}
    await admin.merge_patch(Ref(INSTALL_PLAN, Key(operators, "install-1")), patch, manager=managers.APPROVAL.name)
    if not exists:
        await admin.delete(approver)
    name = f"{operators}/approver" if exists else "(deleted)"
    found = await asked(admin, operators)
    assert found.decision == Approved(f"InstallPlanApprover {name}", "2031-01-06T12:00:00Z", "it is pinned")


async def test_explain_approval_ignores_stamp_of_others(admin: Client, operators: str) -> None:
    await create(admin, a_pending_plan(operators))
    stamp = {APPROVED_BY: "uid", APPROVED_BECAUSE: "I say so", APPROVED_BY_USER: "admin"}
    patch = {"metadata": {"annotations": stamp}, "spec": {"approved": True}}
    await admin.merge_patch(Ref(INSTALL_PLAN, Key(operators, "install-1")), patch, manager="kubectl-edit")
    assert (await asked(admin, operators)).decision is None


async def test_explain_approval_without_signature_has_no_decision(admin: Client, operators: str) -> None:
    await create(admin, a_pending_plan(operators, approved=True))
    found = await asked(admin, operators)
    assert (found.approved, found.decision) == (True, None)


async def test_explain_approval_of_missing_plan_lists_existing(admin: Client, operators: str) -> None:
    await create(admin, a_pending_plan(operators))
    with pytest.raises(NoAnswer, match=f"InstallPlan {operators}/other not found; .*: install-1"):
        await asked(admin, operators, "other")


async def test_explain_approval_reports_undecodable_plan(admin: Client, operators: str) -> None:
    await create(admin, a_pending_plan(operators, clusterServiceVersionNames=[7]))
    with pytest.raises(NoAnswer, match="cannot be decoded"):
        await asked(admin, operators)


async def test_explain_approval_writes_nothing(admin: Client, operators: str, audit_log: AuditLog) -> None:
    await create(
        admin,
        a_pending_plan(operators),
        a_subscription(operators, pin="1.0.0", offered="1.0.0"),
        an_approver(operators),
    )
    mark = audit_log.mark()
    await asked(admin, operators)
    requests = [one for one in audit_log.since(mark) if one.user_agent == "tests"]
    assert {one.verb for one in requests} == {"list"}
    assert len(requests) == 6
