"""Approvers of policy namespaces decide for others; those of any other namespace decide for their own alone."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import msgspec
import pytest

from tests.controllers.approver.builders import (
    CACHE,
    NOON,
    V1,
    a_pinned_install,
    a_plan,
    a_subscription,
    an_approver,
    an_environment,
    fold,
    seen,
)
from tests.controllers.approver.conftest import Lifecycles, Start
from tests.controllers.approver.lifecycle import an_approver as created_approver
from tests.controllers.approver.lifecycle import status_of
from tests.controllers.approver.process import ALONE
from tests.controllers.approver.test_watches import Room
from tests.eventually import eventually
from virt_steward.apis.installplanapprover import ApprovalRecord, InstallPlanApproverStatus
from virt_steward.apis.meta import Condition, LabelSelector
from virt_steward.controllers.approver.conditions import conditions_of
from virt_steward.controllers.approver.decide import decide
from virt_steward.controllers.approver.observation import Approver, ApproverObservation
from virt_steward.controllers.approver.olm import ApprovalStamp
from virt_steward.controllers.approver.verdicts import ApprovePlan
from virt_steward.controllers.approver.watches import APPROVERS, PLANS, ApproverKey
from virt_steward.kube.client import Client
from virt_steward.objects.identity import Key

PROD = LabelSelector({"stage": "prod"})
APPROVED = "Approved"


def a_tenant(namespace: str = "shop", **spec: Any) -> Approver:
    """An approver outside of the policy namespaces; by default of the namespace that has the plan."""
    return an_approver(f"of-{namespace}", namespace=namespace, created=NOON - timedelta(days=9), **spec)


def an_admin(name: str = "ann", **spec: Any) -> Approver:
    return an_approver(name, **spec)


def verdicts(observation: ApproverObservation) -> dict[str, str]:
    """By approver: that it approves, or the reason why not."""
    found = decide(observation, NOON).verdicts
    return {
        str(one.approver.metadata.key): APPROVED if isinstance(one.verdict, ApprovePlan) else str(one.verdict.reason)
        for one in found
    }


@pytest.mark.parametrize(
    ("approver", "expected"),
    [
        pytest.param(a_tenant(), APPROVED, id="own-namespace"),
        pytest.param(a_tenant(target_namespaces=("garden", "shop")), APPROVED, id="own-namespace-among-others"),
        pytest.param(a_tenant(target_namespaces=("garden",)), "OutOfScope", id="own-namespace-not-asked-for"),
        pytest.param(a_tenant(namespace_selector=PROD), "OutOfScope", id="own-namespace-not-selected"),
        pytest.param(a_tenant("garden"), "OutOfScope", id="another-namespace"),
        pytest.param(a_tenant("garden", target_namespaces=("shop",)), "OutOfScope", id="another-namespace-by-name"),
        pytest.param(
            a_tenant("garden", namespace_selector=LabelSelector()), "OutOfScope", id="another-namespace-by-labels"
        ),
        pytest.param(a_tenant("approvers-2"), "OutOfScope", id="name-like-a-policy-namespace"),
        pytest.param(an_admin(), APPROVED, id="policy-namespace"),
        pytest.param(an_admin(target_namespaces=("garden",)), "OutOfScope", id="policy-namespace-for-another"),
    ],
)
def test_scope_of_approver_depends_on_its_namespace(approver: Approver, expected: str) -> None:
    assert list(verdicts(a_pinned_install(approver)).values()) == [expected]


@pytest.mark.parametrize(
    ("admins", "of_admin", "of_tenant"),
    [
        pytest.param({"auto_approve": False}, "AutoApproveOff", "LeftToPolicyNamespace", id="held"),
        pytest.param({"dry_run": True}, "DryRun", "LeftToPolicyNamespace", id="dry-run"),
        pytest.param(
            {"policy": {"minimum_age": "bad"}}, "BadPolicy", "LeftToPolicyNamespace", id="held-by-an-invalid-policy"
        ),
        pytest.param({}, APPROVED, "LeftToPolicyNamespace", id="approved"),
        pytest.param({"target_namespaces": ("garden",)}, "OutOfScope", APPROVED, id="another-namespace"),
        pytest.param({"namespace_selector": PROD}, "OutOfScope", APPROVED, id="other-labels"),
        pytest.param({"operator_names": ("cache",)}, "OutOfScope", APPROVED, id="another-operator"),
        pytest.param({"subscription_selector": PROD}, "OutOfScope", APPROVED, id="other-subscriptions"),
    ],
)
def test_policy_namespace_that_covers_plan_decides_alone(admins: dict[str, Any], of_admin: str, of_tenant: str) -> None:
    around = seen(a_plan(V1), a_subscription(pin=V1, current=V1), approvers=[a_tenant(), an_admin(**admins)])
    assert verdicts(around) == {"shop/of-shop": of_tenant, "approvers/ann": of_admin}


def test_policy_namespace_decides_on_plan_that_it_covers_in_part() -> None:
    both = (a_subscription(pin=V1, current=V1), a_subscription("cache", pin=CACHE, current=CACHE))
    around = seen(a_plan(V1, CACHE), *both, approvers=[a_tenant(), an_admin(operator_names=("db",))])
    assert verdicts(around) == {"shop/of-shop": "LeftToPolicyNamespace", "approvers/ann": "OutOfScope"}


def test_one_policy_approver_may_approve_what_another_holds() -> None:
    admins = [an_admin("ann", auto_approve=False), an_admin("bob")]
    around = seen(a_plan(V1), a_subscription(pin=V1, current=V1), approvers=[a_tenant(), *admins])
    approval = decide(around, NOON).approval
    assert approval
    assert approval.approver.metadata.name == "bob"


def test_unreadable_policy_namespace_holds_plans_of_tenants_only() -> None:
    around = seen(a_plan(V1), a_subscription(pin=V1, current=V1), approvers=[a_tenant()])
    assert verdicts(replace(around, denied_policies=("approvers",))) == {"shop/of-shop": "NamespaceDenied"}
    governed = replace(around, approvers=(an_admin(),), denied_policies=("policies-2",))
    assert verdicts(governed) == {"approvers/ann": APPROVED}


def scope_limited(approver: Approver, **environment: Any) -> Condition | None:
    found = conditions_of(approver, an_environment(**environment), NOON)
    return next((one for one in found if one.type == "ScopeLimited"), None)


@pytest.mark.parametrize(
    ("approver", "is_limited"),
    [
        (a_tenant(), True),
        (a_tenant(target_namespaces=("shop", "garden")), True),
        (a_tenant(target_namespaces=("garden",)), True),
        (a_tenant(namespace_selector=PROD), True),
        (a_tenant(target_namespaces=("shop",)), False),
        (an_admin(), False),
        (an_admin(target_namespaces=("shop",)), False),
    ],
)
def test_limited_scope_is_a_condition_with_the_remedy(approver: Approver, is_limited: bool) -> None:
    condition = scope_limited(approver)
    assert (condition is not None) == is_limited
    if condition:
        assert (condition.status, condition.reason) == ("True", "NotInPolicyNamespace")
        for remedy in ("policy namespace (approvers)", "add shop to --policy-namespaces", "targetNamespaces to [shop]"):
            assert remedy in condition.message


def test_scope_that_is_no_longer_limited_is_said() -> None:
    limited = scope_limited(a_tenant())
    assert limited
    status = InstallPlanApproverStatus(conditions=(limited,))
    condition = scope_limited(a_tenant(target_namespaces=("shop",), status=status))
    assert condition
    assert (condition.status, condition.message) == ("False", "")


def a_stamped(namespace: str, approver: Approver, **plan: Any) -> Any:
    stamp = ApprovalStamp(approver.metadata.uid, "2030-01-07T12:00:00Z", "pinned")
    return a_plan(V1, namespace=namespace, stamp=stamp, **{"approved": True, **plan})


def test_status_counts_and_names_no_plan_outside_of_scope() -> None:
    tenant = a_tenant()
    status = fold(tenant, [a_stamped("shop", tenant), a_stamped("garden", tenant)], [], NOON)
    assert (status.approved_count, [one.plan for one in status.history]) == (1, ["shop/install-1"])


def test_status_drops_plans_outside_of_scope_from_its_history() -> None:
    records = tuple(ApprovalRecord(plan, (V1,), NOON, "pinned") for plan in ("garden/one", "shop/two"))
    before = InstallPlanApproverStatus(
        approved_count=2, last_approved_plan="garden/one", last_approved_time=NOON, history=records
    )
    status = fold(a_tenant(status=before), [], [], NOON)
    assert [one.plan for one in status.history] == [status.last_approved_plan] == ["shop/two"]
    assert status.approved_count == 2
    alone = msgspec.structs.replace(before, history=records[:1])
    emptied = fold(a_tenant(status=alone), [], [], NOON)
    assert (emptied.history, emptied.last_approved_plan, emptied.last_approved_time) == ((), "", None)


def test_stamp_on_plan_that_is_not_approved_is_not_counted() -> None:
    tenant = a_tenant()
    assert fold(tenant, [a_stamped("shop", tenant, approved=False)], [], NOON).approved_count == 0


def test_approver_outside_of_policy_namespaces_wakes_plans_of_its_own() -> None:
    room = Room()
    for namespace in ("shop", "garden"):
        room.put(PLANS, a_plan(V1, namespace=namespace))
    tenant = a_tenant()
    assert room.put(APPROVERS, tenant) == [Key("shop", "install-1"), ApproverKey(tenant.metadata.key)]


async def test_tenant_neither_approves_nor_sees_plans_of_others(
    cluster: Client, lifecycles: Lifecycles, start: Start, home: str
) -> None:
    tenant, victim = await lifecycles(), await lifecycles()
    await created_approver(cluster, tenant.namespace)  # with an empty spec, and older than that of the admin
    await created_approver(cluster, home, targetNamespaces=[victim.namespace], autoApprove=False)
    for olm in (tenant, victim):
        await olm.subscribe("db", V1)
    held, own = await victim.offer(V1), await tenant.offer(V1)

    async def is_held() -> bool:
        pending = (await status_of(cluster, home)).get("pending", [])
        return [(one["plan"], one["reason"]) for one in pending] == [(str(held), "AutoApproveOff")]

    async def is_counted() -> bool:
        return (await status_of(cluster, tenant.namespace)).get("approvedCount", 0) == 1

    with start():
        assert await eventually(lambda: tenant.is_approved(own))
        assert await eventually(is_held)
        assert await eventually(is_counted)
    assert not await victim.is_approved(held)
    status = await status_of(cluster, tenant.namespace)
    assert victim.namespace not in str(status)
    [limited] = [one for one in status["conditions"] if one["type"] == "ScopeLimited"]
    assert limited["status"] == "True"
    with start(*ALONE, f"--policy-namespaces={tenant.namespace}"):
        assert await eventually(lambda: victim.is_approved(held))
