"""What the advisor asks of the server: little, nothing it may not, and nothing twice though it is killed."""

import msgspec
import pytest

from tests.audit import AuditLog, Mark, Request
from tests.controllers.advisor.process import Asked, Start, runs_through_a_kill, written
from tests.controllers.advisor.rig import HCO, AdvisorRig, advising, no_reboots
from tests.controllers.approver.process import FREQUENT_RENEWALS, SHORT_LEASE
from tests.eventually import eventually
from tests.grants import Account
from tests.leftovers import delete_all
from virt_steward.apis.profiles import EXAMPLE, LOAD_AWARE
from virt_steward.controllers.advisor.options import AdvisorOptions
from virt_steward.controllers.advisor.profiles import profiles
from virt_steward.controllers.advisor.profiles.load_aware_rebalancing import DESCHEDULER, PSI
from virt_steward.controllers.advisor.records import name_of_record
from virt_steward.runtime.access import LEASE
from virt_steward_demo.local.controlplane import ControlPlane
from virt_steward_demo.simulation.faults import break_node, repair_node

RECONCILES = "controller_runtime_reconcile_total"


def counted(requests: list[Request]) -> list[Request]:
    """Events and watches are left out, and discovery, which is confirmed seconds after the first list of CRDs."""
    return [one for one in requests if one.resource not in {"events", ""} and one.verb != "watch"]


def is_record(one: Request) -> bool:
    return one.resource == "configmaps" and one.name.startswith(name_of_record(""))


def leaves_a_trace(one: Request) -> bool:
    """Whether it changes anything besides what the advisor says of itself."""
    is_own = one.resource == "events" or one.subresource == "status" or is_record(one)
    return one.is_write and "dryRun" not in one.uri and not is_own


PROFILES = profiles(AdvisorOptions(example_profile=True))


async def deactivate_all(rig: AdvisorRig) -> None:
    """Wait until every profile that is offered is there, and ignored: until then, offers are still being made."""
    for profile in PROFILES:
        if profile.about.is_advertised:
            rig.profile = profile.name
            await rig.ask("Ignore")
            assert await rig.reaches("Ignored")
    rig.profile = LOAD_AWARE


async def test_requests_are_few_for_plan_and_none_when_completed(
    rig: AdvisorRig, control_plane: ControlPlane, account: Account, audit_log: AuditLog
) -> None:
    def since(mark: Mark) -> list[Request]:
        return counted([one for one in audit_log.since(mark) if one.user == account.user])

    async with advising(control_plane, account) as advisor:
        await deactivate_all(rig)
        mark = audit_log.mark()
        await rig.ask("DryRun")
        assert await rig.reaches("ReviewRequired")
        drafting = since(mark)
        assert len(drafting) <= 9, [(one.verb, one.uri) for one in drafting]
        assert sum(one.subresource == "status" for one in drafting) == 1
        assert [one.verb for one in drafting if is_record(one)] == ["patch"]
        assert not [one for one in drafting if leaves_a_trace(one)]

        mark = audit_log.mark()
        await rig.ask("Apply")
        assert await rig.reaches("Completed")
        assert [written(since(mark), ref.key.name) for ref in (PSI, DESCHEDULER)] == [1, 1]
        assert sorted(one.resource for one in since(mark) if leaves_a_trace(one)) == [
            "controllerrevisions",  # how it was before
            "kubedeschedulers",
            "machineconfigs",
        ]

        recorded = [one.verb for one in since(mark) if is_record(one)]
        assert set(recorded) == {"patch"}
        assert len(recorded) <= 6, "the start, up to two states of each item, the end"

        mark = audit_log.mark()
        done = advisor.sample(RECONCILES, controller="advisor", result="success") or 0.0
        for number in range(5):  # the watched world goes on, and nothing that matters changes
            await rig.client.merge_patch(DESCHEDULER, {"metadata": {"labels": {"touched": str(number)}}})
            await rig.client.merge_patch(HCO, {"metadata": {"labels": {"touched": str(number)}}})

        def has_looked() -> bool:
            return (advisor.sample(RECONCILES, controller="advisor", result="success") or 0.0) >= done + 3

        assert await eventually(has_looked)
        assert since(mark) == []


async def test_dry_run_writes_only_status(
    rig: AdvisorRig, control_plane: ControlPlane, account: Account, asked: Asked
) -> None:
    async with advising(control_plane, account):
        await deactivate_all(rig)
        begin = len(asked())
        await rig.ask("DryRun", bypassOptimisticLock=True)
        assert await rig.reaches("ReviewRequired")
        await rig.ask(options=no_reboots(deschedulingIntervalSeconds=90))
        assert await rig.reaches("ReviewRequired")
        settings = {"virtualization": {"liveMigrationConfig": {"parallelMigrationsPerCluster": 9}}}
        await rig.client.merge_patch(HCO, {"spec": settings})

        async def is_planned_anew() -> bool:
            return "+    total: 9" in (await rig.item("configure-descheduler")).diff

        assert await eventually(is_planned_anew)
        rig.profile = EXAMPLE
        await rig.ask("DryRun")
        assert await rig.reaches("ReviewRequired")
    assert not [one.uri for one in asked()[begin:] if leaves_a_trace(one)]


async def test_rights_are_sufficient_and_all_used(
    rig: AdvisorRig, start: Start, account: Account, asked: Asked
) -> None:
    await delete_all(rig.client, LEASE)  # so that it creates its own
    with start(*FREQUENT_RENEWALS) as process:
        for profile in PROFILES:
            rig.profile = profile.name
            await rig.ask("Apply")
            assert await rig.reaches("Completed", within=30)
            await rig.ask("Rollback")
            assert await rig.reaches("ReviewRequired", within=30)
            await rig.annotate(approved_plan=(await rig.status()).plan_hash)
            assert await rig.reaches("Completed", within=30)
        assert [one for one in process.log() if one["level"] == "error"] == []
    assert account.denied(asked()) == []
    assert account.unused(asked()) == []
    rules = msgspec.json.encode([one.verbs for one in account.access.all_grants])
    assert b"update" not in rules
    assert not [one for one in account.access.all_grants if one.kind.name == "Secret"]


@pytest.mark.parametrize("point", ["advisor.item.checked", "advisor.item.after#2"])
async def test_execution_survives_kill_without_repeats(rig: AdvisorRig, start: Start, asked: Asked, point: str) -> None:
    await runs_through_a_kill(rig, start, asked, point)


async def test_second_replica_continues_rollout(rig: AdvisorRig, start: Start, asked: Asked) -> None:
    await break_node(rig.client, "worker-2")
    await rig.ask("Apply")
    with start(*SHORT_LEASE) as first:
        assert await rig.says("enable-psi-metrics", "Updated: 2/3")
        with start(*SHORT_LEASE) as second:
            assert await eventually(lambda: second.said("started"), within=20)
            first.kill()
            await repair_node(rig.client, "worker-2")
            assert await rig.reaches("Completed", within=30)
            assert second.said("item changed", item="configure-descheduler")
    assert [written(asked(), ref.key.name) for ref in (PSI, DESCHEDULER)] == [1, 1]
