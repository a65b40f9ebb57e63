"""The operator version that Git pins is installed, and no other."""

from __future__ import annotations

from typing import TYPE_CHECKING

from virt_steward.apis.installplanapprover import INSTALL_PLAN_APPROVER
from virt_steward.controllers.approver.olm import SUBSCRIPTION
from virt_steward.objects.identity import Ref
from virt_steward_demo.tour.scene import APPROVER, OPERATOR, PINNED, pin_an_operator

if TYPE_CHECKING:
    from virt_steward.kube.client import Object
    from virt_steward_demo.tour.narrator import Narrator
    from virt_steward_demo.tour.stage import DemoCluster


async def approver(stage: DemoCluster, tell: Narrator) -> None:
    client = stage.client
    tell.chapter("Approver: the version that Git pins, never another")
    tell.say(f"Subscription {PINNED} asks for 2.0.0 by its startingCSV, and updates are approved by hand.")
    await pin_an_operator(client)

    async def subscription() -> Object:
        return await client.get(Ref(SUBSCRIPTION, PINNED))

    async def installed(version: str) -> bool:
        found: str = (await subscription()).get("status", {}).get("installedCSV", "")
        return found == f"{OPERATOR}.v{version}"

    async def waiting() -> list[Object]:
        status = (await client.get(Ref(INSTALL_PLAN_APPROVER, APPROVER))).get("status", {})
        return [one for one in status.get("pending", ()) if one["plan"].startswith(f"{PINNED.namespace}/")]

    async def upgrade_waits() -> bool:
        return any(one["reason"] == "NotPinned" for one in await waiting())

    async def nothing_waits() -> bool:
        return not await waiting()

    await tell.sees("the plan for 2.0.0 is approved, and 2.0.0 is installed", lambda: installed("2.0.0"))
    await tell.sees("2.1.0 is offered, and its plan waits as NotPinned", upgrade_waits)
    tell.quote((await waiting())[0]["message"])
    tell.say("Somebody merges the new pin.")
    pin = {"spec": {"startingCSV": f"{OPERATOR}.v2.1.0"}}
    await client.merge_patch(Ref(SUBSCRIPTION, PINNED), pin, manager="gitops")
    await tell.sees("2.1.0 is installed", lambda: installed("2.1.0"))
    await tell.sees("nothing waits any more", nothing_waits)
