"""Plans that no longer fit the cluster: nothing is overwritten, and it is said."""

from collections.abc import Awaitable, Callable

import pytest
from aiohttp import web

from tests.controllers.advisor.rig import AdvisorRig, a_descheduler, advising, no_reboots, the_config
from tests.eventually import eventually
from tests.gateway import Gateway
from tests.grants import Account
from virt_steward.controllers.advisor.profiles.load_aware_rebalancing import DESCHEDULER, PSI
from virt_steward.kube.events import EVENT
from virt_steward_demo.local.controlplane import ControlPlane

Meddle = Callable[[AdvisorRig], Awaitable[object]]


async def change(rig: AdvisorRig) -> None:
    await rig.client.merge_patch(DESCHEDULER, {"spec": {"deschedulingIntervalSeconds": 77}})


async def create(rig: AdvisorRig) -> None:
    await rig.client.create(a_descheduler(deschedulingIntervalSeconds=77))


async def delete(rig: AdvisorRig) -> None:
    await rig.client.delete(DESCHEDULER)


async def interval(rig: AdvisorRig) -> int | None:
    if not await rig.exists(DESCHEDULER):
        return None
    return int((await rig.descheduler())["spec"]["deschedulingIntervalSeconds"])


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
    rig: AdvisorRig,
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
            await meddle(rig)
        return None

    gateway.intercept = on_the_way
    if exists:
        await rig.client.create(a_descheduler())
    async with advising(control_plane, account, server=gateway.server):
        await rig.ask("DryRun", options=no_reboots())
        assert await rig.reaches("ReviewRequired")
        if when == "before-the-approval":
            await meddle(rig)

            async def is_said() -> bool:
                return await rig.condition("PlanStale") == ("True", "TargetsChanged")

            assert await eventually(is_said)
            assert (await rig.status()).phase == "ReviewRequired"
        await rig.ask("Apply")
        assert await rig.reaches("Failed", reason="PlanStale")
        assert await rig.condition("PlanStale") == ("True", "TargetsChanged")
        assert await interval(rig) == left

        await rig.ask("DryRun")
        assert await rig.reaches("ReviewRequired")
        assert await rig.condition("PlanStale") == ("False", "PlanCurrent")
        await rig.ask("Apply")
        assert await rig.reaches("Completed")
        assert await interval(rig) == 60


async def test_bypass_mode_overwrites_stale_target_with_warning(
    rig: AdvisorRig, control_plane: ControlPlane, account: Account
) -> None:
    await rig.client.create(a_descheduler())

    async def warnings() -> list[str]:
        uid = (await rig.config())["metadata"]["uid"]
        found = [one for one in await rig.client.list(EVENT) if one["regarding"].get("uid") == uid]
        return [one["note"] for one in found if (one["type"], one["reason"]) == ("Warning", "LockBypassed")]

    async def is_warned() -> bool:
        return bool(await warnings())

    async with advising(control_plane, account):
        await rig.ask("DryRun", options=no_reboots(), bypassOptimisticLock=True)
        assert await rig.reaches("ReviewRequired")
        await change(rig)
        await rig.ask("Apply")
        assert await rig.reaches("Completed")
        assert await interval(rig) == 60
        assert await eventually(is_warned)
    assert ["KubeDescheduler cluster had changed since the plan was made" in one for one in await warnings()] == [True]


async def test_completed_item_stays_when_second_target_changes(
    rig: AdvisorRig, control_plane: ControlPlane, account: Account
) -> None:
    await rig.client.create(a_descheduler())
    async with advising(control_plane, account):
        await rig.ask("DryRun")
        assert await rig.reaches("ReviewRequired")
        await rig.ask("Apply")
        assert await eventually(rig.has_psi)
        await change(rig)  # while nodes reboot for the first item
        assert await rig.reaches("Failed", reason="PlanStale")
    status = await rig.status()
    assert [item.state for item in status.items] == ["Completed", "Pending"]
    assert await interval(rig) == 77
    assert await rig.exists(PSI)
    assert status.history[0].outcome == "Failed"


async def test_status_updates_do_not_make_plan_stale(
    rig: AdvisorRig, control_plane: ControlPlane, account: Account, gateway: Gateway
) -> None:
    touched: list[int] = []

    async def on_the_way(request: web.BaseRequest) -> web.StreamResponse | None:
        is_write = request.method == "PATCH" and "/kubedeschedulers/" in request.path and "dryRun" not in request.query
        if is_write and len(touched) < 2:
            touched.append(len(touched))
            status = {"status": {"readyReplicas": len(touched)}}
            await rig.client.merge_patch(DESCHEDULER, status, subresource="status")
        return None

    gateway.intercept = on_the_way
    await rig.client.create(a_descheduler())
    async with advising(control_plane, account, server=gateway.server):
        await rig.ask("Apply", options=no_reboots())
        assert await rig.reaches("Completed")
    assert len(touched) == 2
    assert await interval(rig) == 60


async def test_approval_is_valid_for_its_plan_only(
    rig: AdvisorRig, control_plane: ControlPlane, account: Account
) -> None:
    async with advising(control_plane, account):
        await rig.ask("DryRun", options=no_reboots())
        assert await rig.reaches("ReviewRequired")
        first = (await rig.status()).plan_hash
        notes = {
            "advisor.kubevirt.io/approved-plan": first,
            "advisor.kubevirt.io/approved-by": "ann",
            "advisor.kubevirt.io/approval-comment": "tonight",
        }
        wish = {"action": "Apply", "options": no_reboots(deschedulingIntervalSeconds=90)}
        await rig.client.merge_patch(the_config(), {"metadata": {"annotations": notes}, "spec": wish})
        assert await rig.reaches("ReviewRequired", reason="ApprovalVoid")
        assert not await rig.exists(DESCHEDULER)

        await rig.annotate(approved_plan=(await rig.status()).plan_hash)
        assert await rig.reaches("Completed")
        assert await interval(rig) == 90
    status = await rig.status()
    assert status.approval
    assert (status.approval.by, status.approval.comment) == ("ann", "tonight")
    assert status.approval.plan_hash == status.history[0].plan_hash != first
