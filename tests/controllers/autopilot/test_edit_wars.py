"""Edit wars on live objects, against somebody who never gives up."""

import time
from functools import partial
from pathlib import Path

from tests.audit import AuditLog
from tests.controllers.autopilot.opponent import an_opponent, another_instance, is_paused
from tests.controllers.autopilot.pair import ASSET, BOTH, activate_two, becomes, is_corrected, substance
from tests.controllers.autopilot.rig import AutopilotRig, at_work, explained, spec_of
from tests.eventually import eventually
from virt_steward.controllers.autopilot.edit_wars import OTHER_INSTANCE, OWN_ROUNDS
from virt_steward_demo.local.controlplane import ControlPlane


async def test_edit_war_pause_survives_restart(rig: AutopilotRig, control_plane: ControlPlane, tmp_path: Path) -> None:
    async with at_work(rig, control_plane, tmp_path):
        await activate_two(rig)
        before = await substance(rig)
        async with an_opponent(rig, {"mode": "Predictive"}) as opponent:
            assert await eventually(partial(is_paused, rig), within=60)
            assert await eventually(partial(rig.has_event, "ThrashingDetected", ASSET), within=30)
            assert 10 <= opponent.edits <= 20
            await is_corrected(rig)
        paused = await substance(rig)
        assert paused["spec"] == before["spec"] | {"mode": "Predictive"}, "a pause changes nothing else"
    async with at_work(rig, control_plane, tmp_path):
        await is_corrected(rig)
        assert await substance(rig) == paused
        assert len(await rig.events("ThrashingDetected")) == 1
        told = int(time.time())
        assert await eventually(lambda: time.time() >= told + 1), "wars are told apart by their second"
        await rig.annotate(ASSET, reconcile_paused=None)
        assert await becomes(rig, **before["spec"])
        assert await substance(rig) == before
        async with an_opponent(rig, {"mode": "Predictive"}):
            assert await eventually(partial(is_paused, rig), within=60)
        assert await eventually(partial(_has_told, rig, 2), within=30), "the next war is told, too"


async def _has_told(rig: AutopilotRig, wars: int) -> bool:
    return len(await rig.events("ThrashingDetected")) == wars


async def test_edit_war_over_several_fields_is_paused(running_rig: AutopilotRig) -> None:
    await activate_two(running_rig)
    turns = ({"mode": "Predictive"}, {"deschedulingIntervalSeconds": 7200}, {"managementState": "Unmanaged"})
    async with an_opponent(running_rig, *turns):
        assert await eventually(partial(is_paused, running_rig), within=60)
        assert await eventually(partial(running_rig.has_event, "Throttled", ASSET), within=30)
        await is_corrected(running_rig)
    assert await eventually(partial(_has_told, running_rig, 1), within=30)
    found = await explained(running_rig, ASSET)
    assert found.state == "Paused"
    [reason] = [check.reason for check in found.checks if check.title == "Writes enabled"]
    assert "another client kept changing it" in reason
    assert {"Throttled", "ThrashingDetected"} <= {line.split()[1].rstrip(":") for line in found.events}


async def test_war_under_our_own_manager_is_paused_after_three_rounds(
    running_rig: AutopilotRig, audit_log: AuditLog
) -> None:
    await activate_two(running_rig)
    live = await running_rig.live(ASSET)
    assert live
    metadata = {part: live["metadata"][part] for part in ("name", "namespace", "labels")}
    theirs = {**live, "metadata": metadata, "spec": live["spec"] | {"mode": "Predictive"}}
    mark = audit_log.mark()
    async with another_instance(running_rig, theirs):
        assert await eventually(partial(is_paused, running_rig), within=60)
        await is_corrected(running_rig)
    name = running_rig.ref(ASSET).key.name
    answered = [one for one in audit_log.since(mark) if one.name == name and one.code == 200 and one.verb == "patch"]
    ours = [one for one in answered if one.user == running_rig.account.user and "dryRun" not in one.uri]
    corrections = [one for one in ours if "fieldManager=virt-platform-autopilot" in one.uri]
    assert len(corrections) == OWN_ROUNDS, [one.uri for one in ours]
    assert len(ours) == OWN_ROUNDS + 1, "and the pause"
    assert await eventually(partial(_has_told, running_rig, 1), within=30)
    [event] = await running_rig.events("ThrashingDetected")
    assert "another instance writes as virt-platform-autopilot" in event["note"]
    found = await explained(running_rig, ASSET)
    assert (found.state, found.because.partition(";")[0]) == ("Paused", OTHER_INSTANCE)


async def test_changed_settings_are_no_edit_war(running_rig: AutopilotRig) -> None:
    await activate_two(running_rig)
    for number in range(20, 23):
        settings = {"liveMigrationConfig": {"parallelMigrationsPerCluster": number}}
        await running_rig.client.merge_patch(
            running_rig.ref("hco-golden-config"), {"spec": {"virtualization": settings}}, manager="admin"
        )
        assert await eventually(partial(_limits, running_rig, number), within=30)
    assert not await is_paused(running_rig)
    for reason in ("DriftDetected", "ThrashingDetected"):
        assert await running_rig.events(reason, ASSET) == []


async def _limits(rig: AutopilotRig, total: int) -> bool:
    return bool(spec_of(await rig.live(ASSET))["evictionLimits"]["total"] == total)


async def test_repeated_deletion_is_throttled(running_rig: AutopilotRig) -> None:
    await activate_two(running_rig)
    for _ in range(9):
        await running_rig.client.delete(running_rig.ref(ASSET))
        assert await eventually(partial(running_rig.is_there, ASSET), within=30)
    await running_rig.client.delete(running_rig.ref(ASSET))
    assert await eventually(partial(running_rig.has_event, "Throttled", ASSET), within=30)
    await is_corrected(running_rig)
    assert not await running_rig.is_there(ASSET)
    await running_rig.activate(BOTH, enable_metallb="true")
    await is_corrected(running_rig)
    assert not await running_rig.is_there(ASSET)

    async def is_there_when_turned_off_and_on() -> bool:
        await running_rig.activate(None)
        await running_rig.activate(BOTH)
        return await running_rig.is_there(ASSET)

    assert await eventually(is_there_when_turned_off_and_on, within=60)
