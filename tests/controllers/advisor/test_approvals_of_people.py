"""Several people approve a plan on a real API server, each with their own credentials."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import Any

import pytest

from tests.clients import a_client
from tests.controllers.advisor.rig import AdvisorRig, advising, no_reboots, the_config
from tests.eventually import eventually
from tests.grants import Account, an_account, grant_verbs
from virt_steward.apis.profiles import LOAD_AWARE
from virt_steward.apis.virtplatformconfig import VIRT_PLATFORM_CONFIG
from virt_steward.controllers.advisor.admission import POLICIES
from virt_steward.controllers.advisor.annotation_keys import APPROVALS, REQUESTED_BY
from virt_steward.decisions.outcomes import NotApproved
from virt_steward.decisions.plans import PlanApproved, approve_plan, reject_plan
from virt_steward.decisions.profiles import activate
from virt_steward.decisions.signatures import sign
from virt_steward.kube.client import Client
from virt_steward.kube.errors import Forbidden
from virt_steward.objects.approvals import count_approvals
from virt_steward.objects.identity import ref_of
from virt_steward.runtime.access import Access, Grant, Installation
from virt_steward_demo.local.controlplane import ControlPlane

RIGHTS = (Grant(VIRT_PLATFORM_CONFIG, ("get", "create", "patch"), "to approve plans"),)


@dataclass(frozen=True, slots=True)
class Person:
    client: Client
    name: str

    async def approve(self, comment: str = "") -> PlanApproved | NotApproved:
        """The plan that is shown now."""
        config = await self.client.get(the_config())
        return await approve_plan(self.client, LOAD_AWARE, config["status"]["planHash"], comment, datetime.now(UTC))

    async def activate(self, **options: Any) -> None:
        signature = await sign(self.client, "", datetime.now(UTC))
        await activate(self.client, LOAD_AWARE, lambda _: no_reboots(**options), signature)


@pytest.fixture
async def people(rig: AdvisorRig, namespace: str, control_plane: ControlPlane) -> AsyncIterator[dict[str, Person]]:
    async with AsyncExitStack() as stack:
        found = {}
        for name in ("alice", "bob", "carol"):
            account = await an_account(rig.client, Access(name, RIGHTS), Installation(namespace, prefix=namespace))
            await grant_verbs(rig.client, account.user, VIRT_PLATFORM_CONFIG, "approve")
            client = await stack.enter_async_context(a_client(control_plane, account.token))
            found[name] = Person(client, account.user)
        yield found


async def install_policy(client: Client, person: Person) -> None:
    for policy in POLICIES:
        await client.create(policy)

    assert await eventually(partial(is_held, person), within=60)


async def is_held(person: Person) -> bool:
    """Whether the server holds approvals to the name of the caller; a policy counts a moment after it is written."""
    try:
        await annotate(person.client, APPROVALS, "x - - nobody", dry_run=True)
    except Forbidden as refusal:
        return APPROVALS in str(refusal)
    return False


async def is_free(person: Person) -> bool:
    return not await is_held(person)


async def annotate(client: Client, key: str, value: str | None, *, dry_run: bool = False) -> None:
    await client.merge_patch(the_config(), {"metadata": {"annotations": {key: value}}}, dry_run=dry_run)


@pytest.fixture
async def without_policy(rig: AdvisorRig) -> AsyncIterator[None]:
    """Before and after the test."""
    yield
    for policy in POLICIES:
        await rig.client.delete(ref_of(policy))
    assert await eventually(partial(is_free, Person(rig.client, "admin")), within=60)


@pytest.mark.usefixtures("without_policy")
async def test_plan_waits_for_several_people(
    rig: AdvisorRig, people: dict[str, Person], control_plane: ControlPlane, account: Account
) -> None:
    alice, bob, carol = people["alice"], people["bob"], people["carol"]
    await rig.ask("Ignore", approvals={"required": 2, "excludeRequester": True})
    await install_policy(rig.client, alice)
    async with advising(control_plane, account):
        await bob.activate()
        assert await rig.reaches("ReviewRequired", reason="PlanReady")
        assert (await rig.config())["metadata"]["annotations"][REQUESTED_BY] == bob.name
        plan = (await rig.status()).plan_hash
        refused = await bob.approve()
        assert isinstance(refused, NotApproved)
        assert "you asked for this plan" in refused.reason
        with pytest.raises(Forbidden):
            await annotate(bob.client, APPROVALS, f"{plan} - - {alice.name}\n{plan} - - {carol.name}")
        with pytest.raises(Forbidden):
            await annotate(bob.client, REQUESTED_BY, alice.name)

        first = await alice.approve("tested")
        assert isinstance(first, PlanApproved)
        assert first.missing == 1
        assert await rig.reaches("ReviewRequired", reason="WaitingForApprovals")
        assert await rig.message("ReviewRequired") == (
            f"1 of 2 approvals ({alice.name}); needs one more from somebody other than the requester {bob.name}"
        )
        version = (await rig.config())["metadata"]["resourceVersion"]
        again = await alice.approve()
        assert isinstance(again, PlanApproved)
        assert again.start.startswith("you had approved it before, so nothing was changed: 1 of 2 approvals")
        assert (await rig.config())["metadata"]["resourceVersion"] == version

        await bob.activate(deschedulingIntervalSeconds=90)  # another plan: approvals are void
        assert await eventually(lambda: has_another_plan(rig, plan))
        assert isinstance(await alice.approve("tested again"), PlanApproved)
        assert await rig.reaches("ReviewRequired", reason="WaitingForApprovals")
    async with advising(control_plane, account):  # as after a crash between two approvals
        last = await carol.approve()
        assert isinstance(last, PlanApproved)
        assert last.missing == 0
        assert await rig.reaches("Completed")
    status = await rig.status()
    assert status.approval
    assert [(one.by, one.comment) for one in status.approval.approvers] == [
        (alice.name, "tested again"),
        (carol.name, ""),
    ]
    assert status.history[0].approvers == status.approval.approvers
    assert status.history[0].by == f"{alice.name}, {carol.name}"


async def has_another_plan(rig: AdvisorRig, plan: str) -> bool:
    status = await rig.status()
    return status.phase == "ReviewRequired" and status.plan_hash not in ("", plan)


@pytest.mark.usefixtures("without_policy")
async def test_plan_does_not_start_while_names_are_not_held(
    rig: AdvisorRig, people: dict[str, Person], control_plane: ControlPlane, account: Account
) -> None:
    alice, bob = people["alice"], people["bob"]
    async with advising(control_plane, account):
        await rig.ask("Apply", approvals={"required": 2}, options=no_reboots())
        assert await rig.reaches("ReviewRequired", reason="WaitingForApprovals")
        plan = (await rig.status()).plan_hash
        assert await eventually(partial(is_free, alice), within=60), "the policy of another test is gone"
        await annotate(alice.client, APPROVALS, f"{plan} - - {alice.name}\n{plan} - - {bob.name}")
        assert await rig.reaches("ReviewRequired", reason="ApprovalsNotEnforced")
        assert "install it with 'virt-steward policies | kubectl apply -f -'" in await rig.message("ReviewRequired")
        await install_policy(rig.client, bob)
        signature = await sign(bob.client, "I never approved this", datetime.now(UTC))
        await reject_plan(bob.client, LOAD_AWARE, plan, signature)
        assert await rig.reaches("ReviewRequired", reason="Rejected")
        notes = (await rig.config())["metadata"]["annotations"]
        assert count_approvals(notes.get(APPROVALS, ""), plan, 2).users == ()
        for person in (alice, bob):
            assert isinstance(await person.approve(), PlanApproved)
        assert await rig.reaches("Completed")
