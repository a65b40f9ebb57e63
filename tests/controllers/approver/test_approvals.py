"""What becomes of plans on a real API server, with the approver as a process under its own rights."""

import pytest

from tests.audit import AuditLog
from tests.controllers.approver.builders import CACHE, CACHE2, V1, V2
from tests.controllers.approver.conftest import Asked, Lifecycles, Start
from tests.controllers.approver.lifecycle import Lifecycle, an_approver, status_of
from tests.controllers.approver.process import ALONE, Process
from tests.eventually import eventually
from tests.installplans import INSTALL_PLAN
from virt_steward.apis.installplanapprover import INSTALL_PLAN_APPROVER
from virt_steward.controllers.approver.olm import SUBSCRIPTION
from virt_steward.kube.client import Client, Object, Selection
from virt_steward.kube.events import EVENT
from virt_steward.objects.identity import Key, Ref


async def event_on(client: Client, plan: Key, reason: str) -> Object:
    """It comes a moment after what it tells."""
    told: list[Object] = []

    async def is_told() -> bool:
        found = await client.list(EVENT, Selection(plan.namespace))
        told[:] = [one for one in found if (one["regarding"]["name"], one["reason"]) == (plan.name, reason)]
        return bool(told)

    assert await eventually(is_told)
    return told[0]


async def waits_for(client: Client, olm: Lifecycle) -> list[tuple[str, str]]:
    """Plans and reasons, as the status of an approver in that namespace tells."""
    status = await status_of(client, olm.namespace)
    return [(one["plan"], one["reason"]) for one in status.get("pending", [])]


async def shows(client: Client, olm: Lifecycle, plan: Key, reason: str) -> bool:
    return (str(plan), reason) in await waits_for(client, olm)


async def has_counted(client: Client, namespace: str, number: int) -> bool:
    return bool((await status_of(client, namespace)).get("approvedCount", 0) == number)


async def test_a_pinned_plan_is_approved_and_told(cluster: Client, olm: Lifecycle, approver: Process) -> None:
    ann = await an_approver(cluster, olm.namespace, targetNamespaces=[olm.namespace])
    await olm.subscribe("db", V1)
    plan = await olm.offer(V1)
    assert await eventually(lambda: olm.is_approved(plan))
    stamp = (await cluster.get(Ref(INSTALL_PLAN, plan)))["metadata"]["annotations"]
    assert stamp["operators.bapu.cloud/approved-by"] == ann["metadata"]["uid"]
    assert await eventually(lambda: has_counted(cluster, olm.namespace, 1))
    status = await status_of(cluster, olm.namespace)
    assert status["lastApprovedPlan"] == str(plan)
    assert [(one["plan"], one["csvs"]) for one in status["history"]] == [(str(plan), [V1])]
    assert status["conditions"][0]["status"] == "True"
    assert (await event_on(cluster, plan, "Approved"))["type"] == "Normal"
    assert approver.said("approved InstallPlan", plan=str(plan), csvs=[V1])
    assert approver.troubles == []


async def test_an_upgrade_waits_with_its_reason_until_the_pin_moves(
    cluster: Client, olm: Lifecycle, approver: Process, audit_log: AuditLog
) -> None:
    await an_approver(cluster, olm.namespace, targetNamespaces=[olm.namespace])
    await olm.subscribe("db", V1)
    subscription = Ref(SUBSCRIPTION, Key(olm.namespace, "db"))
    await cluster.merge_patch(subscription, {"status": {"installedCSV": V1}}, subresource="status")
    plan = await olm.offer(V2)
    assert await eventually(lambda: shows(cluster, olm, plan, "NotPinned"))
    assert (await status_of(cluster, olm.namespace))["pendingCount"] == 1
    assert f"set startingCSV to {V2}" in (await event_on(cluster, plan, "NotPinned"))["note"]
    assert approver.said("skipping InstallPlan", plan=str(plan), reason="NotPinned")
    assert not await olm.is_approved(plan)
    begin = audit_log.mark()
    await olm.pin("db", V2)
    assert await eventually(lambda: olm.is_approved(plan))
    requests = [one for one in audit_log.since(begin) if one.verb == "patch" and one.namespace == olm.namespace]
    moved = next(one.time for one in requests if one.resource == "subscriptions")
    approved = next(one.time for one in requests if one.resource == "installplans")
    assert (approved - moved).total_seconds() < 30, "it waited for the safety net"
    assert await eventually(lambda: has_counted(cluster, olm.namespace, 1))
    assert await eventually(lambda: shows_nothing(cluster, olm))


async def shows_nothing(client: Client, olm: Lifecycle) -> bool:
    return await waits_for(client, olm) == []


