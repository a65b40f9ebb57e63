"""Which cluster runs a machine, and why."""

from __future__ import annotations

from typing import TYPE_CHECKING

from virt_steward.apis.kubevirtconfig import KUBEVIRT_CONFIG
from virt_steward.controllers.placement.observation import CONFIG_ANNOTATION
from virt_steward.objects.identity import Key, Ref
from virt_steward_demo.tour.scene import add_a_machine

if TYPE_CHECKING:
    from virt_steward_demo.tour.narrator import Narrator
    from virt_steward_demo.tour.stage import DemoCluster


async def placement(stage: DemoCluster, tell: Narrator) -> None:
    client = stage.client
    tell.chapter("Placement: which cluster runs this machine, and why")
    tell.say("Two clusters are known: north and south.")

    async def cluster_of(machine: Ref) -> str:
        annotations = (await client.get(machine))["metadata"].get("annotations") or {}
        return str(annotations.get(CONFIG_ANNOTATION, ""))

    async def why_not(machine: Ref) -> str:
        conditions = (await client.get(machine)).get("status", {}).get("conditions", ())
        return next((one["message"] for one in conditions if one["type"] == "Placed" and one["status"] == "False"), "")

    async def is_on(machine: Ref, cluster: str) -> bool:
        return await cluster_of(machine) == cluster

    async def is_placed(machine: Ref) -> bool:
        return bool(await cluster_of(machine))

    async def is_blocked(machine: Ref, word: str) -> bool:
        return word in await why_not(machine)

    async def answers(cluster: str, status: str) -> bool:
        found = await client.get(Ref(KUBEVIRT_CONFIG, Key("", cluster)))
        conditions = found.get("status", {}).get("conditions", ())
        return any((one["type"], one["status"]) == ("Reachable", status) for one in conditions)

    await tell.sees("cluster north answers", lambda: answers("north", "True"))
    await tell.sees("cluster south answers", lambda: answers("south", "True"))
    reports = await add_a_machine(client, "reports")
    await tell.sees("reports goes south: its virtual machine runs there already", lambda: is_on(reports, "south"))
    portal = await add_a_machine(client, "portal", cluster_selector="topology.kubernetes.io/region=north")
    await tell.sees("portal goes north: its selector leaves nothing else", lambda: is_on(portal, "north"))
    shop = await add_a_machine(client, "shop")
    await tell.sees("shop is found nowhere and says nothing: it waits, and says why", lambda: is_blocked(shop, "shop"))
    tell.quote(await why_not(shop))
    await add_a_machine(client, "shop", placement_strategy="round-robin")

    await tell.sees("asked to take turns, it gets a cluster", lambda: is_placed(shop))
    tell.say("The south goes down.")
    stage.fleet.fail("south")
    await tell.sees("its KubevirtConfig says so", lambda: answers("south", "False"))
    ledger = await add_a_machine(client, "ledger", placement_strategy="round-robin")
    await tell.sees("ledger is not guessed: south may have it, and is named", lambda: is_blocked(ledger, "south"))
    tell.quote(await why_not(ledger))
    stage.fleet.recover("south")
    await tell.sees("the south is back and has nothing of it: ledger gets a cluster", lambda: is_placed(ledger), 120)
