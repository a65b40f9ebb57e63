"""Advisor: it shows what a profile changes and costs, and applies nothing before an approval."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from virt_steward.apis.profiles import LOAD_AWARE
from virt_steward.apis.virtplatformconfig import VIRT_PLATFORM_CONFIG
from virt_steward.controllers.advisor.annotation_keys import APPROVAL_COMMENT, APPROVED_BY, APPROVED_PLAN
from virt_steward.controllers.advisor.profiles.load_aware_rebalancing import DESCHEDULER, PSI
from virt_steward.kube.errors import NotFound
from virt_steward.kube.whoami import name_of_caller
from virt_steward.objects.identity import Key, Ref
from virt_steward_demo.tour.sample_objects import create_descheduler

if TYPE_CHECKING:
    from virt_steward.kube.client import Client, Object
    from virt_steward_demo.tour.environment import DemoCluster
    from virt_steward_demo.tour.narrator import Narrator

CONFIG = Ref(VIRT_PLATFORM_CONFIG, Key("", LOAD_AWARE))
TARGETS = (PSI, DESCHEDULER)
PLANNED, DRIFTED = 60, 7200
"""Values of deschedulingIntervalSeconds."""


async def advisor(cluster: DemoCluster, narrator: Narrator) -> None:
    narrator.section("Advisor: shows what a profile changes and costs, and applies it once approved")
    admin = _Admin(cluster.client)
    await create_descheduler(cluster.client)
    await narrator.check("the profiles are offered, inactive (action: Ignore)", lambda: admin.sees_phase("Ignored"))
    await _plan_and_approve(admin, narrator)
    await _drift(admin, narrator)
    await _roll_back(admin, narrator)


async def _plan_and_approve(admin: _Admin, narrator: Narrator) -> None:
    narrator.say("An admin requests a plan (action: DryRun).")
    before = await admin.targets()

    async def only_planned() -> bool:
        return await admin.sees_phase("ReviewRequired") and await admin.targets() == before

    await admin.requests("DryRun")
    await narrator.check("the plan is ready for review; nothing is applied", only_planned)
    narrator.quote((await admin.item("configure-descheduler"))["diff"])
    narrator.quote((await admin.item("enable-psi-metrics"))["blastRadius"]["message"])
    await admin.approves("maintenance window", "Apply")
    await narrator.check("after the approval, the nodes are updated one by one", admin.sees_nodes_roll)
    await narrator.check("all items are applied and ready", lambda: admin.sees_phase("Completed"), within=120)


async def _drift(admin: _Admin, narrator: Narrator) -> None:
    narrator.say("Another admin changes the KubeDescheduler manually.")
    await admin.sets_descheduler_to(DRIFTED)

    async def only_reported() -> bool:
        return await admin.sees_phase("Drifted") and await admin.sees_descheduler_at(DRIFTED)

    await narrator.check("the drift is reported and not reverted", only_reported)
    await admin.sets_descheduler_to(PLANNED)
    await narrator.check("after a manual repair, the profile is Completed again", lambda: admin.sees_phase("Completed"))


async def _roll_back(admin: _Admin, narrator: Narrator) -> None:
    narrator.say("The admin rolls back (action: Rollback).")
    await admin.requests("Rollback")
    await narrator.check("the rollback is a plan too, and needs a review", lambda: admin.sees_phase("ReviewRequired"))
    await admin.approves("back to normal", "Rollback")
    await narrator.check("the MachineConfig that the plan created is removed", admin.sees_no_psi)
    await narrator.check("all nodes are rolled back", lambda: admin.sees_phase("Completed"), within=120)


@dataclass(frozen=True, slots=True)
class _Admin:
    """An admin who reads and edits the VirtPlatformConfig."""

    client: Client

    async def status(self) -> Object:
        """Return the status, or an empty one while it is older than the spec."""
        found = await self.client.get(CONFIG)
        status: Object = found.get("status", {})
        return status if status.get("observedGeneration") == found["metadata"]["generation"] else {}

    async def sees_phase(self, phase: str) -> bool:
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
        """The live specs of all objects that the profile changes."""
        return [await self._spec(target) for target in TARGETS]

    async def requests(self, action: str) -> None:
        await self.client.merge_patch(CONFIG, {"spec": {"action": action}}, manager="admin")

    async def approves(self, comment: str, action: str) -> None:
        """Approve exactly the plan that was shown, by its hash, under the caller's own name: others are refused."""
        plan, me = (await self.status())["planHash"], await name_of_caller(self.client)
        annotations = {APPROVED_PLAN: plan, APPROVED_BY: me, APPROVAL_COMMENT: comment}
        patch = {"metadata": {"annotations": annotations}, "spec": {"action": action}}
        await self.client.merge_patch(CONFIG, patch, manager="admin")

    async def sets_descheduler_to(self, seconds: int) -> None:
        patch = {"spec": {"deschedulingIntervalSeconds": seconds}}
        await self.client.merge_patch(DESCHEDULER, patch, manager="other-admin")

    async def _spec(self, target: Ref) -> Object | None:
        try:
            found: Object = (await self.client.get(target)).get("spec", {})
        except NotFound:
            return None
        return found
