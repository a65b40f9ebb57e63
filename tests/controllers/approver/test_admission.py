"""The admission policy for stamps, and what counts without it: nobody claims an approval that they did not give."""

import uuid
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from functools import partial
from typing import Any

import pytest

from tests.clients import a_client
from tests.controllers.approver.builders import V1
from tests.controllers.approver.lifecycle import Lifecycle, an_approver, status_of
from tests.controllers.approver.process import Process
from tests.events import has_event
from tests.eventually import eventually
from tests.grants import Account, an_account
from virt_steward.apis.installplanapprover import INSTALL_PLAN_APPROVER
from virt_steward.controllers.approver.admission import POLICIES
from virt_steward.controllers.approver.manual_approval import (
    APPROVAL_COMMENT,
    APPROVED_AT,
    APPROVED_BY_USER,
    OVERRIDE_FREEZE,
    OVERRIDE_FREEZE_BY,
    OVERRIDE_FREEZE_COMMENT,
)
from virt_steward.controllers.approver.olm import (
    APPROVALS,
    APPROVED_BECAUSE,
    APPROVED_BY,
    INSTALL_PLAN,
    REQUIRED_APPROVALS,
)
from virt_steward.decisions.installplans import InstallPlanApproved, ReviewedPlan, approve_manually, read_plan
from virt_steward.kube.client import Client
from virt_steward.kube.errors import Forbidden
from virt_steward.objects.identity import Key, Ref, ref_of
from virt_steward.runtime.access import Access, Grant, Installation, Reach
from virt_steward.ssa import managers
from virt_steward_demo.local.controlplane import ControlPlane

TENANT = Access("tenant", (Grant(INSTALL_PLAN, ("get", "create", "patch"), "to approve plans", Reach.TARGETS),))


@pytest.fixture
async def tenant(cluster: Client, olm: Lifecycle, control_plane: ControlPlane) -> AsyncIterator[tuple[Client, str]]:
    """The client of somebody who may write the plans of one namespace, and their name."""
    here = Installation(olm.namespace, prefix=olm.namespace, target_namespaces=(olm.namespace,))
    account: Account = await an_account(cluster, TENANT, here)
    async with a_client(control_plane, account.token) as client:
        yield client, account.user


@pytest.fixture
async def guarded(cluster: Client, tenant: tuple[Client, str], olm: Lifecycle) -> AsyncIterator[None]:
    """The server enforces the policy."""
    probe = await olm.plan("probe.v1")
    for policy in POLICIES:
        await cluster.create(policy)
    try:
        assert await eventually(partial(_is_refused, tenant[0], probe), within=60)
        yield
    finally:
        for policy in POLICIES:
            await cluster.delete(ref_of(policy))
        assert await eventually(partial(_is_accepted, tenant[0], probe), within=60)  # it is in force for a while


async def _is_accepted(client: Client, plan: Key) -> bool:
    return not await _is_refused(client, plan)


async def _is_refused(client: Client, plan: Key) -> bool:
    """A policy is in force a moment after it is written."""
    try:
        await stamp(client, plan, **{APPROVED_BY: uuid.uuid4().hex})  # another each time: to repeat it is no change
    except Forbidden as refusal:
        return "written by the approver alone" in str(refusal)
    return False


async def stamp(client: Client, plan: Key, manager: str = managers.APPROVAL.name, **annotations: str | None) -> None:
    await client.merge_patch(Ref(INSTALL_PLAN, plan), {"metadata": {"annotations": annotations}}, manager=manager)


@pytest.mark.usefixtures("guarded")
async def test_policy_protects_stamps(tenant: tuple[Client, str], olm: Lifecycle, cluster: Client) -> None:
    client, user = tenant
    plan = await olm.offer_alone(V1)
    forged: list[dict[str, Any]] = [
        {APPROVED_BY: "uid"},
        {APPROVED_BECAUSE: "I say so"},
        {APPROVED_BY_USER: "admin"},
        {APPROVED_AT: "2030-01-01T00:00:00Z"},
        {APPROVED_BY_USER: "admin", APPROVAL_COMMENT: "tested"},
    ]
    for annotations in forged:
        with pytest.raises(Forbidden):
            await stamp(client, plan, **annotations)
    await stamp(client, plan, **{APPROVED_BY_USER: user, APPROVED_AT: "2030-01-01T00:00:00Z", APPROVAL_COMMENT: "ok"})
    await stamp(cluster, plan, **{APPROVED_BY: "uid", APPROVED_BECAUSE: "pinned"})
    for annotations in ({APPROVED_BY: None}, {APPROVED_BECAUSE: "another reason"}):
        with pytest.raises(Forbidden):
            await stamp(client, plan, **annotations)
    await stamp(client, plan, note="of somebody else")
    override = {OVERRIDE_FREEZE: "uid", OVERRIDE_FREEZE_BY: user, OVERRIDE_FREEZE_COMMENT: "incident 7"}
    with pytest.raises(Forbidden, match="you need the verb override-freeze on installplans"):
        await stamp(client, plan, **override)
    with pytest.raises(Forbidden, match=f"{OVERRIDE_FREEZE_BY} must be your own name: admin"):
        await stamp(cluster, plan, **override)
    await stamp(cluster, plan, **override | {OVERRIDE_FREEZE_BY: "admin"})


