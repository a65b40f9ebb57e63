"""The approver on what the Go approver has left: the count goes on, and nothing is written twice."""

from tests.controllers.approver.conftest import Asked, Start
from tests.controllers.approver.lifecycle import Lifecycle, status_of
from tests.eventually import eventually
from tests.recordings import recording, restore
from virt_steward.kube.client import Object
from virt_steward.objects.identity import Key

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
