"""The workflow of the proposal from plan to completion, on a platform whose nodes really reboot."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from tests.controllers.advisor.rig import (
    HCO,
    V1,
    V2,
    AdvisorRig,
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


async def test_plan_is_reviewed_and_executed(rig: AdvisorRig, control_plane: ControlPlane, account: Account) -> None:
    await rig.client.create(a_descheduler())
    theirs = {**a_descheduler(), "spec": {"logLevel": "Debug", "profileCustomizations": {"podLifetime": "5m"}}}
    await rig.client.apply(theirs, manager="argocd", force=True)
    async with advising(control_plane, account), observing(rig.client) as seen:
        await rig.ask("DryRun")
        assert await rig.reaches("ReviewRequired")
        status = await rig.status()
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
        assert not await rig.has_psi()

        await rig.ask("Apply")
        assert await rig.reaches("Completed")
    told = [one.items[0].message for one in seen if one.items]
    assert any("Waiting for MachineConfigPool 'worker' to stabilize (Updated: 1/3" in one for one in told)
    assert not [
        one for one in seen if one.items and one.items[0].state != "Completed" and one.items[1].state != "Pending"
    ]
    assert phases(seen) == ["ReviewRequired", "InProgress", "Completed"]
    assert [true_phases(one) for one in seen if one.phase] == [[one.phase] for one in seen if one.phase]
    status = await rig.status()
    assert [item.state for item in status.items] == ["Completed", "Completed"]
    assert status.history[0].outcome == "Completed"
    for item, ref in zip(status.items, (PSI, DESCHEDULER), strict=True):
        live = await rig.client.get(ref)
        assert live["metadata"]["annotations"][GOVERNED_BY] == "load-aware-rebalancing"
        assert live["metadata"]["annotations"][APPLIED_HASH] == fields_hash(live, item.managed_fields)
        assert values(live, item.managed_fields) == values(item.desired_state, item.managed_fields)
    assert (await rig.descheduler())["spec"]["logLevel"] == "Debug"


async def test_apply_needs_no_review_and_ignore_stops_watching(
    rig: AdvisorRig, control_plane: ControlPlane, account: Account
) -> None:
    async with advising(control_plane, account) as advisor, observing(rig.client) as seen:
        await rig.ask("Apply", options=no_reboots())
        assert await rig.reaches("Completed")
        assert "ReviewRequired" not in phases(seen)
        assert await advisor.shows_drift(0)

        await rig.ask("Ignore")
        assert await rig.reaches("Ignored")
        assert (await rig.status()).impact_severity == "Medium"
        assert await advisor.shows_drift(None)
        await rig.client.merge_patch(DESCHEDULER, {"spec": {"mode": "Predictive"}})
        await rig.ask("DryRun")
        assert await rig.reaches("ReviewRequired")
        assert (await rig.status()).governed
        assert "-  mode: Predictive" in (await rig.item("configure-descheduler")).diff
        assert (await rig.descheduler())["spec"]["mode"] == "Predictive"


async def test_drift_is_reported_until_repaired(rig: AdvisorRig, control_plane: ControlPlane, account: Account) -> None:
    async with advising(control_plane, account) as advisor:
        await rig.ask("Apply", options=no_reboots(), notify="ops")
        assert await rig.reaches("Completed")
        await rig.client.merge_patch(DESCHEDULER, {"spec": {"mode": "Predictive"}}, manager="kubectl-edit")
        assert await rig.reaches("Drifted")
        status = await rig.status()
        [entry] = [one for item in status.items for one in item.drift]
        assert (entry.path, entry.planned, entry.live) == ("/spec/mode", "Automatic", "Predictive")
        assert (entry.manager, entry.time is not None) == ("kubectl-edit", True)
        [drifted] = [one for one in status.conditions if one.type == "Drifted"]
        assert drifted.message == f"Drifted: KubeDescheduler cluster: {entry.sentence()}"
        assert await eventually(lambda: has_event(rig.client, the_config(LOAD_AWARE), entry.sentence()))
        assert await rig.condition("Notifying") == ("True", "EndpointKnown")
        assert await advisor.shows_drift(1)
        assert await rig.condition("ProfileActive") == ("False", "ConfigurationDrifted")
        assert (await rig.descheduler())["spec"]["mode"] == "Predictive"

        await rig.client.merge_patch(DESCHEDULER, {"spec": {"mode": "Automatic"}})
        assert await rig.reaches("Completed")
        assert not [one for item in (await rig.status()).items for one in item.drift]
        assert await advisor.shows_drift(0)
        assert await advisor.has_told("Completed", "Drifted", "Completed")

        await rig.ask(bypassOptimisticLock=True)
        assert await rig.reaches("Completed")
        await rig.client.merge_patch(DESCHEDULER, {"spec": {"mode": "Predictive"}})

        async def is_enforced() -> bool:
            return bool((await rig.descheduler())["spec"]["mode"] == "Automatic")

        assert await eventually(is_enforced)
        assert await rig.reaches("Completed")


async def test_changed_input_needs_review_until_restored(
    rig: AdvisorRig, control_plane: ControlPlane, account: Account
) -> None:
    async def limit(value: int) -> None:
        settings = {"liveMigrationConfig": {"parallelMigrationsPerCluster": value}}
        await rig.client.merge_patch(HCO, {"spec": {"virtualization": settings}})

    async def total() -> Any:
        return (await rig.descheduler())["spec"]["evictionLimits"]["total"]

    async with advising(control_plane, account):
        await rig.ask("Apply", options=no_reboots())
        assert await rig.reaches("Completed")
        await limit(10)
        assert await rig.reaches("ReviewRequired", reason="InputChanged")
        assert await rig.condition("InputDependencyDrift") == ("True", "InputChanged")
        assert await rig.message("InputDependencyDrift") == "parallelMigrationsPerCluster changed from 5 to 10"
        assert "+    total: 10" in (await rig.item("configure-descheduler")).diff

        await limit(5)
        assert await rig.reaches("Completed")
        assert await rig.condition("InputDependencyDrift") == ("False", "DriftResolved")
        assert await total() == 5

        await limit(10)
        assert await rig.reaches("ReviewRequired")
        await rig.ask(waitTimeout="2h")  # any later generation agrees
        assert await rig.reaches("Completed")
        assert await rig.condition("InputDependencyDrift") == ("False", "Acknowledged")
        assert await total() == 10


async def test_changed_options_and_rollback_need_no_input_review(
    rig: AdvisorRig, control_plane: ControlPlane, account: Account
) -> None:
    async def limit(value: int) -> None:
        settings = {"liveMigrationConfig": {"parallelMigrationsPerCluster": value}}
        await rig.client.merge_patch(HCO, {"spec": {"virtualization": settings}})

    async def total() -> Any:
        return (await rig.descheduler())["spec"]["evictionLimits"]["total"]

    async with advising(control_plane, account), observing(rig.client) as seen:
        await rig.ask("Apply", options=no_reboots())
        assert await rig.reaches("Completed")
        await rig.ask(options=no_reboots(evictionLimitTotal=8))
        assert await rig.reaches("Completed")
        assert await total() == 8
        await rig.ask(options=no_reboots(evictionLimitTotal=None))
        assert await rig.reaches("Completed")
        assert await total() == 5
        assert "ReviewRequired" not in phases(seen)

        await rig.ask("Rollback")
        assert await rig.reaches("ReviewRequired")
        await rig.annotate(approved_plan=(await rig.status()).plan_hash)
        assert await rig.reaches("Completed", reason="RolledBack")
        await limit(10)
        await rig.annotate(approved_plan=None)
        await rig.ask("Apply")
        assert await rig.reaches("Completed")
        assert await total() == 10


def newer(minutes: int) -> Profile:
    """The same profile, with another idea of the interval."""
    old = profile(AdvisorOptions())

    def intents(context: ProfileContext) -> tuple[Intent, ...]:
        (descheduler,) = old.intents(context)
        interval = Pointer(("spec", "deschedulingIntervalSeconds"))
        return (replace(descheduler, desired=with_value(descheduler.desired, interval, 60 * minutes)),)

    return replace(old, intents=intents)


async def test_upgrade_is_adopted_offered_or_ends(
    rig: AdvisorRig, control_plane: ControlPlane, account: Account
) -> None:
    async with advising(control_plane, account, version=V1):
        await rig.ask("Apply", options=no_reboots())
        assert await rig.reaches("Completed")

    async def version() -> str:
        return (await rig.status()).operator_version

    async def is_adopted() -> bool:
        return await version() == V2

    async with advising(control_plane, account, version=V2):  # the same logic
        assert await eventually(is_adopted)
        assert (await rig.status()).phase == "Completed"
        assert await rig.condition("UpgradeAvailable") == ("False", "NoLogicChange")
    async with advising(control_plane, account, version="v3", known=[newer(2)]):
        assert await rig.reaches("CompletedWithUpgrade")
        assert await rig.condition("UpgradeAvailable") == ("True", "LogicChanged")
        assert (await rig.descheduler())["spec"]["deschedulingIntervalSeconds"] == 60
        await rig.client.merge_patch(DESCHEDULER, {"spec": {"deschedulingIntervalSeconds": 120}})
        assert await rig.reaches("Completed")
        assert await rig.condition("UpgradeAvailable") == ("False", "ManuallyAligned")
        assert await version() == "v3"
    async with advising(control_plane, account, version="v4", known=[newer(3)]):
        assert await rig.reaches("CompletedWithUpgrade")
        await rig.ask("DryRun")
        assert await rig.reaches("ReviewRequired")
        assert "+  deschedulingIntervalSeconds: 180" in (await rig.item("configure-descheduler")).diff
        await rig.ask("Apply")
        assert await rig.reaches("Completed")
        assert await rig.condition("UpgradeAvailable") == ("False", "Applied")
        assert await version() == "v4"


async def test_offered_upgrade_does_not_hide_drift(
    rig: AdvisorRig, control_plane: ControlPlane, account: Account
) -> None:
    async def interval() -> Any:
        return (await rig.descheduler())["spec"]["deschedulingIntervalSeconds"]

    async def set_mode(mode: str) -> None:
        await rig.client.merge_patch(DESCHEDULER, {"spec": {"mode": mode}})

    async with advising(control_plane, account, version=V1):
        await rig.ask("DryRun", options=no_reboots())
        assert await rig.reaches("ReviewRequired")
        await rig.ask("Apply")
        assert await rig.reaches("Completed")
        await set_mode("Predictive")
        assert await rig.reaches("Drifted")
    async with advising(control_plane, account, version=V2) as advisor, observing(rig.client) as seen:
        await rig.ask(waitTimeout="2h")
        assert await rig.reaches("Drifted")
        assert await advisor.shows_drift(1)
    assert set(phases(seen)) == {"Drifted"}  # the same logic is no news
    async with advising(control_plane, account, version="v3", known=[newer(2)]) as advisor:
        assert await rig.reaches("Drifted")
        assert await soon_is(rig, "UpgradeAvailable", ("True", "LogicChanged"))
        await set_mode("Automatic")
        assert await rig.reaches("CompletedWithUpgrade")
        await rig.ask(waitTimeout="3h")
        assert await rig.reaches("CompletedWithUpgrade")
        await set_mode("Predictive")
        assert await rig.reaches("Drifted")
        assert await advisor.shows_drift(1)
        assert await rig.condition("UpgradeAvailable") == ("True", "LogicChanged")

        await rig.ask(bypassOptimisticLock=True)
        assert await rig.reaches("CompletedWithUpgrade")
        assert (await rig.descheduler())["spec"]["mode"] == "Automatic"
        assert await rig.condition("UpgradeAvailable") == ("True", "LogicChanged")
        assert await interval() == 60


async def soon_is(rig: AdvisorRig, condition: str, said: tuple[str, str]) -> bool:
    async def is_said() -> bool:
        return await rig.condition(condition) == said

    return await eventually(is_said)


async def test_profiles_are_offered_again_and_owned_by_user(
    rig: AdvisorRig, control_plane: ControlPlane, account: Account
) -> None:
    offered = [the_config("load-aware-rebalancing"), the_config("virt-higher-density")]

    async def are_ignored() -> bool:
        found = [await rig.client.get(ref) for ref in offered if await rig.exists(ref)]
        return [one.get("status", {}).get("phase") for one in found] == ["Ignored", "Ignored"]

    async with advising(control_plane, account):
        assert await eventually(are_ignored)
        config = await rig.config()
        assert config["spec"] == {
            "profile": rig.profile,
            "action": "Ignore",
            "bypassOptimisticLock": False,
            "failurePolicy": "Abort",
        }
        assert config["metadata"]["labels"] == {"advisor.kubevirt.io/category": "scheduling"}
        assert config["metadata"]["annotations"]["advisor.kubevirt.io/auto-created"] == "true"
        assert not await rig.exists(the_config("example-profile"))

        mine = {key: config[key] for key in ("apiVersion", "kind")}
        mine |= {"metadata": {"name": rig.profile}, "spec": {"profile": rig.profile, "action": "DryRun"}}
        await rig.client.apply(mine, manager="argocd")  # no force: nobody else owns it
        assert await rig.reaches("ReviewRequired")

        deleted = (await rig.client.get(offered[1]))["metadata"]["uid"]
        await rig.client.delete(offered[1])

        async def is_back() -> bool:
            if not await rig.exists(offered[1]):
                return False
            return bool((await rig.client.get(offered[1]))["metadata"]["uid"] != deleted)

        assert await eventually(is_back)
    async with advising(control_plane, account):
        assert await rig.reaches("ReviewRequired")
        assert (await rig.config())["spec"]["action"] == "DryRun"
