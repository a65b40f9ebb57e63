"""The controller itself, on stores that a test fills: what it does with what it sees, step by step."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import msgspec
import pytest
from prometheus_client import CollectorRegistry

from tests.clients import a_client
from tests.controllers.approver.builders import V1, a_plan, a_subscription, empty_stores
from tests.controllers.approver.lifecycle import Lifecycle, an_approver, status_of
from tests.controllers.approver.test_tell import Listener, Nobody
from tests.eventually import eventually
from tests.grants import an_account
from tests.installplans import INSTALL_PLAN
from tests.runtime.clocks import ManualClock
from virt_steward.apis.installplanapprover import INSTALL_PLAN_APPROVER, PENDING_SHOWN, InstallPlanApproverSpec
from virt_steward.controllers.approver.notifications import ApproverNotifications
from virt_steward.controllers.approver.observation import Approver
from virt_steward.controllers.approver.olm import ApprovalStamp, InstallPlan, decode_plan
from virt_steward.controllers.approver.pending import Pending
from virt_steward.controllers.approver.reconcile import (
    BETWEEN_STATUS_WRITES,
    EVENTS_RECHECK,
    RECHECK,
    ApproverController,
)
from virt_steward.controllers.approver.reporter import ApproverReporter
from virt_steward.controllers.approver.watches import PLANS, ApproverKey
from virt_steward.kube.client import Client
from virt_steward.kube.errors import Forbidden
from virt_steward.objects.identity import Key, Ref
from virt_steward.runtime.access import Access, Installation
from virt_steward.runtime.outcomes import Done, RequeueAfter
from virt_steward_demo.local.controlplane import ControlPlane

HERE = Key("shop", "install-1")


class Rig:
    """A controller with its stores, its clock, and one approver that exists on the server."""

    def __init__(self, client: Client, namespace: str) -> None:
        self.stores = replace(empty_stores(), policy_namespaces=frozenset({namespace}))
        self.clock = ManualClock()
        self.woken: list[Any] = []
        self.listener = Listener()
        self.registry = CollectorRegistry()
        reporter = ApproverReporter(
            self.listener, ApproverNotifications(Nobody(), self.clock), self.clock, self.registry
        )  # type: ignore[arg-type]
        pending = Pending(self.woken.append)
        self.reporter = reporter
        self.controller = ApproverController(client, self.stores, pending, reporter, self.clock)
        self.approver = Key(namespace, "ann")
        self._client = client

    async def see_approver(self) -> None:
        """As its watch would."""
        found = await self._client.get(Ref(INSTALL_PLAN_APPROVER, self.approver))
        self.stores.approvers.put(msgspec.convert(found, Approver, strict=False))

    def opens(self, plan: InstallPlan) -> None:
        """As its watch would tell the listener."""
        self.reporter.plan_changed(plan.metadata.key, msgspec.structs.replace(plan, phase=""), plan)

    def sees(self, before: InstallPlan, after: InstallPlan) -> None:
        """As its watch would tell all listeners."""
        self.stores.plans.put(after)
        self.reporter.plan_changed(after.metadata.key, before, after)
        self.controller.plan_changed(after.metadata.key, before, after)

    @property
    def knows_nothing(self) -> bool:
        """Whether nothing is remembered of any plan."""
        controller = self.controller
        return not (controller._pending._waits or controller._approved or controller._approving)

    async def status(self) -> dict[str, Any]:
        return await status_of(self._client, self.approver.namespace)

    def decisions(self, reason: str) -> float | None:
        return self.registry.get_sample_value("installplan_approver_decisions_total", {"reason": reason})

    @property
    def latencies(self) -> float | None:
        return self.registry.get_sample_value("installplan_approver_approval_latency_seconds_count")


@pytest.fixture
async def rig(cluster: Client, namespace: str) -> Rig:
    await an_approver(cluster, namespace)
    rig = Rig(cluster, namespace)
    await rig.see_approver()
    return rig


async def test_a_plan_that_another_process_finished_meanwhile_is_not_shown_as_waiting(rig: Rig) -> None:
    rig.stores.plans.put(a_plan(V1))
    rig.stores.subscriptions.put(a_subscription(current=V1))
    assert await rig.controller.reconcile(HERE) == RequeueAfter(RECHECK, "it is pending")
    await rig.controller.reconcile(ApproverKey(rig.approver))
    assert (await rig.status())["pendingCount"] == 1
    rig.stores.plans.put(a_plan(V1, approved=True))  # while somebody else leads, nobody here is told
    await rig.see_approver()
    await rig.clock.advance(BETWEEN_STATUS_WRITES)
    await rig.controller.reconcile(ApproverKey(rig.approver))
    assert "pending" not in await rig.status()


async def test_status_loses_what_others_have_planted(rig: Rig, cluster: Client) -> None:
    await rig.controller.reconcile(ApproverKey(rig.approver))
    written = await rig.status()
    now = "2026-01-01T00:00:00Z"
    condition = {"type": "Planted", "status": "True", "reason": "Yes", "message": "", "lastTransitionTime": now}
    waiting = {"plan": "shop/planted", "csvs": [V1], "reason": "NotPinned", "message": "no", "since": now}
    await cluster.apply(
        {
            "apiVersion": f"{INSTALL_PLAN_APPROVER.group}/v1alpha1",
            "kind": INSTALL_PLAN_APPROVER.name,
            "metadata": {"namespace": rig.approver.namespace, "name": rig.approver.name},
            "status": {"pending": [waiting], "conditions": [condition]},
        },
        manager="somebody",
        subresource="status",
    )
    assert "pending" in await rig.status()
    await rig.see_approver()
    await rig.clock.advance(BETWEEN_STATUS_WRITES)
    await rig.controller.reconcile(ApproverKey(rig.approver))
    assert await rig.status() == written


async def test_an_approval_that_the_server_refuses_is_shown_as_waiting(
    rig: Rig, cluster: Client, namespace: str, control_plane: ControlPlane
) -> None:
    account = await an_account(cluster, Access("bystander"), Installation(namespace, prefix=namespace))
    async with a_client(control_plane, account.token) as powerless:
        poor = Rig(powerless, namespace)
        poor.stores.approvers.put(next(iter(rig.stores.approvers)))
        poor.stores.plans.put(a_plan(V1))
        poor.stores.subscriptions.put(a_subscription(pin=V1, current=V1))
        for _ in range(2):
            with pytest.raises(Forbidden):
                await poor.controller.reconcile(HERE)
    assert [one.reason for one in poor.listener.heard] == ["ApprovalRefused"]
    assert poor.woken == [ApproverKey(poor.approver)]


async def test_a_status_waits_until_every_open_plan_is_judged(rig: Rig) -> None:
    rig.stores.plans.put(a_plan(V1))
    assert isinstance(await rig.controller.reconcile(ApproverKey(rig.approver)), RequeueAfter)
    assert await rig.status() == {}
    await rig.controller.reconcile(HERE)
    assert rig.woken == [ApproverKey(rig.approver)]
    assert await rig.controller.reconcile(ApproverKey(rig.approver)) == Done()
    assert (await rig.status())["pending"][0]["reason"] == "NoSubscription"


async def test_status_writes_keep_a_second_between_them(rig: Rig) -> None:
    assert await rig.controller.reconcile(ApproverKey(rig.approver)) == Done()
    first = await rig.status()
    await rig.see_approver()
    assert await rig.controller.reconcile(ApproverKey(rig.approver)) == RequeueAfter(
        BETWEEN_STATUS_WRITES, "statuses are written at most once a second"
    )
    await rig.clock.advance(BETWEEN_STATUS_WRITES)
    assert await rig.controller.reconcile(ApproverKey(rig.approver)) == Done()
    assert await rig.status() == first


async def test_a_status_on_outdated_knowledge_is_refused_and_written_later(rig: Rig, cluster: Client) -> None:
    await cluster.merge_patch(Ref(INSTALL_PLAN_APPROVER, rig.approver), {"metadata": {"labels": {"touched": "yes"}}})
    assert isinstance(await rig.controller.reconcile(ApproverKey(rig.approver)), RequeueAfter)
    assert await rig.status() == {}
    await rig.see_approver()
    await rig.clock.advance(BETWEEN_STATUS_WRITES)
    assert await rig.controller.reconcile(ApproverKey(rig.approver)) == Done()
    assert (await rig.status())["observedGeneration"] == 1


def a_stamped(by: Approver, name: str) -> InstallPlan:
    return a_plan(V1, name=name, approved=True, stamp=ApprovalStamp(by.metadata.uid, "2030-01-07T12:00:00Z", "pinned"))


async def test_a_status_is_put_off_and_keeps_no_worker_until_its_events_have_arrived(rig: Rig) -> None:
    approver = next(iter(rig.stores.approvers))
    rig.listener.arrived.clear()
    rig.stores.plans.put(a_stamped(approver, "install-1"))
    for _ in range(2):
        assert await rig.controller.reconcile(ApproverKey(rig.approver)) == RequeueAfter(
            EVENTS_RECHECK, "its events are sent first"
        )
        rig.stores.plans.put(a_stamped(approver, "install-2"))
    assert await rig.status() == {}
    assert [one.regarding.ref.key.name for one in rig.listener.heard] == ["install-1"]

    rig.listener.arrived.set()

    async def is_written() -> bool:
        return await rig.controller.reconcile(ApproverKey(rig.approver)) == Done()

    assert await eventually(is_written)
    assert [one["plan"] for one in (await rig.status())["history"]] == ["shop/install-1"], "only what was told"
    await rig.see_approver()
    await rig.clock.advance(BETWEEN_STATUS_WRITES)
    assert await eventually(is_written)
    assert (await rig.status())["approvedCount"] == 2
    assert [one.regarding.ref.key.name for one in rig.listener.heard] == ["install-1", "install-2"]


async def test_events_are_not_told_again_if_the_approver_changes_while_they_are_on_their_way(
    rig: Rig, cluster: Client
) -> None:
    rig.listener.arrived.clear()
    rig.stores.plans.put(a_stamped(next(iter(rig.stores.approvers)), "install-1"))
    assert isinstance(await rig.controller.reconcile(ApproverKey(rig.approver)), RequeueAfter)
    await cluster.merge_patch(Ref(INSTALL_PLAN_APPROVER, rig.approver), {"spec": {"dryRun": True}})
    await rig.see_approver()
    assert isinstance(await rig.controller.reconcile(ApproverKey(rig.approver)), RequeueAfter)
    rig.listener.arrived.set()

    async def is_written() -> bool:
        return await rig.controller.reconcile(ApproverKey(rig.approver)) == Done()

    assert await eventually(is_written)
    status = await rig.status()
    assert (status["approvedCount"], status["observedGeneration"]) == (1, 2)
    assert len(rig.listener.heard) == 1


async def test_of_two_approvers_only_the_one_whose_wait_changes_is_told_of(rig: Rig) -> None:
    ann = next(iter(rig.stores.approvers))
    bob = msgspec.structs.replace(ann, metadata=msgspec.structs.replace(ann.metadata, name="bob", uid="uid-of-bob"))
    rig.stores.approvers.put(bob)
    rig.stores.plans.put(a_plan(V1))
    rig.stores.subscriptions.put(a_subscription(current=V1))
    await rig.controller.reconcile(HERE)
    assert rig.decisions("NotPinned") == 2
    rig.stores.approvers.put(msgspec.structs.replace(bob, spec=InstallPlanApproverSpec(auto_approve=False)))
    rig.stores.subscriptions.put(a_subscription(pin=V1, current=V1))
    rig.stores.approvers.put(msgspec.structs.replace(ann, spec=InstallPlanApproverSpec(dry_run=True)))
    await rig.controller.reconcile(HERE)
    assert (rig.decisions("AutoApproveOff"), rig.decisions("DryRun")) == (1, 1)
    rig.stores.approvers.put(msgspec.structs.replace(ann, spec=InstallPlanApproverSpec(auto_approve=False)))
    await rig.controller.reconcile(HERE)
    assert (rig.decisions("AutoApproveOff"), rig.decisions("DryRun")) == (2, 1)


async def test_plans_beyond_what_the_status_shows_are_in_the_gauges(rig: Rig) -> None:
    names = [f"install-{number:02}" for number in range(PENDING_SHOWN)]
    for name in names:
        rig.stores.plans.put(a_plan(V1, name=name))
    rig.stores.plans.put(a_plan(V1, name="zeta", packages={}))
    for name in (*names, "zeta"):
        await rig.controller.reconcile(Key("shop", name))
    await rig.controller.reconcile(ApproverKey(rig.approver))
    status = await rig.status()
    assert (status["pendingCount"], len(status["pending"])) == (PENDING_SHOWN + 1, PENDING_SHOWN)
    assert {one["reason"] for one in status["pending"]} == {"NoSubscription"}
    labels = {"namespace": rig.approver.namespace, "approver": "ann", "reason": "UnknownPackage"}
    assert rig.registry.get_sample_value("installplan_approver_oldest_pending_timestamp_seconds", labels)


async def test_time_without_an_approver_in_charge_is_no_latency(rig: Rig, olm: Lifecycle) -> None:
    await olm.subscribe("db", V1)
    key = await olm.offer(V1)
    plan = decode_plan(msgspec.json.encode(await olm.client.get(Ref(INSTALL_PLAN, key))))
    handler = next(one.handler for one in rig.controller.triggers if one.source is PLANS)
    approver = rig.stores.approvers.remove(rig.approver)
    assert approver
    rig.stores.subscriptions.put(a_subscription(namespace=olm.namespace, pin=V1, current=V1))
    rig.stores.plans.put(plan)
    assert list(handler(key, None, plan)) == [key]
    rig.opens(plan)
    assert await rig.controller.reconcile(key) == Done()
    rig.stores.approvers.put(approver)
    assert await rig.controller.reconcile(key) == Done()
    assert await olm.is_approved(key)
    assert rig.latencies == 0


class Hasty(Client):
    """Its watch tells of an approval before the request is answered."""

    tell: Callable[[], object]

    async def merge_patch(self, ref: Ref, patch: Any, **options: Any) -> Any:
        answer = await super().merge_patch(ref, patch, **options)
        self.tell()
        return answer


async def test_an_approval_is_measured_also_if_the_watch_is_faster_than_the_answer(
    rig: Rig, cluster: Client, namespace: str, olm: Lifecycle
) -> None:
    await olm.subscribe("db", V1)
    key = await olm.offer(V1)
    plan = decode_plan(msgspec.json.encode(await olm.client.get(Ref(INSTALL_PLAN, key))))
    hasty = Hasty(cluster.connection, cluster.discovery)
    rig = Rig(hasty, namespace)
    await rig.see_approver()
    rig.stores.subscriptions.put(a_subscription(namespace=olm.namespace, pin=V1, current=V1))
    hasty.tell = lambda: rig.sees(plan, msgspec.structs.replace(plan, approved=True))
    rig.stores.plans.put(plan)
    rig.opens(plan)
    assert await rig.controller.reconcile(key) == Done()
    assert rig.latencies == 1
    assert rig.knows_nothing


async def test_closed_plan_is_forgotten_without_reconcile(rig: Rig) -> None:
    plan = a_plan(V1)
    rig.stores.plans.put(plan)
    rig.stores.subscriptions.put(a_subscription(current=V1))
    await rig.controller.reconcile(HERE)
    assert not rig.knows_nothing
    rig.woken.clear()
    rig.sees(plan, a_plan(V1, approved=True))
    assert rig.knows_nothing
    assert rig.woken == [ApproverKey(rig.approver)]
