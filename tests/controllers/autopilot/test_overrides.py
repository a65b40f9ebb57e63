"""What people write on objects and on the HyperConverged, on live objects: it holds, and nothing else changes."""

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.audit import AuditLog
from tests.controllers.autopilot.pair import ASSET, BOTH, OTHER, activate_two, becomes, is_corrected, substance
from tests.controllers.autopilot.rig import AutopilotRig, spec_of
from tests.eventually import eventually
from virt_steward.objects.wallclock import rfc3339


@pytest.fixture
async def activated(running_rig: AutopilotRig) -> AutopilotRig:
    """Two assets are there, and as they should be."""
    await activate_two(running_rig)
    return running_rig


async def test_paused_object_is_not_written(activated: AutopilotRig) -> None:
    before = await substance(activated)
    await activated.annotate(ASSET, reconcile_paused="true")
    await is_corrected(activated)
    assert await substance(activated) == before
    await activated.edit(ASSET, {"spec": {"mode": "Predictive", "logLevel": "Debug"}})
    assert await eventually(lambda: activated.has_event("DriftDetected", ASSET), within=30), "it is still looked at"
    await is_corrected(activated)
    paused = await substance(activated)
    assert paused["spec"] == before["spec"] | {"mode": "Predictive", "logLevel": "Debug"}
    assert await activated.events("ThrashingDetected") == [], "nobody fought: a person paused it"
    await activated.annotate(ASSET, reconcile_paused=None)
    assert await becomes(activated, mode="Automatic")
    assert await substance(activated) == before | {"spec": before["spec"] | {"logLevel": "Debug"}}


async def test_unmanaged_object_is_not_written(activated: AutopilotRig, audit_log: AuditLog) -> None:
    before = await substance(activated)
    await activated.annotate(ASSET, mode="unmanaged")
    assert await eventually(lambda: activated.has_event("UnmanagedMode", ASSET), within=30)
    assert await substance(activated) == before
    mark = audit_log.mark()
    await activated.edit(ASSET, {"spec": {"mode": "Predictive", "profiles": ["CompactAndScale"]}})
    await activated.activate(BOTH, enable_metallb="true")  # a pass over everything
    await is_corrected(activated)
    changed = before["spec"] | {"mode": "Predictive", "profiles": ["CompactAndScale"]}
    assert (await substance(activated))["spec"] == changed
    asked = [one for one in audit_log.since(mark) if one.user == activated.account.user and one.name == "cluster"]
    assert [one for one in asked if one.verb != "watch"] == [], "nobody even looks"
    await activated.annotate(ASSET, mode=None)
    assert await becomes(activated, **before["spec"])
    assert await substance(activated) == before


async def test_unknown_mode_is_reported(activated: AutopilotRig) -> None:
    await activated.annotate(ASSET, mode="unmanged")
    assert await eventually(lambda: activated.has_event("InvalidMode", ASSET), within=30)
    await activated.edit(ASSET, {"spec": {"mode": "Predictive"}})
    assert await becomes(activated, mode="Automatic")


async def test_ignored_field_keeps_its_edit(activated: AutopilotRig) -> None:
    before = await substance(activated)
    await activated.annotate(ASSET, ignore_fields="/spec/deschedulingIntervalSeconds, nonsense, /spec/profiles/0")
    assert await eventually(lambda: activated.has_event("InvalidIgnoreFields", ASSET), within=30)
    [event] = await activated.events("InvalidIgnoreFields", ASSET)
    assert "nonsense" in event["note"]
    await is_corrected(activated)
    assert (await substance(activated))["spec"] == before["spec"], "a mask alone changes nothing"
    for seconds, profile in ((7200, "CompactAndScale"), (3600, "LongLifecycle")):
        edit = {"deschedulingIntervalSeconds": seconds, "profiles": [profile], "mode": "Predictive"}
        await activated.edit(ASSET, {"spec": edit}, manager=f"editor-{seconds}")
        assert await becomes(activated, mode="Automatic")
        assert (await substance(activated))["spec"] == before["spec"] | edit | {"mode": "Automatic"}
    await activated.annotate(ASSET, ignore_fields=None)
    assert await becomes(activated, **before["spec"])


A_BOMB = json.dumps(
    [
        {"op": "add", "path": "/spec/large", "value": {f"key{number}": "value" for number in range(1000)}},
        *[{"op": "copy", "from": "/spec/large", "path": f"/spec/copy{number}"} for number in range(499)],
    ]
)


async def test_patch_applies_unless_invalid(activated: AutopilotRig) -> None:
    before = await substance(activated)
    await activated.annotate(ASSET, patch=patch("replace", "/spec/deschedulingIntervalSeconds", 300))
    assert await becomes(activated, deschedulingIntervalSeconds=300)
    assert (await substance(activated))["spec"] == before["spec"] | {"deschedulingIntervalSeconds": 300}
    await activated.edit(ASSET, {"spec": {"deschedulingIntervalSeconds": 7200}})
    assert await becomes(activated, deschedulingIntervalSeconds=300), "what is patched is kept, too"
    for number, bad in enumerate((patch("add", "/metadata/finalizers", ["example.org/x"]), "[{", A_BOMB), start=1):
        await activated.annotate(ASSET, patch=bad)
        assert await eventually(lambda bad=number: _count(activated, "InvalidPatch", bad), within=30)  # type: ignore[misc]
        assert await becomes(activated, deschedulingIntervalSeconds=60)
    notes = [event["note"] for event in await activated.events("InvalidPatch", ASSET)]
    assert [note for note in notes if note.endswith("use fewer or smaller ones")]
    assert await activated.events("ApplyFailed") == []
    assert await activated.events("DriftDetected", ASSET) != []


