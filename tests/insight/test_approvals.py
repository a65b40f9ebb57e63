"""Why a plan is approved or not, asked of a real API server."""

from datetime import UTC, datetime

import pytest

from tests.audit import AuditLog
from tests.operators import a_csv, a_subscription, a_waiting_plan, an_approver, create, csv_of
from virt_steward.apis.installplanapprover import INSTALL_PLAN_APPROVER
from virt_steward.controllers.approver.checks import CHECKS
from virt_steward.controllers.approver.manual_approval import approve_manually
from virt_steward.controllers.approver.olm import APPROVED_AT, APPROVED_BECAUSE, APPROVED_BY, INSTALL_PLAN
from virt_steward.insight.approvals import ApprovalCheck, ApprovalExplanation, Approved, Chain, NoAnswer, why
from virt_steward.kube.client import Client, Reader
from virt_steward.objects.identity import Key, Ref

NOW = datetime(2031, 1, 6, 12, 0, tzinfo=UTC)


async def asked(client: Client, namespace: str, plan: str = "install-1") -> ApprovalExplanation:
    return await why(Reader(client.connection, client.discovery), Key(namespace, plan), NOW)


def the_chain(found: ApprovalExplanation, approver: str) -> Chain:
    """Approvers of other tests may be about: what they say is not asked."""
    return next(chain for chain in found.approvers if chain.approver == approver)


async def test_a_pinned_plan_passes_every_check(admin: Client, operators: str) -> None:
    await create(
        admin,
        a_waiting_plan(operators),
        a_subscription(operators, pin="1.0.0", offered="1.0.0"),
        an_approver(operators),
    )
    found = await asked(admin, operators)
    chain = the_chain(found, f"{operators}/approver")
    assert chain.verdict == "approves"
    assert chain.because == "demo-operator.v1.0.0 is the startingCSV of its Subscription"
    assert chain.steps == tuple(ApprovalCheck(check.title, None) for check in CHECKS)


async def test_an_upgrade_that_nobody_pinned_is_refused_by_the_check_that_decides(
    admin: Client, operators: str
) -> None:
    await create(
        admin,
        a_waiting_plan(operators, "1.1.0"),
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
    *passed, last = chain.steps
    assert all(step.refusal is None for step in passed)
    assert last.check == "every csv is pinned"
    assert last.refusal
    assert last.refusal.reason == "NotPinned"
    assert "set startingCSV to demo-operator.v1.1.0" in last.refusal.message


async def test_what_waits_for_a_window_says_until_when(admin: Client, operators: str) -> None:
    windows = [{"schedule": "0 22 * * *", "duration": "4h"}]
    await create(
        admin,
        a_waiting_plan(operators),
        a_subscription(operators, pin="1.0.0", offered="1.0.0"),
        an_approver(operators, policy={"windows": windows}),
    )
    chain = the_chain(await asked(admin, operators), f"{operators}/approver")
    assert chain.steps[-1].refusal
    assert chain.steps[-1].refusal.reason == "OutsideWindow"
    assert chain.steps[-1].refusal.until == "2031-01-06T22:00:00Z"


async def test_an_approver_of_other_namespaces_leaves_the_plan_alone(admin: Client, operators: str) -> None:
    await create(
        admin,
        a_waiting_plan(operators),
        a_subscription(operators, pin="1.0.0", offered="1.0.0"),
        an_approver(operators, targetNamespaces=["elsewhere"]),
    )
    chain = the_chain(await asked(admin, operators), f"{operators}/approver")
    assert chain.verdict == "leaves it alone"
    assert chain.steps[-1].check == "Namespace in scope"


async def test_labels_of_the_namespace_count(admin: Client, operators: str) -> None:
    selector = {"matchLabels": {"kubernetes.io/metadata.name": operators}}
    await create(
        admin,
        a_waiting_plan(operators),
        a_subscription(operators, pin="1.0.0", offered="1.0.0"),
        an_approver(operators, namespaceSelector=selector),
    )
    assert the_chain(await asked(admin, operators), f"{operators}/approver").verdict == "approves"


async def test_a_subscription_that_cannot_be_read_is_not_taken_for_absent(admin: Client, operators: str) -> None:
    odd = a_subscription(operators, pin="1.0.0", offered="1.0.0")
    odd["spec"]["startingCSV"] = 7
    await create(admin, a_waiting_plan(operators), odd, an_approver(operators))
    last = the_chain(await asked(admin, operators), f"{operators}/approver").steps[-1]
    assert last.refusal
    assert last.refusal.reason == "SubscriptionUnreadable"


async def test_a_persons_approval_is_told_with_name_and_comment(admin: Client, operators: str) -> None:
    await create(admin, a_waiting_plan(operators))
    assert (await asked(admin, operators)).decision is None
    await approve_manually(admin, Key(operators, "install-1"), "CHG-7: tested", NOW)
    found = await asked(admin, operators)
    assert found.approved
    assert found.decision == Approved("admin, by hand", "2031-01-06T12:00:00Z", "CHG-7: tested")


@pytest.mark.parametrize("exists", [True, False], ids=["that-exists", "that-is-gone"])
async def test_an_approval_is_told_with_the_approver(admin: Client, operators: str, exists: bool) -> None:
    await create(admin, a_waiting_plan(operators), an_approver(operators))
    approver = Ref(INSTALL_PLAN_APPROVER, Key(operators, "approver"))
    uid = (await admin.get(approver))["metadata"]["uid"]
    stamp = {APPROVED_BY: uid, APPROVED_AT: "2031-01-06T12:00:00Z", APPROVED_BECAUSE: "it is pinned"}
    patch = {"metadata": {"annotations": stamp}, "spec": {"approved": True}}
    await admin.merge_patch(Ref(INSTALL_PLAN, Key(operators, "install-1")), patch)
    if not exists:
        await admin.delete(approver)
    name = f"{operators}/approver" if exists else "that is gone"
    found = await asked(admin, operators)
    assert found.decision == Approved(f"InstallPlanApprover {name}", "2031-01-06T12:00:00Z", "it is pinned")


async def test_who_approved_without_a_name_is_not_made_up(admin: Client, operators: str) -> None:
    await create(admin, a_waiting_plan(operators, approved=True))
    found = await asked(admin, operators)
    assert (found.approved, found.decision) == (True, None)


async def test_a_plan_that_is_not_there_is_said_with_those_that_are(admin: Client, operators: str) -> None:
    await create(admin, a_waiting_plan(operators))
    with pytest.raises(NoAnswer, match=f"no InstallPlan {operators}/other; .* there are: install-1"):
        await asked(admin, operators, "other")


async def test_a_plan_that_cannot_be_read_is_said_to_be_so(admin: Client, operators: str) -> None:
    await create(admin, a_waiting_plan(operators, clusterServiceVersionNames=[7]))
    with pytest.raises(NoAnswer, match="cannot be read"):
        await asked(admin, operators)


async def test_asking_writes_nothing(admin: Client, operators: str, audit_log: AuditLog) -> None:
    await create(
        admin,
        a_waiting_plan(operators),
        a_subscription(operators, pin="1.0.0", offered="1.0.0"),
        an_approver(operators),
    )
    mark = audit_log.mark()
    await asked(admin, operators)
    requests = [one for one in audit_log.since(mark) if one.user_agent == "tests"]
    assert {one.verb for one in requests} == {"list"}
    assert len(requests) == 5
