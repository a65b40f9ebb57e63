"""The platform stays at its best practice, but for what its admins override."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

from virt_steward.catalog.load import load
from virt_steward.controllers.autopilot.annotation_keys import IGNORED, PAUSED
from virt_steward.controllers.autopilot.options import HCO
from virt_steward.controllers.autopilot.watches import ref_of_asset
from virt_steward.kube.errors import NotFound
from virt_steward_demo.simulation.background import in_background
from virt_steward_demo.simulation.colleague import Colleague
from virt_steward_demo.tour.scene import ASSETS, engage_the_autopilot

if TYPE_CHECKING:
    from virt_steward.objects.identity import Ref
    from virt_steward_demo.tour.narrator import Narrator
    from virt_steward_demo.tour.stage import DemoCluster


async def autopilot(stage: DemoCluster, tell: Narrator) -> None:
    client = stage.client
    catalog = load()
    tell.chapter("Autopilot: best practice, silently, and respectful of overrides")

    def ref(asset: str) -> Ref:
        return next(ref_of_asset(one, HCO) for one in catalog.assets if one.name == asset)

    service, rules, forklift = ref("metrics-service"), ref("prometheus-alerts"), ref("mtv-operator")

    async def is_there(target: Ref) -> bool:
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

    async def all_there() -> bool:
        return all([await is_there(ref(asset)) for asset in ASSETS])

    async def is_named() -> bool:
        return bool(await label(service, "app") == "virt-platform-autopilot")

    tell.say("An annotation on the HyperConverged turns it on, for some assets.")
    await engage_the_autopilot(client)
    await tell.sees(f"all of them are there: {', '.join(ASSETS)}", all_there)
    tell.say("A colleague changes a label.")
    await client.merge_patch(service, {"metadata": {"labels": {"app": "mine"}}}, manager="colleague")
    await tell.sees("it is set right", is_named)
    tell.say(f"An admin keeps one field for themselves with {IGNORED}, and sets it.")
    keep = {"metadata": {"annotations": {IGNORED: "/spec/feature_ui_plugin"}}, "spec": {"feature_ui_plugin": "false"}}
    await client.merge_patch(forklift, keep, manager="admin")
    await client.merge_patch(rules, {"metadata": {"labels": {"role": "other"}}}, manager="colleague")

    async def rules_are_right() -> bool:
        return bool(await label(rules, "role") == "alert-rules")

    await tell.sees("another change is set right", rules_are_right)
    await tell.sees("the admin's value stays", lambda: has_ui("false"))
    tell.say("An impatient colleague sets another field again and again.")
    impatient = Colleague(client, forklift, ("spec", "feature_validation"), ("false", "maybe"), every=0.2)
    async with in_background(impatient):
        await tell.sees("the edit war is noticed, and the object paused until somebody decides", is_paused)
    resume = {"metadata": {"annotations": {PAUSED: None}}}
    await client.merge_patch(forklift, resume, manager="admin")

    async def is_validated() -> bool:
        return bool((await client.get(forklift))["spec"]["feature_validation"] == "true")

    await tell.sees("resumed, it is as it should be, and the admin's value still stays", is_validated)
    await tell.sees("…as it was", lambda: has_ui("false"))
