"""Edit wars on live objects, against somebody who never gives up."""

import time
from functools import partial
from pathlib import Path

from tests.audit import AuditLog
from tests.controllers.autopilot.cockpit import Cockpit, at_work, explained, spec_of
from tests.controllers.autopilot.opponent import an_opponent, another_instance, is_paused
from tests.controllers.autopilot.pair import ASSET, BOTH, becomes, engage_two, is_corrected, substance
from tests.eventually import eventually
from virt_steward.controllers.autopilot.edit_wars import OTHER_INSTANCE, OWN_ROUNDS
from virt_steward_demo.local.controlplane import ControlPlane


async def test_edit_war_pause_survives_restart(cockpit: Cockpit, control_plane: ControlPlane, tmp_path: Path) -> None:
    async with at_work(cockpit, control_plane, tmp_path):
        await engage_two(cockpit)
        before = await substance(cockpit)
        async with an_opponent(cockpit, {"mode": "Predictive"}) as opponent:
            assert await eventually(partial(is_paused, cockpit), within=60)
            assert await eventually(partial(cockpit.told, "ThrashingDetected", ASSET), within=30)
            assert 10 <= opponent.edits <= 20
            await is_corrected(cockpit)
        paused = await substance(cockpit)
        assert paused["spec"] == before["spec"] | {"mode": "Predictive"}, "a pause changes nothing else"
    async with at_work(cockpit, control_plane, tmp_path):
        await is_corrected(cockpit)
        assert await substance(cockpit) == paused
        assert len(await cockpit.events("ThrashingDetected")) == 1
        told = int(time.time())
        assert await eventually(lambda: time.time() >= told + 1), "wars are told apart by their second"
        await cockpit.annotate(ASSET, reconcile_paused=None)
        assert await becomes(cockpit, **before["spec"])
        assert await substance(cockpit) == before
        async with an_opponent(cockpit, {"mode": "Predictive"}):
            assert await eventually(partial(is_paused, cockpit), within=60)
        assert await eventually(partial(_has_told, cockpit, 2), within=30), "the next war is told, too"


async def _has_told(cockpit: Cockpit, wars: int) -> bool:
    return len(await cockpit.events("ThrashingDetected")) == wars


async def test_edit_war_over_several_fields_is_paused(flying: Cockpit) -> None:
    await engage_two(flying)
    turns = ({"mode": "Predictive"}, {"deschedulingIntervalSeconds": 7200}, {"managementState": "Unmanaged"})
    async with an_opponent(flying, *turns):
        assert await eventually(partial(is_paused, flying), within=60)
        assert await eventually(partial(flying.told, "Throttled", ASSET), within=30)
        await is_corrected(flying)
    assert await eventually(partial(_has_told, flying, 1), within=30)
    found = await explained(flying, ASSET)
    assert found.state == "Paused"
    [reason] = [check.reason for check in found.checks if check.title == "Writes enabled"]
    assert "another client kept changing it" in reason
    assert {"Throttled", "ThrashingDetected"} <= {line.split()[1].rstrip(":") for line in found.events}


async def test_war_under_our_own_manager_is_paused_after_three_rounds(flying: Cockpit, audit_log: AuditLog) -> None:
    await engage_two(flying)
    live = await flying.live(ASSET)
    assert live
    metadata = {part: live["metadata"][part] for part in ("name", "namespace", "labels")}
    theirs = {**live, "metadata": metadata, "spec": live["spec"] | {"mode": "Predictive"}}
    mark = audit_log.mark()
    async with another_instance(flying, theirs):
        assert await eventually(partial(is_paused, flying), within=60)
        await is_corrected(flying)
    name = flying.ref(ASSET).key.name
    answered = [one for one in audit_log.since(mark) if one.name == name and one.code == 200 and one.verb == "patch"]
    ours = [one for one in answered if one.user == flying.account.user and "dryRun" not in one.uri]
    corrections = [one for one in ours if "fieldManager=virt-platform-autopilot" in one.uri]
    assert len(corrections) == OWN_ROUNDS, [one.uri for one in ours]
    assert len(ours) == OWN_ROUNDS + 1, "and the pause"
    assert await eventually(partial(_has_told, flying, 1), within=30)
    [event] = await flying.events("ThrashingDetected")
    assert "another instance writes as virt-platform-autopilot" in event["note"]
    found = await explained(flying, ASSET)
    assert (found.state, found.because.partition(";")[0]) == ("Paused", OTHER_INSTANCE)


async def test_changed_settings_are_no_edit_war(flying: Cockpit) -> None:
    await engage_two(flying)
    for number in range(20, 23):
        settings = {"liveMigrationConfig": {"parallelMigrationsPerCluster": number}}
        await flying.client.merge_patch(
            flying.ref("hco-golden-config"), {"spec": {"virtualization": settings}}, manager="admin"
        )
        assert await eventually(partial(_limits, flying, number), within=30)
    assert not await is_paused(flying)
    for reason in ("DriftDetected", "ThrashingDetected"):
        assert await flying.events(reason, ASSET) == []


async def _limits(cockpit: Cockpit, total: int) -> bool:
    return bool(spec_of(await cockpit.live(ASSET))["evictionLimits"]["total"] == total)


async def test_repeated_deletion_is_throttled(flying: Cockpit) -> None:
    await engage_two(flying)
    for _ in range(9):
        await flying.client.delete(flying.ref(ASSET))
        assert await eventually(partial(flying.is_there, ASSET), within=30)
    await flying.client.delete(flying.ref(ASSET))
    assert await eventually(partial(flying.told, "Throttled", ASSET), within=30)
    await is_corrected(flying)
    assert not await flying.is_there(ASSET)
    await flying.engage(BOTH, enable_metallb="true")
    await is_corrected(flying)
    assert not await flying.is_there(ASSET)
