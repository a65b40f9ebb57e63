"""Plans that no longer fit the cluster: nothing is overwritten, and it is said."""

from collections.abc import Awaitable, Callable

import pytest
from aiohttp import web

from tests.controllers.advisor.desk import Desk, a_descheduler, advising, no_reboots, the_config
from tests.eventually import eventually
from tests.gateway import Gateway
from tests.grants import Account
from virt_steward.controllers.advisor.profiles.load_aware_rebalancing import DESCHEDULER, PSI
from virt_steward.kube.events import EVENT
from virt_steward_demo.local.controlplane import ControlPlane

Meddle = Callable[[Desk], Awaitable[object]]


async def change(desk: Desk) -> None:
    await desk.client.merge_patch(DESCHEDULER, {"spec": {"deschedulingIntervalSeconds": 77}})


async def create(desk: Desk) -> None:
    await desk.client.create(a_descheduler(deschedulingIntervalSeconds=77))


async def delete(desk: Desk) -> None:
    await desk.client.delete(DESCHEDULER)


async def interval(desk: Desk) -> int | None:
    if not await desk.exists(DESCHEDULER):
        return None
    return int((await desk.descheduler())["spec"]["deschedulingIntervalSeconds"])


@pytest.mark.parametrize(
    ("exists", "meddle", "left"),
    [
        pytest.param(True, change, 77, id="was-changed"),
        pytest.param(False, create, 77, id="appeared"),
        pytest.param(True, delete, None, id="was-deleted"),
    ],
)
@pytest.mark.parametrize("when", ["before-the-approval", "between-check-and-write"])
async def test_stale_target_is_not_written(
    desk: Desk,
    control_plane: ControlPlane,
    account: Account,
    gateway: Gateway,
    *,
    exists: bool,
    meddle: Meddle,
    left: int | None,
    when: str,
) -> None:
    meddled: list[str] = []

    async def on_the_way(request: web.BaseRequest) -> web.StreamResponse | None:
        is_write = request.method == "PATCH" and "/kubedeschedulers/" in request.path and "dryRun" not in request.query
        if is_write and when == "between-check-and-write" and not meddled:
            meddled.append(request.path)
            await meddle(desk)
        return None

    gateway.intercept = on_the_way
    if exists:
        await desk.client.create(a_descheduler())
    async with advising(control_plane, account, server=gateway.server):
        await desk.ask("DryRun", options=no_reboots())
        assert await desk.reaches("ReviewRequired")
        if when == "before-the-approval":
            await meddle(desk)

            async def is_said() -> bool:
                return await desk.condition("PlanStale") == ("True", "TargetsChanged")

            assert await eventually(is_said)
            assert (await desk.status()).phase == "ReviewRequired"
        await desk.ask("Apply")
        assert await desk.reaches("Failed", reason="PlanStale")
        assert await desk.condition("PlanStale") == ("True", "TargetsChanged")
        assert await interval(desk) == left

        await desk.ask("DryRun")
        assert await desk.reaches("ReviewRequired")
        assert await desk.condition("PlanStale") == ("False", "PlanCurrent")
        await desk.ask("Apply")
        assert await desk.reaches("Completed")
        assert await interval(desk) == 60


async def test_bypass_mode_overwrites_stale_target_with_warning(
    desk: Desk, control_plane: ControlPlane, account: Account
) -> None:
    await desk.client.create(a_descheduler())

    async def warnings() -> list[str]:
        uid = (await desk.config())["metadata"]["uid"]
        found = [one for one in await desk.client.list(EVENT) if one["regarding"].get("uid") == uid]
        return [one["note"] for one in found if (one["type"], one["reason"]) == ("Warning", "LockBypassed")]

    async def is_warned() -> bool:
        return bool(await warnings())

    async with advising(control_plane, account):
        await desk.ask("DryRun", options=no_reboots(), bypassOptimisticLock=True)
        assert await desk.reaches("ReviewRequired")
        await change(desk)
        await desk.ask("Apply")
        assert await desk.reaches("Completed")
        assert await interval(desk) == 60
        assert await eventually(is_warned)
    assert ["KubeDescheduler cluster had changed since the plan was made" in one for one in await warnings()] == [True]


async def test_completed_item_stays_when_second_target_changes(
    desk: Desk, control_plane: ControlPlane, account: Account
) -> None:
    await desk.client.create(a_descheduler())
    async with advising(control_plane, account):
        await desk.ask("DryRun")
        assert await desk.reaches("ReviewRequired")
        await desk.ask("Apply")
        assert await eventually(desk.has_psi)
        await change(desk)  # while nodes reboot for the first item
        assert await desk.reaches("Failed", reason="PlanStale")
    status = await desk.status()
    assert [item.state for item in status.items] == ["Completed", "Pending"]
    assert await interval(desk) == 77
    assert await desk.exists(PSI)
    assert status.history[0].outcome == "Failed"


async def test_status_updates_do_not_make_plan_stale(
    desk: Desk, control_plane: ControlPlane, account: Account, gateway: Gateway
) -> None:
    touched: list[int] = []

    async def on_the_way(request: web.BaseRequest) -> web.StreamResponse | None:
        is_write = request.method == "PATCH" and "/kubedeschedulers/" in request.path and "dryRun" not in request.query
        if is_write and len(touched) < 2:
            touched.append(len(touched))
            status = {"status": {"readyReplicas": len(touched)}}
            await desk.client.merge_patch(DESCHEDULER, status, subresource="status")
        return None

    gateway.intercept = on_the_way
    await desk.client.create(a_descheduler())
    async with advising(control_plane, account, server=gateway.server):
        await desk.ask("Apply", options=no_reboots())
        assert await desk.reaches("Completed")
    assert len(touched) == 2
    assert await interval(desk) == 60


async def test_approval_is_valid_for_its_plan_only(desk: Desk, control_plane: ControlPlane, account: Account) -> None:
    async with advising(control_plane, account):
        await desk.ask("DryRun", options=no_reboots())
        assert await desk.reaches("ReviewRequired")
        first = (await desk.status()).plan_hash
        notes = {
            "advisor.kubevirt.io/approved-plan": first,
            "advisor.kubevirt.io/approved-by": "ann",
            "advisor.kubevirt.io/approval-comment": "tonight",
        }
        wish = {"action": "Apply", "options": no_reboots(deschedulingIntervalSeconds=90)}
        await desk.client.merge_patch(the_config(), {"metadata": {"annotations": notes}, "spec": wish})
        assert await desk.reaches("ReviewRequired", reason="ApprovalVoid")
        assert not await desk.exists(DESCHEDULER)

        await desk.annotate(approved_plan=(await desk.status()).plan_hash)
        assert await desk.reaches("Completed")
        assert await interval(desk) == 90
    status = await desk.status()
    assert status.approval
    assert (status.approval.by, status.approval.comment) == ("ann", "tonight")
    assert status.approval.plan_hash == status.history[0].plan_hash != first
