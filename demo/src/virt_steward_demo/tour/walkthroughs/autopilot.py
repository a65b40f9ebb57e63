"""Autopilot: it keeps the platform at best practice, except for what admins override."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

from virt_steward.catalog.load import load
from virt_steward.controllers.autopilot.annotation_keys import IGNORED, PAUSED
from virt_steward.controllers.autopilot.options import HCO
from virt_steward.controllers.autopilot.watches import ref_of_asset
from virt_steward.kube.errors import NotFound
from virt_steward_demo.simulation.control_loop import in_background
from virt_steward_demo.simulation.faults import OtherEditor
from virt_steward_demo.tour.sample_objects import ASSETS, enable_autopilot

if TYPE_CHECKING:
    from virt_steward.objects.identity import Ref
    from virt_steward_demo.tour.environment import DemoCluster
    from virt_steward_demo.tour.narrator import Narrator


async def autopilot(cluster: DemoCluster, narrator: Narrator) -> None:
    client = cluster.client
    catalog = load()
    narrator.section("Autopilot: keeps the platform at best practice and respects overrides")

    def ref(asset: str) -> Ref:
        return next(ref_of_asset(one, HCO) for one in catalog.assets if one.name == asset)

    monitor, rules, forklift = ref("metrics-servicemonitor"), ref("prometheus-alerts"), ref("mtv-operator")

    async def exists(target: Ref) -> bool:
        with suppress(NotFound):
            await client.get(target)
            return True
        return False

    async def label(target: Ref, name: str) -> Any:
        return ((await client.get(target))["metadata"].get("labels") or {}).get(name)

    async def has_ui(value: str) -> bool:
        return bool((await client.get(forklift))["spec"].get("feature_ui_plugin") == value)

    async def is_paused() -> bool:
        return ((await client.get(forklift))["metadata"].get("annotations") or {}).get(PAUSED) == "true"

    async def all_exist() -> bool:
        return all([await exists(ref(asset)) for asset in ASSETS])

    async def is_reverted() -> bool:
        return bool(await label(monitor, "app") == "virt-platform-autopilot")

    narrator.say("An annotation on the HyperConverged turns it on for some assets.")
    await enable_autopilot(client)
    await narrator.check(f"all of them are applied: {', '.join(ASSETS)}", all_exist)
    narrator.say("Another admin changes a label.")
    await client.merge_patch(monitor, {"metadata": {"labels": {"app": "mine"}}}, manager="other-admin")
    await narrator.check("the autopilot reverts it", is_reverted)
    narrator.say(f"An admin excludes one field with {IGNORED}, and sets it.")
    keep = {"metadata": {"annotations": {IGNORED: "/spec/feature_ui_plugin"}}, "spec": {"feature_ui_plugin": "false"}}
    await client.merge_patch(forklift, keep, manager="admin")
    await client.merge_patch(rules, {"metadata": {"labels": {"role": "other"}}}, manager="other-admin")

    async def rules_are_reverted() -> bool:
        return bool(await label(rules, "role") == "alert-rules")

    await narrator.check("a change of another object is reverted", rules_are_reverted)
    await narrator.check("the admin's value is kept", lambda: has_ui("false"))
    narrator.say("Another tool sets a second field again and again.")
    editor = OtherEditor(client, forklift, ("spec", "feature_validation"), ("false",), interval=0.2)
    async with in_background(editor):
        await narrator.check("the edit war is detected, and the object is paused until an admin decides", is_paused)
    resume = {"metadata": {"annotations": {PAUSED: None}}}
    await client.merge_patch(forklift, resume, manager="admin")

    async def is_validated() -> bool:
        return bool((await client.get(forklift))["spec"]["feature_validation"] == "true")

    await narrator.check("resumed, the object is as desired", is_validated)
    await narrator.check("the admin's value is still kept", lambda: has_ui("false"))
