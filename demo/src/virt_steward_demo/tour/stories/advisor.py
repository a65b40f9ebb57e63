"""What a tuning changes and costs is shown first, and nothing is done before somebody agrees."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from virt_steward.apis.virtplatformconfig import LOAD_AWARE, VIRT_PLATFORM_CONFIG
from virt_steward.controllers.advisor.annotation_keys import APPROVAL_COMMENT, APPROVED_BY, APPROVED_PLAN
from virt_steward.controllers.advisor.profiles.load_aware_rebalancing import DESCHEDULER, PSI
from virt_steward.kube.errors import NotFound
from virt_steward.objects.identity import Key, Ref
from virt_steward_demo.tour.scene import set_up_a_descheduler

if TYPE_CHECKING:
    from virt_steward.kube.client import Client, Object
    from virt_steward_demo.tour.narrator import Narrator
    from virt_steward_demo.tour.stage import DemoCluster

CONFIG = Ref(VIRT_PLATFORM_CONFIG, Key("", LOAD_AWARE))
TARGETS = (PSI, DESCHEDULER)
PLANNED, BY_HAND = 60, 7200
"""Seconds between two looks of the descheduler."""


async def advisor(stage: DemoCluster, tell: Narrator) -> None:
    tell.chapter("Advisor: what it changes, what it costs, and only if you say so")
    admin = _Admin(stage.client)
    await set_up_a_descheduler(stage.client)
    await tell.sees("profiles are on offer, asleep", lambda: admin.sees("Ignored"))
    await _plan_and_approve(admin, tell)
    await _drift(admin, tell)
    await _go_back(admin, tell)


async def _plan_and_approve(admin: _Admin, tell: Narrator) -> None:
    tell.say("An admin asks for a plan.")
    before = await admin.targets()

    async def only_planned() -> bool:
        return await admin.sees("ReviewRequired") and await admin.targets() == before

    await admin.asks_for("DryRun")
    await tell.sees("the plan waits for review; nothing has changed", only_planned)
    tell.quote((await admin.item("configure-descheduler"))["diff"])
    tell.quote((await admin.item("enable-psi-metrics"))["blastRadius"]["message"])
    await admin.approves("the quiet hour", "Apply")
    await tell.sees("approved, the nodes are updated one by one", admin.sees_nodes_roll)
    await tell.sees("all items are applied and work", lambda: admin.sees("Completed"), within=120)


async def _drift(admin: _Admin, tell: Narrator) -> None:
    tell.say("Somebody changes the descheduler by hand.")
    await admin.sets_descheduler_to(BY_HAND)

    async def only_told() -> bool:
        return await admin.sees("Drifted") and await admin.sees_descheduler_at(BY_HAND)

    await tell.sees("that is told, and not fought", only_told)
    await admin.sets_descheduler_to(PLANNED)
    await tell.sees("repaired by hand, all is well again", lambda: admin.sees("Completed"))


async def _go_back(admin: _Admin, tell: Narrator) -> None:
    tell.say("The admin wants to go back.")
    await admin.asks_for("Rollback")
    await tell.sees("the way back is a plan too, and waits for review", lambda: admin.sees("ReviewRequired"))
    await admin.approves("back to normal", "Rollback")
    await tell.sees("the MachineConfig that the plan had made is removed", admin.sees_no_psi)
    await tell.sees("the nodes have rolled back, and all is done", lambda: admin.sees("Completed"), within=120)


@dataclass(frozen=True, slots=True)
class _Admin:
    """Looks at the config, and changes it."""

    client: Client

    async def status(self) -> Object:
        """Empty until it speaks of the present spec."""
        found = await self.client.get(CONFIG)
        told: Object = found.get("status", {})
        return told if told.get("observedGeneration") == found["metadata"]["generation"] else {}

    async def sees(self, phase: str) -> bool:
        return (await self.status()).get("phase") == phase

    async def item(self, name: str) -> Object:
        return next((one for one in (await self.status()).get("items", ()) if one["name"] == name), {})

    async def sees_nodes_roll(self) -> bool:
        return "Updated: 1/" in (await self.item("enable-psi-metrics")).get("message", "")

    async def sees_no_psi(self) -> bool:
        return await self._spec(PSI) is None

    async def sees_descheduler_at(self, seconds: int) -> bool:
        spec = await self._spec(DESCHEDULER)
        return spec is not None and spec.get("deschedulingIntervalSeconds") == seconds

    async def targets(self) -> list[Object | None]:
        """All that the profile is about, as it is now."""
        return [await self._spec(target) for target in TARGETS]

    async def asks_for(self, action: str) -> None:
        await self.client.merge_patch(CONFIG, {"spec": {"action": action}}, manager="admin")

    async def approves(self, comment: str, action: str) -> None:
        """Just the plan that was shown."""
        notes = {APPROVED_PLAN: (await self.status())["planHash"], APPROVED_BY: "demo", APPROVAL_COMMENT: comment}
        patch = {"metadata": {"annotations": notes}, "spec": {"action": action}}
        await self.client.merge_patch(CONFIG, patch, manager="admin")

    async def sets_descheduler_to(self, seconds: int) -> None:
        patch = {"spec": {"deschedulingIntervalSeconds": seconds}}
        await self.client.merge_patch(DESCHEDULER, patch, manager="colleague")

    async def _spec(self, target: Ref) -> Object | None:
        try:
            found: Object = (await self.client.get(target)).get("spec", {})
        except NotFound:
            return None
        return found
