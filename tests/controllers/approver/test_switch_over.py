"""The approver on what the Go approver has left: the count goes on, and nothing is written twice."""

from contextlib import suppress
from datetime import datetime
from functools import partial

import msgspec

from tests.controllers.approver.conftest import Asked, Start
from tests.controllers.approver.lifecycle import Lifecycle, status_of
from tests.eventually import eventually
from tests.howtos import Follower, a_deployment
from tests.otheroperator import OtherOperator
from tests.recordings import recording, restore
from virt_steward.apis.installplanapprover import INSTALL_PLAN_APPROVER
from virt_steward.controllers.approver.definition import GO_LEASE
from virt_steward.kube.client import Object
from virt_steward.kube.errors import AlreadyExists
from virt_steward.objects.identity import Key, Ref, ref_of
from virt_steward_demo.local.controlplane import ControlPlane
from virt_steward_demo.simulation.install import make_namespace

APPROVED, WAITING = "install-2", "install-3"


async def test_switch_over_goes_on_counting(olm: Lifecycle, start: Start, asked: Asked) -> None:
    def approvals() -> list[str]:
        return [one.name for one in asked() if one.resource == "installplans" and one.is_write]

    async def status() -> Object:
        return await status_of(olm.client, olm.namespace, "all")

    async def is_judged() -> bool:
        return bool((await status()).get("pending"))

    async def is_counted() -> bool:
        return (await status())["approvedCount"] == 2

    await restore(olm.client, recording("approver-counting", namespace=("ip-1", olm.namespace)))
    await olm.set_phase(Key(olm.namespace, APPROVED), "Complete", "a-op.v1")
    await olm.set_phase(Key(olm.namespace, WAITING), "RequiresApproval", "b-op.v2")
    before = await status()
    with start() as approver:
        assert await eventually(is_judged)
        found = await status()
        assert [one["plan"] for one in found["pending"]] == [f"{olm.namespace}/{WAITING}"]
        kept = ("approvedCount", "lastApprovedPlan", "lastApprovedTime")
        assert [found[name] for name in kept] == [before[name] for name in kept]
        assert approvals() == []
        await olm.pin("b-op", "b-op.v2")
        assert await eventually(is_counted)
        assert approvals() == [WAITING]
        assert approver.troubles == []
    assert (await status())["lastApprovedPlan"] == f"{olm.namespace}/{WAITING}"


class GoStatus(msgspec.Struct, rename="camel"):
    """What the Go approver reads and writes; it counts on from there."""

    approved_count: int
    last_approved_plan: str
    last_approved_time: datetime


THEIRS = ("iplan-approver-system", "iplan-approver-controller-manager")
DEPLOYMENTS = (THEIRS, ("virt-steward", "virt-steward-approver"))


async def test_switch_over_by_the_howto_and_back(olm: Lifecycle, start: Start, control_plane: ControlPlane) -> None:
    howto = Follower("switch-from-the-go-approver", olm.client, control_plane.kubeconfig)
    for place in DEPLOYMENTS:
        with suppress(AlreadyExists):
            await make_namespace(olm.client, place[0])
        await olm.client.create(a_deployment(*place))
    await restore(olm.client, recording("approver-counting", namespace=("ip-1", olm.namespace)))
    await olm.set_phase(Key(olm.namespace, WAITING), "RequiresApproval", "b-op.v2")
    checked = await howto.steward("switch-check approver")
    assert checked.code == 2, checked.stderr
    assert f"~ InstallPlanApprover {olm.namespace}/all: covers all namespaces now" in checked.stdout
    waiting = {"NAMESPACE/NAME": f"{olm.namespace}/{WAITING}"}
    explained = await howto.steward("explain installplan NAMESPACE/NAME", **waiting)
    assert f"{WAITING}: not approved, phase RequiresApproval" in explained.stdout
    go_approver = OtherOperator(olm.client, Key(THEIRS[0], GO_LEASE))
    with start():
        async with go_approver.running():
            assert "standing by: go-1 holds Lease" in (await howto.steward("status")).stdout
            scale = f"-n {THEIRS[0]} scale deployment {THEIRS[1]}"
            assert (await howto.kubectl(f"{scale} --replicas=0"))["spec"]["replicas"] == 0
        assert await eventually(lambda: is_judged(olm), within=20), "the Lease has expired"
        assert await eventually(partial(is_no_longer_standing_by, howto), within=20)
        held = '-n NAMESPACE patch ipa NAME --type merge -p \'{"spec":{"autoApprove":false}}\''
        patched = await howto.kubectl(held, NAMESPACE=olm.namespace, NAME="all")
        assert patched["spec"]["autoApprove"] is False
        await howto.kubectl("-n virt-steward scale deployment virt-steward-approver --replicas=0")
    left = await olm.client.get(Ref(INSTALL_PLAN_APPROVER, Key(olm.namespace, "all")))
    assert msgspec.convert(left["status"], GoStatus).approved_count == 1
    assert (await howto.kubectl(f"{scale} --replicas=1"))["spec"]["replicas"] == 1
    assert howto.left_out == ["kubectl delete -k"], "which the page warns of"
    await go_approver.delete()
    for place in DEPLOYMENTS:
        await olm.client.delete(ref_of(a_deployment(*place)))


async def is_no_longer_standing_by(howto: Follower) -> bool:
    return "standing by" not in (await howto.steward("status")).stdout


async def is_judged(olm: Lifecycle) -> bool:
    return bool((await status_of(olm.client, olm.namespace, "all")).get("pending"))
