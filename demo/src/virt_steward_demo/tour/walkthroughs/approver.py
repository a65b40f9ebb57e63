"""Approver: it installs the operator version that Git pins, and no other."""

from __future__ import annotations

from typing import TYPE_CHECKING

from virt_steward.apis.installplanapprover import INSTALL_PLAN_APPROVER
from virt_steward.controllers.approver.olm import SUBSCRIPTION
from virt_steward.objects.identity import Ref
from virt_steward_demo.tour.sample_objects import APPROVER, OPERATOR, PINNED, create_pinned_operator

if TYPE_CHECKING:
    from virt_steward.kube.client import Object
    from virt_steward_demo.tour.environment import DemoCluster
    from virt_steward_demo.tour.narrator import Narrator


async def approver(cluster: DemoCluster, narrator: Narrator) -> None:
    client = cluster.client
    narrator.section("Approver: installs the version that Git pins, and no other")
    narrator.say(f"Subscription {PINNED} pins 2.0.0 with startingCSV. Its approval is Manual.")
    await create_pinned_operator(client)

    async def subscription() -> Object:
        return await client.get(Ref(SUBSCRIPTION, PINNED))

    async def installed(version: str) -> bool:
        found: str = (await subscription()).get("status", {}).get("installedCSV", "")
        return found == f"{OPERATOR}.v{version}"

    async def pending() -> list[Object]:
        status = (await client.get(Ref(INSTALL_PLAN_APPROVER, APPROVER))).get("status", {})
        return [one for one in status.get("pending", ()) if one["plan"].startswith(f"{PINNED.namespace}/")]

    async def upgrade_is_pending() -> bool:
        return any(one["reason"] == "NotPinned" for one in await pending())

    async def nothing_is_pending() -> bool:
        return not await pending()

    await narrator.check("the InstallPlan of 2.0.0 is approved, and 2.0.0 is installed", lambda: installed("2.0.0"))
    await narrator.check("2.1.0 is available, and its InstallPlan is pending: NotPinned", upgrade_is_pending)
    narrator.quote((await pending())[0]["message"])
    narrator.say("An admin merges the new pin.")
    pin = {"spec": {"startingCSV": f"{OPERATOR}.v2.1.0"}}
    await client.merge_patch(Ref(SUBSCRIPTION, PINNED), pin, manager="gitops")
    await narrator.check("2.1.0 is installed", lambda: installed("2.1.0"))
    await narrator.check("no InstallPlan is pending", nothing_is_pending)
