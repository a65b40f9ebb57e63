"""The controller itself, on stores that a test fills: what it does with what it sees, step by step."""

from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from prometheus_client import CollectorRegistry

from tests.clients import a_client
from tests.controllers.approver.builders import V1, a_plan, a_subscription, empty_stores
from tests.controllers.approver.lifecycle import Lifecycle, an_approver, status_of
from tests.controllers.approver.test_tell import Listener, Nobody
from tests.grants import an_account
from tests.installplans import INSTALL_PLAN
from tests.runtime.clocks import ManualClock
from virt_steward.apis.installplanapprover import INSTALL_PLAN_APPROVER
from virt_steward.controllers.approver.notices import Notices
from virt_steward.controllers.approver.olm import decode_plan
from virt_steward.controllers.approver.pending import Pending
from virt_steward.controllers.approver.reconcile import BETWEEN_STATUS_WRITES, LOOK_AGAIN, ApproverController
from virt_steward.controllers.approver.seen import Approver
from virt_steward.controllers.approver.tell import Teller
from virt_steward.controllers.approver.watches import PLANS, StatusOf
from virt_steward.kube.client import Client
from virt_steward.kube.errors import Forbidden
from virt_steward.local.controlplane import ControlPlane
from virt_steward.objects.identity import Key, Ref
from virt_steward.runtime.access import Access, Installation
from virt_steward.runtime.outcomes import Done, RequeueAfter

HERE = Key("shop", "install-1")


class Desk:
    """A controller with its stores, its clock, and one approver that exists on the server."""

    def __init__(self, client: Client, namespace: str) -> None:
        self.stores = empty_stores()
        self.clock = ManualClock()
        self.woken: list[Any] = []
        self.listener = Listener()
        self.registry = CollectorRegistry()
        teller = Teller(self.listener, Notices(Nobody(), self.clock), self.clock, self.registry)  # type: ignore[arg-type]
        pending = Pending(self.woken.append)
        self.controller = ApproverController(client, self.stores, pending, teller, self.clock)
        self.approver = Key(namespace, "ann")
        self._client = client

    async def see_approver(self) -> None:
        """As its watch would."""
        found = await self._client.get(Ref(INSTALL_PLAN_APPROVER, self.approver))
        self.stores.approvers.put(msgspec.convert(found, Approver, strict=False))

    async def status(self) -> dict[str, Any]:
        return await status_of(self._client, self.approver.namespace)

    @property
    def latencies(self) -> float | None:
        return self.registry.get_sample_value("installplan_approver_approval_latency_seconds_count")


@pytest.fixture
async def desk(cluster: Client, namespace: str) -> Desk:
    await an_approver(cluster, namespace)
    desk = Desk(cluster, namespace)
    await desk.see_approver()
    return desk


async def test_a_plan_that_another_process_finished_meanwhile_is_not_shown_as_waiting(desk: Desk) -> None:
    desk.stores.plans.put(a_plan(V1))
    desk.stores.subscriptions.put(a_subscription(current=V1))
    assert await desk.controller.reconcile(HERE) == RequeueAfter(LOOK_AGAIN, "it waits for approval")
    await desk.controller.reconcile(StatusOf(desk.approver))
    assert (await desk.status())["pendingCount"] == 1
    desk.stores.plans.put(a_plan(V1, approved=True))  # while somebody else leads, nobody here is told
    await desk.see_approver()
    await desk.clock.advance(BETWEEN_STATUS_WRITES)
    await desk.controller.reconcile(StatusOf(desk.approver))
    assert "pending" not in await desk.status()


async def test_an_approval_that_the_server_refuses_is_shown_as_waiting(
    desk: Desk, cluster: Client, namespace: str, control_plane: ControlPlane
) -> None:
    account = await an_account(cluster, Access("bystander"), Installation(namespace, prefix=namespace))
    async with a_client(control_plane, account.token) as powerless:
        poor = Desk(powerless, namespace)
        poor.stores.approvers.put(next(iter(desk.stores.approvers)))
        poor.stores.plans.put(a_plan(V1))
        poor.stores.subscriptions.put(a_subscription(pin=V1, current=V1))
        for _ in range(2):
            with pytest.raises(Forbidden):
                await poor.controller.reconcile(HERE)
    assert [one.reason for one in poor.listener.heard] == ["ApprovalRefused"]
    assert poor.woken == [StatusOf(poor.approver)]