async def test_patch_removes_a_field_and_never_a_whole_section(activated: AutopilotRig) -> None:
    before = await substance(activated)
    await activated.annotate(ASSET, patch=json.dumps([{"op": "remove", "path": "/spec/evictionLimits"}]))

    async def is_removed() -> bool:
        return "evictionLimits" not in (await substance(activated))["spec"]

    assert await eventually(is_removed, within=30)
    await activated.annotate(ASSET, patch=None)
    assert await becomes(activated, **before["spec"])
    await activated.annotate(ASSET, patch=json.dumps([{"op": "remove", "path": "/spec"}]))
    assert await eventually(lambda: activated.has_event("ApplyFailed", ASSET), within=30)
    await is_corrected(activated)
    assert (await substance(activated))["spec"] == before["spec"]


def patch(op: str, path: str, value: Any) -> str:
    return json.dumps([{"op": op, "path": path, "value": value}])


async def _count(rig: AutopilotRig, reason: str, number: int) -> bool:
    return len(await rig.events(reason, ASSET)) == number


async def test_excluded_object_is_not_created(running_rig: AutopilotRig, audit_log: AuditLog) -> None:
    rules = "- {kind: KubeDescheduler, name: 'clus*'}\n- {kind: Nothing, name: x}"
    await running_rig.activate(BOTH, disabled_resources=rules)
    assert await eventually(lambda: running_rig.is_there(OTHER), within=30)
    assert await eventually(lambda: running_rig.has_event("ExclusionMatchesNothing"), within=30)
    [event] = await running_rig.events("ExclusionMatchesNothing")
    assert "rule 2" in event["note"]
    await is_corrected(running_rig)
    assert not await running_rig.is_there(ASSET)
    await running_rig.activate(BOTH, disabled_resources="- {kind: KubeDescheduler}")
    assert await eventually(lambda: running_rig.has_event("InvalidExclusions"), within=30)
    mark = audit_log.mark()
    await running_rig.edit(OTHER, {"metadata": {"labels": {"app": "other"}}})
    await running_rig.activate(f"{BOTH},no-such", disabled_resources="- {kind: KubeDescheduler}")
    assert await eventually(lambda: running_rig.has_event("UnknownAsset"), within=30), "by then, the edit was seen"
    writes = [one for one in audit_log.since(mark) if one.user == running_rig.account.user and one.is_write]
    assert [one.uri for one in writes if one.resource != "events"] == []
    await running_rig.activate(BOTH, disabled_resources=None)
    assert await eventually(lambda: running_rig.is_there(ASSET), within=30)
    assert await eventually(lambda: running_rig.has_event("DriftCorrected", OTHER), within=30)


async def test_excluded_object_is_not_changed(activated: AutopilotRig) -> None:
    before = await substance(activated)
    await activated.activate(BOTH, disabled_resources="[{kind: KubeDescheduler, name: cluster}]")
    await activated.edit(ASSET, {"spec": {"mode": "Predictive"}})
    await is_corrected(activated)
    assert (await substance(activated))["spec"] == before["spec"] | {"mode": "Predictive"}
    await activated.activate(BOTH, disabled_resources=None)
    assert await becomes(activated, **before["spec"])


async def test_override_ends_at_its_time(activated: AutopilotRig) -> None:
    until = (datetime.now(UTC) + timedelta(seconds=4)).replace(microsecond=0)
    await activated.annotate(ASSET, mode="unmanaged", override_until=rfc3339(until))
    assert await eventually(lambda: activated.has_event("OverrideEnds", ASSET), within=30)
    await activated.edit(ASSET, {"spec": {"mode": "Predictive"}})
    assert await becomes(activated, mode="Automatic"), "nobody had to do anything"
    assert datetime.now(UTC) >= until
    assert await eventually(lambda: activated.has_event("OverrideLifted", ASSET), within=30)
    await activated.annotate(ASSET, override_until="tomorrow")
    assert await eventually(lambda: activated.has_event("InvalidOverrideUntil", ASSET), within=30)
    await activated.edit(ASSET, {"spec": {"mode": "Predictive"}})
    await is_corrected(activated)
    assert spec_of(await activated.live(ASSET))["mode"] == "Predictive", "what ends at no known time is in force"


async def test_autopilot_owns_field_again_after_override(
    activated: AutopilotRig,
) -> None:
    before = await substance(activated)
    until = (datetime.now(UTC) + timedelta(seconds=6)).replace(microsecond=0)
    await activated.annotate(ASSET, drift="report", override_until=rfc3339(until))
    await activated.edit(ASSET, {"spec": {"mode": "Predictive"}})
    assert await eventually(lambda: activated.has_event("DriftDetected", ASSET), within=30)
    await activated.edit(ASSET, {"spec": {"mode": "Automatic"}})
    assert await eventually(lambda: activated.has_event("AssetInOrder", ASSET), within=30)

    async def is_as_before() -> bool:
        return await substance(activated) == before

    assert await eventually(is_as_before, within=30)
