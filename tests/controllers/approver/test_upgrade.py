"""The approver on what version 0.1 has left: it counts on, and nothing is approved twice."""

import msgspec

from tests.controllers.approver.conftest import Asked, Start
from tests.controllers.approver.lifecycle import Lifecycle, status_of
from tests.eventually import eventually
from tests.recordings import V01, recording, restore
from virt_steward.kube.client import Object
from virt_steward.objects.identity import Key

RECORDED = "operators"
"""The namespace of the recording."""
KEPT = ("approvedCount", "lastApprovedPlan", "lastApprovedTime")
WAITING = "install-3"


async def test_upgrade_counts_on_and_approves_nothing_again(
    olm: Lifecycle, home: str, start: Start, asked: Asked
) -> None:
    async def status() -> Object:
        return await status_of(olm.client, olm.namespace, "all")

    async def is_counted() -> bool:
        return (await status())["approvedCount"] == 3

    objects = recording("approver", folder=V01)
    for obj in objects:
        place = obj["metadata"]["namespace"]
        obj["metadata"]["namespace"] = olm.namespace if place == RECORDED else home
    await restore(olm.client, [_moved(obj, olm.namespace) for obj in objects])
    before = await status()
    with start("--lease-duration=4", "--lease-retry=0.1") as approver:
        assert await eventually(lambda: approver.said("leading"), within=30)
        assert await eventually(lambda: any(one.name == "all" and one.is_write for one in asked()))
        after = await status()
        assert [after[name] for name in KEPT] == [before[name] for name in KEPT]
        assert [one["plan"] for one in after["pending"]] == [f"{olm.namespace}/{WAITING}"]
        assert approvals(asked) == []
        await olm.pin("vault", "vault.v2")
        assert await eventually(is_counted)
    assert approvals(asked) == [WAITING]
    assert await olm.is_approved(Key(olm.namespace, WAITING))
    assert approver.troubles == []


def approvals(asked: Asked) -> list[str]:
    return [one.name for one in asked() if one.resource == "installplans" and one.is_write]


def _moved(obj: Object, namespace: str) -> Object:
    """The status names plans with their namespaces."""
    text = msgspec.json.encode(obj).decode().replace(f"{RECORDED}/install-", f"{namespace}/install-")
    moved: Object = msgspec.json.decode(text)
    return moved