@pytest.mark.usefixtures("approver")
async def test_a_plan_that_carries_an_unpinned_upgrade_is_refused(cluster: Client, olm: Lifecycle) -> None:
    await an_approver(cluster, olm.namespace, targetNamespaces=[olm.namespace])
    await olm.subscribe("db", V1)
    await olm.subscribe("cache", CACHE)
    plan = await olm.offer(V1, CACHE2)
    assert await eventually(lambda: shows(cluster, olm, plan, "UnpinnedUpgradeRidesAlong"))
    assert (await event_on(cluster, plan, "UnpinnedUpgradeRidesAlong"))["type"] == "Warning"
    assert not await olm.is_approved(plan)
    await olm.pin("cache", CACHE2)
    assert await eventually(lambda: olm.is_approved(plan))


@pytest.mark.usefixtures("approver")
async def test_nothing_is_approved_before_it_waits_for_approval(
    cluster: Client, olm: Lifecycle, lifecycles: Lifecycles, home: str
) -> None:
    await an_approver(cluster, home)
    await olm.subscribe("db", V1)
    early = await olm.plan(V1)
    for phase in ("", "Planning", "Installing"):
        await olm.set_phase(early, phase, V1)
    await olm.catch_up(early, V1)
    later = await lifecycles()
    await later.subscribe("db", V1)
    plan = await later.offer(V1)
    assert await eventually(lambda: later.is_approved(plan))  # what was written before it has been seen
    assert not await olm.is_approved(early)
    await olm.set_phase(early, "RequiresApproval", V1)
    assert await eventually(lambda: olm.is_approved(early))


async def test_two_approvers_make_one_approval_and_one_count(
    cluster: Client, olm: Lifecycle, approver: Process, asked: Asked
) -> None:
    both = [
        await an_approver(cluster, olm.namespace, name, targetNamespaces=[olm.namespace]) for name in ("ann", "bob")
    ]
    await olm.subscribe("db", V1)
    plan = await olm.offer(V1)
    assert await eventually(lambda: olm.is_approved(plan))
    stamp = (await cluster.get(Ref(INSTALL_PLAN, plan)))["metadata"]["annotations"]["operators.bapu.cloud/approved-by"]
    older = min(both, key=lambda one: (one["metadata"]["creationTimestamp"], one["metadata"]["uid"]))["metadata"]
    assert stamp == older["uid"]

    async def counts() -> dict[str, int]:
        found = await cluster.list(INSTALL_PLAN_APPROVER, Selection(olm.namespace))
        return {one["metadata"]["name"]: one.get("status", {}).get("approvedCount", 0) for one in found}

    async def is_counted() -> bool:
        return (await counts())[older["name"]] == 1

    assert await eventually(is_counted)
    assert sum((await counts()).values()) == 1
    patches = [one for one in asked() if (one.resource, one.verb) == ("installplans", "patch")]
    assert [one.code for one in patches if one.namespace == olm.namespace] == [200]
    assert approver.troubles == []


async def test_a_subscription_that_cannot_be_read_holds_its_namespace_back_and_no_other(
    cluster: Client, olm: Lifecycle, lifecycles: Lifecycles, start: Start
) -> None:
    with start(*ALONE, f"--policy-namespaces={olm.namespace}"):
        await _one_is_held_the_other_free(cluster, olm, await lifecycles())


async def _one_is_held_the_other_free(cluster: Client, olm: Lifecycle, other: Lifecycle) -> None:
    await an_approver(cluster, olm.namespace, targetNamespaces=[olm.namespace, other.namespace])
    await olm.subscribe("odd", name=7)
    for one in (olm, other):
        await one.subscribe("db", V1)
    held, free = await olm.offer(V1), await other.offer(V1)
    assert await eventually(lambda: other.is_approved(free))
    assert await eventually(lambda: shows(cluster, olm, held, "SubscriptionUnreadable"))
    assert not await olm.is_approved(held)
    await cluster.merge_patch(Ref(SUBSCRIPTION, Key(olm.namespace, "odd")), {"spec": {"name": "odd"}})
    assert await eventually(lambda: olm.is_approved(held))


async def test_a_bad_policy_is_said_and_approves_nothing(cluster: Client, olm: Lifecycle, approver: Process) -> None:
    window = {"schedule": "0 22 * * *", "duration": "1h", "timeZone": "Mars/Olympus"}
    await an_approver(cluster, olm.namespace, targetNamespaces=[olm.namespace], policy={"windows": [window]})
    await olm.subscribe("db", V1)
    plan = await olm.offer(V1)
    assert await eventually(lambda: shows(cluster, olm, plan, "BadPolicy"))
    condition = (await status_of(cluster, olm.namespace))["conditions"][0]
    assert (condition["type"], condition["status"]) == ("PolicyValid", "False")
    assert not await olm.is_approved(plan)
    good = {"spec": {"policy": {"windows": [{**window, "schedule": "* * * * *", "timeZone": "UTC"}]}}}
    await cluster.merge_patch(Ref(INSTALL_PLAN_APPROVER, Key(olm.namespace, "ann")), good)
    assert await eventually(lambda: olm.is_approved(plan))
    assert approver.alive
