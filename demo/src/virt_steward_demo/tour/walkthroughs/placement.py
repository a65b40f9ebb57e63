"""Placement: it chooses the cluster of each Machine, and records why."""

from __future__ import annotations

from typing import TYPE_CHECKING

from virt_steward.apis.kubevirtconfig import KUBEVIRT_CONFIG
from virt_steward.controllers.placement.observation import CONFIG_ANNOTATION
from virt_steward.objects.identity import Key, Ref
from virt_steward_demo.tour.sample_objects import create_machine

if TYPE_CHECKING:
    from virt_steward_demo.tour.environment import DemoCluster
    from virt_steward_demo.tour.narrator import Narrator


async def placement(cluster: DemoCluster, narrator: Narrator) -> None:
    client = cluster.client
    narrator.section("Placement: chooses the cluster of each Machine, and records why")
    narrator.say("Two clusters are registered: north and south.")

    async def cluster_of(machine: Ref) -> str:
        annotations = (await client.get(machine))["metadata"].get("annotations") or {}
        return str(annotations.get(CONFIG_ANNOTATION, ""))

    async def blocked_message(machine: Ref) -> str:
        conditions = (await client.get(machine)).get("status", {}).get("conditions", ())
        return next((one["message"] for one in conditions if one["type"] == "Placed" and one["status"] == "False"), "")

    async def is_on(machine: Ref, name: str) -> bool:
        return await cluster_of(machine) == name

    async def is_placed(machine: Ref) -> bool:
        return bool(await cluster_of(machine))

    async def is_blocked(machine: Ref, text: str) -> bool:
        return text in await blocked_message(machine)

    async def is_reachable(name: str, status: str) -> bool:
        found = await client.get(Ref(KUBEVIRT_CONFIG, Key("", name)))
        conditions = found.get("status", {}).get("conditions", ())
        return any((one["type"], one["status"]) == ("Reachable", status) for one in conditions)

    await narrator.check("cluster north is reachable", lambda: is_reachable("north", "True"))
    await narrator.check("cluster south is reachable", lambda: is_reachable("south", "True"))
    reports = await create_machine(client, "reports")
    await narrator.check("reports is placed on south: its VM already runs there", lambda: is_on(reports, "south"))
    portal = await create_machine(client, "portal", cluster_selector="topology.kubernetes.io/region=north")
    await narrator.check(
        "portal is placed on north: its cluster selector matches only north", lambda: is_on(portal, "north")
    )
    shop = await create_machine(client, "shop")
    await narrator.check(
        "shop is not placed: it has no VM and no selector; its condition says so", lambda: is_blocked(shop, "shop")
    )
    narrator.quote(await blocked_message(shop))
    await create_machine(client, "shop", placement_strategy="round-robin")

    await narrator.check("with strategy round-robin, shop is placed", lambda: is_placed(shop))
    narrator.say("Cluster south goes down.")
    cluster.fleet.fail("south")
    await narrator.check("its KubevirtConfig is no longer Reachable", lambda: is_reachable("south", "False"))
    ledger = await create_machine(client, "ledger", placement_strategy="round-robin")
    await narrator.check(
        "ledger is not placed: its VM may exist on south, which is unreachable", lambda: is_blocked(ledger, "south")
    )
    narrator.quote(await blocked_message(ledger))
    cluster.fleet.recover("south")
    await narrator.check(
        "south is reachable again and has no such VM: ledger is placed", lambda: is_placed(ledger), 120
    )