@pytest.mark.usefixtures("guarded")
async def test_policy_lets_approver_and_people_approve(
    tenant: tuple[Client, str], olm: Lifecycle, cluster: Client, approver: Process
) -> None:
    await an_approver(cluster, olm.namespace, targetNamespaces=[olm.namespace])
    await olm.subscribe("db", V1)
    plan = await olm.offer(V1)
    assert await eventually(lambda: olm.is_approved(plan))
    other = await olm.offer_alone("cache.v1.0.0")
    answer = await approve_manually(tenant[0], other, ReviewedPlan(None, None), "tested", datetime.now(UTC))
    assert isinstance(answer, InstallPlanApproved)
    assert (await read_plan(cluster, other)).signature.user == tenant[1]
    assert await eventually(
        lambda: has_event(cluster, Ref(INSTALL_PLAN, other), f"{tenant[1]} approved cache.v1.0.0: tested")
    )
    assert approver.troubles == []


@pytest.mark.usefixtures("guarded")
async def test_plan_waits_for_several_people(
    tenant: tuple[Client, str], olm: Lifecycle, cluster: Client, approver: Process, control_plane: ControlPlane
) -> None:
    await an_approver(cluster, olm.namespace, targetNamespaces=[olm.namespace], policy={"approvals": {"required": 2}})
    await olm.subscribe("db", V1)
    plan = await olm.offer(V1)
    client, user = tenant
    assert await eventually(lambda: is_noted(cluster, plan, "2"))
    with pytest.raises(Forbidden, match="several people must approve this InstallPlan"):
        await client.merge_patch(Ref(INSTALL_PLAN, plan), {"spec": {"approved": True}})
    digest = (await read_plan(cluster, plan)).fingerprint
    for forged in (
        {REQUIRED_APPROVALS: "1"},
        {REQUIRED_APPROVALS: None},
        {APPROVALS: f"{digest} - - {user}\n{digest} - - admin"},
    ):
        with pytest.raises(Forbidden):
            await stamp(client, plan, **forged)
    first = await approved(client, plan)
    assert (first.missing, first.next) == (1, f"1 of 2 approvals ({user}); needs one more")
    assert (await approved(client, plan)).next.startswith("you had approved it before")
    assert await eventually(lambda: is_pending(cluster, olm, "WaitingForApprovals", "1 of 2 approvals"))
    assert not await olm.is_approved(plan)
    other = Access("other", TENANT.grants)
    here = Installation(olm.namespace, prefix=olm.namespace, target_namespaces=(olm.namespace,))
    account = await an_account(cluster, other, here)
    async with a_client(control_plane, account.token) as second:
        assert (await approved(second, plan)).missing == 0
    assert await eventually(lambda: olm.is_approved(plan))
    because = (await cluster.get(Ref(INSTALL_PLAN, plan)))["metadata"]["annotations"][APPROVED_BECAUSE]
    assert because.startswith(f"approved by {user}, {account.user}; {V1} is the startingCSV")
    assert approver.troubles == []


async def approved(client: Client, plan: Key) -> InstallPlanApproved:
    answer = await approve_manually(client, plan, ReviewedPlan(None, None), "tested", datetime.now(UTC))
    assert isinstance(answer, InstallPlanApproved)
    return answer


async def is_noted(client: Client, plan: Key, required: str) -> bool:
    notes = (await client.get(Ref(INSTALL_PLAN, plan)))["metadata"].get("annotations", {})
    return notes.get(REQUIRED_APPROVALS) == required


async def is_pending(client: Client, olm: Lifecycle, reason: str, message: str) -> bool:
    pending = (await status_of(client, olm.namespace)).get("pending", [])
    return any(one["reason"] == reason and one["message"].startswith(message) for one in pending)


async def test_plan_is_not_approved_while_names_are_not_held(
    tenant: tuple[Client, str], olm: Lifecycle, cluster: Client, approver: Process
) -> None:
    await an_approver(cluster, olm.namespace, targetNamespaces=[olm.namespace], policy={"approvals": {"required": 2}})
    await olm.subscribe("db", V1)
    plan = await olm.offer(V1)
    assert await eventually(lambda: is_noted(cluster, plan, "2"))
    digest = (await read_plan(cluster, plan)).fingerprint
    await stamp(tenant[0], plan, **{APPROVALS: f"{digest} - - alice\n{digest} - - bob"})
    assert await eventually(lambda: is_pending(cluster, olm, "ApprovalsNotEnforced", "ValidatingAdmissionPolicy"))
    assert not await olm.is_approved(plan)
    await cluster.merge_patch(Ref(INSTALL_PLAN_APPROVER, Key(olm.namespace, "ann")), {"spec": {"policy": None}})
    assert await eventually(lambda: olm.is_approved(plan))
    assert approver.alive


async def test_stamp_of_tenant_is_not_counted(
    tenant: tuple[Client, str], olm: Lifecycle, cluster: Client, approver: Process
) -> None:
    """Without the policy, as OLM installs it: who writes by kubectl owns what they write."""
    made = await an_approver(cluster, olm.namespace, targetNamespaces=[olm.namespace])
    forged = await olm.plan("evil.v6.6.6")
    annotations = {APPROVED_BY: made["metadata"]["uid"], APPROVED_BECAUSE: "I say so", APPROVED_BY_USER: "admin"}
    await stamp(tenant[0], forged, manager="kubectl-edit", **annotations)
    await cluster.merge_patch(Ref(INSTALL_PLAN, forged), {"spec": {"approved": True}})
    await olm.subscribe("db", V1)
    plan = await olm.offer(V1)

    async def is_counted() -> bool:
        return (await status_of(cluster, olm.namespace)).get("approvedCount", 0) > 0

    assert await eventually(is_counted)
    status = await status_of(cluster, olm.namespace)
    assert (status["approvedCount"], [one["plan"] for one in status["history"]]) == (1, [str(plan)])
    assert (await read_plan(cluster, forged)).signature.user == ""
    assert not await has_event(cluster, Ref(INSTALL_PLAN, forged), "admin approved evil.v6.6.6")
    assert approver.alive
