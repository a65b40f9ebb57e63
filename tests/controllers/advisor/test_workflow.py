"""The workflow of the proposal from plan to completion, on a platform whose nodes really reboot."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from tests.controllers.advisor.desk import (
    HCO,
    V1,
    V2,
    Desk,
    a_descheduler,
    advising,
    no_reboots,
    observing,
    the_config,
    true_phases,
)
from tests.events import has_event
from tests.eventually import eventually
from tests.grants import Account
from virt_steward.apis.profiles import LOAD_AWARE
from virt_steward.apis.virtplatformconfig import VirtPlatformConfigStatus
from virt_steward.controllers.advisor.options import AdvisorOptions
from virt_steward.controllers.advisor.profiles.load_aware_rebalancing import DESCHEDULER, PSI, profile
from virt_steward.controllers.advisor.profiles.profile import Profile, ProfileContext
from virt_steward.objects.paths import Pointer, with_value
from virt_steward.plans.annotations import APPLIED_HASH, GOVERNED_BY
from virt_steward.plans.fields import values
from virt_steward.plans.fingerprint import fields_hash
from virt_steward.plans.intent import Intent
from virt_steward_demo.local.controlplane import ControlPlane


def phases(seen: Iterable[VirtPlatformConfigStatus]) -> list[str]:
    """One after the other, without repeats."""
    found: list[str] = []
    for status in seen:
        if status.phase and found[-1:] != [status.phase]:
            found.append(status.phase)
    return found


async def test_plan_is_reviewed_and_executed(desk: Desk, control_plane: ControlPlane, account: Account) -> None:
    await desk.client.create(a_descheduler())
    theirs = {**a_descheduler(), "spec": {"logLevel": "Debug", "profileCustomizations": {"podLifetime": "5m"}}}
    await desk.client.apply(theirs, manager="argocd", force=True)
    async with advising(control_plane, account), observing(desk.client) as seen:
        await desk.ask("DryRun")
        assert await desk.reaches("ReviewRequired")
        status = await desk.status()
        psi, descheduler = status.items
        assert (psi.name, psi.state, psi.impact_severity) == ("enable-psi-metrics", "Pending", "High")
        assert (descheduler.name, descheduler.impact_severity) == ("configure-descheduler", "Medium")
        assert "+  - psi=1" in psi.diff
        assert "-  deschedulingIntervalSeconds: 30\n" in descheduler.diff
        assert "+  - KubeVirtRelieveAndMigrate\n" in descheduler.diff
        assert "logLevel" not in descheduler.diff  # others' fields are not even context
        assert "podLifetime" not in descheduler.diff
        assert {one.field for one in descheduler.takes} == {
            ".spec.deschedulingIntervalSeconds",
            ".spec.mode",
            ".spec.profiles",
        }
        assert psi.blast_radius
        assert psi.blast_radius.message == (
            "3 nodes reboot (worker: 3 in 3 rounds); 5 VMs must migrate; "
            "1 cannot migrate and stops instead: tenants/vm-1-0"
        )
        assert status.impact_severity == "High"
        assert not await desk.has_psi()

        await desk.ask("Apply")
        assert await desk.reaches("Completed")
    told = [one.items[0].message for one in seen if one.items]
    assert any("Waiting for MachineConfigPool 'worker' to stabilize (Updated: 1/3" in one for one in told)
    assert not [
        one for one in seen if one.items and one.items[0].state != "Completed" and one.items[1].state != "Pending"
    ]
    assert phases(seen) == ["ReviewRequired", "InProgress", "Completed"]
    assert [true_phases(one) for one in seen if one.phase] == [[one.phase] for one in seen if one.phase]
    status = await desk.status()
    assert [item.state for item in status.items] == ["Completed", "Completed"]
    assert status.history[0].outcome == "Completed"
    for item, ref in zip(status.items, (PSI, DESCHEDULER), strict=True):
        live = await desk.client.get(ref)
        assert live["metadata"]["annotations"][GOVERNED_BY] == "load-aware-rebalancing"
        assert live["metadata"]["annotations"][APPLIED_HASH] == fields_hash(live, item.managed_fields)
        assert values(live, item.managed_fields) == values(item.desired_state, item.managed_fields)
    assert (await desk.descheduler())["spec"]["logLevel"] == "Debug"


async def test_apply_needs_no_review_and_ignore_stops_watching(
    desk: Desk, control_plane: ControlPlane, account: Account
) -> None:
    async with advising(control_plane, account) as advisor, observing(desk.client) as seen:
        await desk.ask("Apply", options=no_reboots())
        assert await desk.reaches("Completed")
        assert "ReviewRequired" not in phases(seen)
        assert await advisor.shows_drift(0)

        await desk.ask("Ignore")
        assert await desk.reaches("Ignored")
        assert (await desk.status()).impact_severity == "Medium"
        assert await advisor.shows_drift(None)
        await desk.client.merge_patch(DESCHEDULER, {"spec": {"mode": "Predictive"}})
        await desk.ask("DryRun")
        assert await desk.reaches("ReviewRequired")
        assert (await desk.status()).governed
        assert "-  mode: Predictive" in (await desk.item("configure-descheduler")).diff
        assert (await desk.descheduler())["spec"]["mode"] == "Predictive"


async def test_drift_is_reported_until_repaired(desk: Desk, control_plane: ControlPlane, account: Account) -> None:
    async with advising(control_plane, account) as advisor:
        await desk.ask("Apply", options=no_reboots(), notify="ops")
        assert await desk.reaches("Completed")
        await desk.client.merge_patch(DESCHEDULER, {"spec": {"mode": "Predictive"}}, manager="kubectl-edit")
        assert await desk.reaches("Drifted")
        status = await desk.status()
        [entry] = [one for item in status.items for one in item.drift]
        assert (entry.path, entry.planned, entry.live) == ("/spec/mode", "Automatic", "Predictive")
        assert (entry.manager, entry.time is not None) == ("kubectl-edit", True)
        [drifted] = [one for one in status.conditions if one.type == "Drifted"]
        assert drifted.message == f"Drifted: KubeDescheduler cluster: {entry.sentence()}"
        assert await eventually(lambda: has_event(desk.client, the_config(LOAD_AWARE), entry.sentence()))
        assert await desk.condition("Notifying") == ("True", "EndpointKnown")
        assert await advisor.shows_drift(1)
        assert await desk.condition("ProfileActive") == ("False", "ConfigurationDrifted")
        assert (await desk.descheduler())["spec"]["mode"] == "Predictive"

        await desk.client.merge_patch(DESCHEDULER, {"spec": {"mode": "Automatic"}})
        assert await desk.reaches("Completed")
        assert not [one for item in (await desk.status()).items for one in item.drift]
        assert await advisor.shows_drift(0)
        assert await advisor.has_told("Completed", "Drifted", "Completed")

        await desk.ask(bypassOptimisticLock=True)
        assert await desk.reaches("Completed")
        await desk.client.merge_patch(DESCHEDULER, {"spec": {"mode": "Predictive"}})

        async def is_enforced() -> bool:
            return bool((await desk.descheduler())["spec"]["mode"] == "Automatic")

        assert await eventually(is_enforced)
        assert await desk.reaches("Completed")


async def test_changed_input_needs_review_until_restored(
    desk: Desk, control_plane: ControlPlane, account: Account
) -> None:
    async def limit(value: int) -> None:
        settings = {"liveMigrationConfig": {"parallelMigrationsPerCluster": value}}
        await desk.client.merge_patch(HCO, {"spec": {"virtualization": settings}})

    async def total() -> Any:
        return (await desk.descheduler())["spec"]["evictionLimits"]["total"]

    async with advising(control_plane, account):
        await desk.ask("Apply", options=no_reboots())
        assert await desk.reaches("Completed")
        await limit(10)
        assert await desk.reaches("ReviewRequired", reason="InputChanged")
        assert await desk.condition("InputDependencyDrift") == ("True", "InputChanged")
        assert await desk.message("InputDependencyDrift") == "parallelMigrationsPerCluster changed from 5 to 10"
        assert "+    total: 10" in (await desk.item("configure-descheduler")).diff

        await limit(5)
        assert await desk.reaches("Completed")
        assert await desk.condition("InputDependencyDrift") == ("False", "DriftResolved")
        assert await total() == 5

        await limit(10)
        assert await desk.reaches("ReviewRequired")
        await desk.ask(waitTimeout="2h")  # any later generation agrees
        assert await desk.reaches("Completed")
        assert await desk.condition("InputDependencyDrift") == ("False", "Acknowledged")
        assert await total() == 10


async def test_changed_options_and_rollback_need_no_input_review(
    desk: Desk, control_plane: ControlPlane, account: Account
) -> None:
    async def limit(value: int) -> None:
        settings = {"liveMigrationConfig": {"parallelMigrationsPerCluster": value}}
        await desk.client.merge_patch(HCO, {"spec": {"virtualization": settings}})

    async def total() -> Any:
        return (await desk.descheduler())["spec"]["evictionLimits"]["total"]

    async with advising(control_plane, account), observing(desk.client) as seen:
        await desk.ask("Apply", options=no_reboots())
        assert await desk.reaches("Completed")
        await desk.ask(options=no_reboots(evictionLimitTotal=8))
        assert await desk.reaches("Completed")
        assert await total() == 8
        await desk.ask(options=no_reboots(evictionLimitTotal=None))
        assert await desk.reaches("Completed")
        assert await total() == 5
        assert "ReviewRequired" not in phases(seen)

        await desk.ask("Rollback")
        assert await desk.reaches("ReviewRequired")
        await desk.annotate(approved_plan=(await desk.status()).plan_hash)
        assert await desk.reaches("Completed", reason="RolledBack")
        await limit(10)
        await desk.annotate(approved_plan=None)
        await desk.ask("Apply")
        assert await desk.reaches("Completed")
        assert await total() == 10


def newer(minutes: int) -> Profile:
    """The same profile, with another idea of the interval."""
    old = profile(AdvisorOptions())

    def intents(context: ProfileContext) -> tuple[Intent, ...]:
        (descheduler,) = old.intents(context)
        interval = Pointer(("spec", "deschedulingIntervalSeconds"))
        return (replace(descheduler, desired=with_value(descheduler.desired, interval, 60 * minutes)),)

    return replace(old, intents=intents)


async def test_upgrade_is_adopted_offered_or_ends(desk: Desk, control_plane: ControlPlane, account: Account) -> None:
    async with advising(control_plane, account, version=V1):
        await desk.ask("Apply", options=no_reboots())
        assert await desk.reaches("Completed")

    async def version() -> str:
        return (await desk.status()).operator_version

    async def is_adopted() -> bool:
        return await version() == V2

    async with advising(control_plane, account, version=V2):  # the same logic
        assert await eventually(is_adopted)
        assert (await desk.status()).phase == "Completed"
        assert await desk.condition("UpgradeAvailable") == ("False", "NoLogicChange")
    async with advising(control_plane, account, version="v3", known=[newer(2)]):
        assert await desk.reaches("CompletedWithUpgrade")
        assert await desk.condition("UpgradeAvailable") == ("True", "LogicChanged")
        assert (await desk.descheduler())["spec"]["deschedulingIntervalSeconds"] == 60
        await desk.client.merge_patch(DESCHEDULER, {"spec": {"deschedulingIntervalSeconds": 120}})
        assert await desk.reaches("Completed")
        assert await desk.condition("UpgradeAvailable") == ("False", "ManuallyAligned")
        assert await version() == "v3"
    async with advising(control_plane, account, version="v4", known=[newer(3)]):
        assert await desk.reaches("CompletedWithUpgrade")
        await desk.ask("DryRun")
        assert await desk.reaches("ReviewRequired")
        assert "+  deschedulingIntervalSeconds: 180" in (await desk.item("configure-descheduler")).diff
        await desk.ask("Apply")
        assert await desk.reaches("Completed")
        assert await desk.condition("UpgradeAvailable") == ("False", "Applied")
        assert await version() == "v4"


async def test_offered_upgrade_does_not_hide_drift(desk: Desk, control_plane: ControlPlane, account: Account) -> None:
    async def interval() -> Any:
        return (await desk.descheduler())["spec"]["deschedulingIntervalSeconds"]

    async def set_mode(mode: str) -> None:
        await desk.client.merge_patch(DESCHEDULER, {"spec": {"mode": mode}})

    async with advising(control_plane, account, version=V1):
        await desk.ask("DryRun", options=no_reboots())
        assert await desk.reaches("ReviewRequired")
        await desk.ask("Apply")
        assert await desk.reaches("Completed")
        await set_mode("Predictive")
        assert await desk.reaches("Drifted")
    async with advising(control_plane, account, version=V2) as advisor, observing(desk.client) as seen:
        await desk.ask(waitTimeout="2h")
        assert await desk.reaches("Drifted")
        assert await advisor.shows_drift(1)
    assert set(phases(seen)) == {"Drifted"}  # the same logic is no news
    async with advising(control_plane, account, version="v3", known=[newer(2)]) as advisor:
        assert await desk.reaches("Drifted")
        assert await soon_is(desk, "UpgradeAvailable", ("True", "LogicChanged"))
        await set_mode("Automatic")
        assert await desk.reaches("CompletedWithUpgrade")
        await desk.ask(waitTimeout="3h")
        assert await desk.reaches("CompletedWithUpgrade")
        await set_mode("Predictive")
        assert await desk.reaches("Drifted")
        assert await advisor.shows_drift(1)
        assert await desk.condition("UpgradeAvailable") == ("True", "LogicChanged")

        await desk.ask(bypassOptimisticLock=True)
        assert await desk.reaches("CompletedWithUpgrade")
        assert (await desk.descheduler())["spec"]["mode"] == "Automatic"
        assert await desk.condition("UpgradeAvailable") == ("True", "LogicChanged")
        assert await interval() == 60


async def soon_is(desk: Desk, condition: str, said: tuple[str, str]) -> bool:
    async def is_said() -> bool:
        return await desk.condition(condition) == said

    return await eventually(is_said)


async def test_profiles_are_offered_again_and_owned_by_user(
    desk: Desk, control_plane: ControlPlane, account: Account
) -> None:
    offered = [the_config("load-aware-rebalancing"), the_config("virt-higher-density")]

    async def are_ignored() -> bool:
        found = [await desk.client.get(ref) for ref in offered if await desk.exists(ref)]
        return [one.get("status", {}).get("phase") for one in found] == ["Ignored", "Ignored"]

    async with advising(control_plane, account):
        assert await eventually(are_ignored)
        config = await desk.config()
        assert config["spec"] == {
            "profile": desk.profile,
            "action": "Ignore",
            "bypassOptimisticLock": False,
            "failurePolicy": "Abort",
        }
        assert config["metadata"]["labels"] == {"advisor.kubevirt.io/category": "scheduling"}
        assert config["metadata"]["annotations"]["advisor.kubevirt.io/auto-created"] == "true"
        assert not await desk.exists(the_config("example-profile"))

        mine = {key: config[key] for key in ("apiVersion", "kind")}
        mine |= {"metadata": {"name": desk.profile}, "spec": {"profile": desk.profile, "action": "DryRun"}}
        await desk.client.apply(mine, manager="argocd")  # no force: nobody else owns it
        assert await desk.reaches("ReviewRequired")

        deleted = (await desk.client.get(offered[1]))["metadata"]["uid"]
        await desk.client.delete(offered[1])

        async def is_back() -> bool:
            if not await desk.exists(offered[1]):
                return False
            return bool((await desk.client.get(offered[1]))["metadata"]["uid"] != deleted)

        assert await eventually(is_back)
    async with advising(control_plane, account):
        assert await desk.reaches("ReviewRequired")
        assert (await desk.config())["spec"]["action"] == "DryRun"