async def test_a_status_waits_until_every_open_plan_is_judged(desk: Desk) -> None:
    desk.stores.plans.put(a_plan(V1))
    assert isinstance(await desk.controller.reconcile(StatusOf(desk.approver)), RequeueAfter)
    assert await desk.status() == {}
    await desk.controller.reconcile(HERE)
    assert desk.woken == [StatusOf(desk.approver)]
    assert await desk.controller.reconcile(StatusOf(desk.approver)) == Done()
    assert (await desk.status())["pending"][0]["reason"] == "NoSubscription"


async def test_status_writes_keep_a_second_between_them(desk: Desk) -> None:
    assert await desk.controller.reconcile(StatusOf(desk.approver)) == Done()
    first = await desk.status()
    await desk.see_approver()
    assert await desk.controller.reconcile(StatusOf(desk.approver)) == RequeueAfter(
        BETWEEN_STATUS_WRITES, "more may come"
    )
    await desk.clock.advance(BETWEEN_STATUS_WRITES)
    assert await desk.controller.reconcile(StatusOf(desk.approver)) == Done()
    assert await desk.status() == first


async def test_a_status_on_outdated_knowledge_is_refused_and_written_later(desk: Desk, cluster: Client) -> None:
    await cluster.merge_patch(Ref(INSTALL_PLAN_APPROVER, desk.approver), {"metadata": {"labels": {"touched": "yes"}}})
    assert isinstance(await desk.controller.reconcile(StatusOf(desk.approver)), RequeueAfter)
    assert await desk.status() == {}
    await desk.see_approver()
    await desk.clock.advance(BETWEEN_STATUS_WRITES)
    assert await desk.controller.reconcile(StatusOf(desk.approver)) == Done()
    assert (await desk.status())["observedGeneration"] == 1


async def test_time_without_an_approver_in_charge_is_no_latency(desk: Desk, olm: Lifecycle) -> None:
    await olm.subscribe("db", V1)
    key = await olm.offer(V1)
    plan = decode_plan(msgspec.json.encode(await olm.client.get(Ref(INSTALL_PLAN, key))))
    wakes = next(one.wakes for one in desk.controller.triggers if one.source is PLANS)
    approver = desk.stores.approvers.remove(desk.approver)
    assert approver
    desk.stores.subscriptions.put(a_subscription(namespace=olm.namespace, pin=V1, current=V1))
    desk.stores.plans.put(plan)
    assert list(wakes(key, None, plan)) == [key]
    assert await desk.controller.reconcile(key) == Done()
    desk.stores.approvers.put(approver)
    assert await desk.controller.reconcile(key) == Done()
    assert await olm.is_approved(key)
    assert desk.latencies == 0


class Hasty(Client):
    """Its watch tells of an approval before the request is answered."""

    tell: Callable[[], object]

    async def merge_patch(self, ref: Ref, patch: Any, **options: Any) -> Any:
        answer = await super().merge_patch(ref, patch, **options)
        self.tell()
        return answer


async def test_an_approval_is_measured_also_if_the_watch_is_faster_than_the_answer(
    desk: Desk, cluster: Client, namespace: str, olm: Lifecycle
) -> None:
    await olm.subscribe("db", V1)
    key = await olm.offer(V1)
    plan = decode_plan(msgspec.json.encode(await olm.client.get(Ref(INSTALL_PLAN, key))))
    hasty = Hasty(cluster.connection, cluster.discovery)
    desk = Desk(hasty, namespace)
    await desk.see_approver()
    desk.stores.subscriptions.put(a_subscription(namespace=olm.namespace, pin=V1, current=V1))
    wakes = next(one.wakes for one in desk.controller.triggers if one.source is PLANS)
    woken: list[Any] = []

    def closed() -> None:
        after = msgspec.structs.replace(plan, approved=True)
        desk.stores.plans.put(after)
        woken.extend(wakes(key, plan, after))

    hasty.tell = closed
    desk.stores.plans.put(plan)
    assert list(wakes(key, None, plan)) == [key]
    assert await desk.controller.reconcile(key) == Done()
    assert woken == [key], "it is looked at once more, to be forgotten"
    assert desk.latencies == 1
    assert await desk.controller.reconcile(key) == Done()
