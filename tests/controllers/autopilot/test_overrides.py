"""What people write on objects and on the HyperConverged, on live objects: it holds, and nothing else changes."""

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.audit import AuditLog
from tests.controllers.autopilot.cockpit import Cockpit, spec_of
from tests.controllers.autopilot.pair import ASSET, BOTH, OTHER, becomes, engage_two, is_corrected, substance
from tests.eventually import eventually
from virt_steward.objects.wallclock import rfc3339


@pytest.fixture
async def engaged(flying: Cockpit) -> Cockpit:
    """Two assets are there, and as they should be."""
    await engage_two(flying)
    return flying


async def test_paused_object_is_not_written(engaged: Cockpit) -> None:
    before = await substance(engaged)
    await engaged.annotate(ASSET, reconcile_paused="true")
    await is_corrected(engaged)
    assert await substance(engaged) == before
    await engaged.edit(ASSET, {"spec": {"mode": "Predictive", "logLevel": "Debug"}})
    assert await eventually(lambda: engaged.told("DriftDetected", ASSET), within=30), "it is still looked at"
    await is_corrected(engaged)
    paused = await substance(engaged)
    assert paused["spec"] == before["spec"] | {"mode": "Predictive", "logLevel": "Debug"}
    assert await engaged.events("ThrashingDetected") == [], "nobody fought: a person paused it"
    await engaged.annotate(ASSET, reconcile_paused=None)
    assert await becomes(engaged, mode="Automatic")
    assert await substance(engaged) == before | {"spec": before["spec"] | {"logLevel": "Debug"}}


async def test_unmanaged_object_is_not_written(engaged: Cockpit, audit_log: AuditLog) -> None:
    before = await substance(engaged)
    await engaged.annotate(ASSET, mode="unmanaged")
    assert await eventually(lambda: engaged.told("UnmanagedMode", ASSET), within=30)
    assert await substance(engaged) == before
    mark = audit_log.mark()
    await engaged.edit(ASSET, {"spec": {"mode": "Predictive", "profiles": ["CompactAndScale"]}})
    await engaged.engage(BOTH, enable_metallb="true")  # a pass over everything
    await is_corrected(engaged)
    changed = before["spec"] | {"mode": "Predictive", "profiles": ["CompactAndScale"]}
    assert (await substance(engaged))["spec"] == changed
    asked = [one for one in audit_log.since(mark) if one.user == engaged.account.user and one.name == "cluster"]
    assert [one for one in asked if one.verb != "watch"] == [], "nobody even looks"
    await engaged.annotate(ASSET, mode=None)
    assert await becomes(engaged, **before["spec"])
    assert await substance(engaged) == before


async def test_unknown_mode_is_reported(engaged: Cockpit) -> None:
    await engaged.annotate(ASSET, mode="unmanged")
    assert await eventually(lambda: engaged.told("InvalidMode", ASSET), within=30)
    await engaged.edit(ASSET, {"spec": {"mode": "Predictive"}})
    assert await becomes(engaged, mode="Automatic")


async def test_ignored_field_keeps_its_edit(engaged: Cockpit) -> None:
    before = await substance(engaged)
    await engaged.annotate(ASSET, ignore_fields="/spec/deschedulingIntervalSeconds, nonsense, /spec/profiles/0")
    assert await eventually(lambda: engaged.told("InvalidIgnoreFields", ASSET), within=30)
    [event] = await engaged.events("InvalidIgnoreFields", ASSET)
    assert "nonsense" in event["note"]
    await is_corrected(engaged)
    assert (await substance(engaged))["spec"] == before["spec"], "a mask alone changes nothing"
    for seconds, profile in ((7200, "CompactAndScale"), (3600, "LongLifecycle")):
        edit = {"deschedulingIntervalSeconds": seconds, "profiles": [profile], "mode": "Predictive"}
        await engaged.edit(ASSET, {"spec": edit}, manager=f"editor-{seconds}")
        assert await becomes(engaged, mode="Automatic")
        assert (await substance(engaged))["spec"] == before["spec"] | edit | {"mode": "Automatic"}
    await engaged.annotate(ASSET, ignore_fields=None)
    assert await becomes(engaged, **before["spec"])


A_BOMB = json.dumps(
    [
        {"op": "add", "path": "/spec/large", "value": {f"key{number}": "value" for number in range(1000)}},
        *[{"op": "copy", "from": "/spec/large", "path": f"/spec/copy{number}"} for number in range(499)],
    ]
)


async def test_patch_applies_unless_invalid(engaged: Cockpit) -> None:
    before = await substance(engaged)
    await engaged.annotate(ASSET, patch=patch("replace", "/spec/deschedulingIntervalSeconds", 300))
    assert await becomes(engaged, deschedulingIntervalSeconds=300)
    assert (await substance(engaged))["spec"] == before["spec"] | {"deschedulingIntervalSeconds": 300}
    await engaged.edit(ASSET, {"spec": {"deschedulingIntervalSeconds": 7200}})
    assert await becomes(engaged, deschedulingIntervalSeconds=300), "what is patched is kept, too"
    for number, bad in enumerate((patch("add", "/metadata/finalizers", ["example.org/x"]), "[{", A_BOMB), start=1):
        await engaged.annotate(ASSET, patch=bad)
        assert await eventually(lambda bad=number: _count(engaged, "InvalidPatch", bad), within=30)  # type: ignore[misc]
        assert await becomes(engaged, deschedulingIntervalSeconds=60)
    notes = [event["note"] for event in await engaged.events("InvalidPatch", ASSET)]
    assert [note for note in notes if note.endswith("use fewer or smaller ones")]
    assert await engaged.events("ApplyFailed") == []
    assert await engaged.events("DriftDetected", ASSET) != []


async def test_patch_removes_a_field_and_never_a_whole_section(engaged: Cockpit) -> None:
    before = await substance(engaged)
    await engaged.annotate(ASSET, patch=json.dumps([{"op": "remove", "path": "/spec/evictionLimits"}]))

    async def is_removed() -> bool:
        return "evictionLimits" not in (await substance(engaged))["spec"]

    assert await eventually(is_removed, within=30)
    await engaged.annotate(ASSET, patch=None)
    assert await becomes(engaged, **before["spec"])
    await engaged.annotate(ASSET, patch=json.dumps([{"op": "remove", "path": "/spec"}]))
    assert await eventually(lambda: engaged.told("ApplyFailed", ASSET), within=30)
    await is_corrected(engaged)
    assert (await substance(engaged))["spec"] == before["spec"]


def patch(op: str, path: str, value: Any) -> str:
    return json.dumps([{"op": op, "path": path, "value": value}])


async def _count(cockpit: Cockpit, reason: str, number: int) -> bool:
    return len(await cockpit.events(reason, ASSET)) == number


async def test_excluded_object_is_not_created(flying: Cockpit, audit_log: AuditLog) -> None:
    rules = "- {kind: KubeDescheduler, name: 'clus*'}\n- {kind: Nothing, name: x}"
    await flying.engage(BOTH, disabled_resources=rules)
    assert await eventually(lambda: flying.is_there(OTHER), within=30)
    assert await eventually(lambda: flying.told("ExclusionMatchesNothing"), within=30)
    [event] = await flying.events("ExclusionMatchesNothing")
    assert "rule 2" in event["note"]
    await is_corrected(flying)
    assert not await flying.is_there(ASSET)
    await flying.engage(BOTH, disabled_resources="- {kind: KubeDescheduler}")
    assert await eventually(lambda: flying.told("InvalidExclusions"), within=30)
    mark = audit_log.mark()
    await flying.edit(OTHER, {"metadata": {"labels": {"app": "other"}}})
    await flying.engage(f"{BOTH},no-such", disabled_resources="- {kind: KubeDescheduler}")
    assert await eventually(lambda: flying.told("UnknownAsset"), within=30), "by then, the edit was seen"
    writes = [one for one in audit_log.since(mark) if one.user == flying.account.user and one.is_write]
    assert [one.uri for one in writes if one.resource != "events"] == []
    await flying.engage(BOTH, disabled_resources=None)
    assert await eventually(lambda: flying.is_there(ASSET), within=30)
    assert await eventually(lambda: flying.told("DriftCorrected", OTHER), within=30)


async def test_excluded_object_is_not_changed(engaged: Cockpit) -> None:
    before = await substance(engaged)
    await engaged.engage(BOTH, disabled_resources="[{kind: KubeDescheduler, name: cluster}]")
    await engaged.edit(ASSET, {"spec": {"mode": "Predictive"}})
    await is_corrected(engaged)
    assert (await substance(engaged))["spec"] == before["spec"] | {"mode": "Predictive"}
    await engaged.engage(BOTH, disabled_resources=None)
    assert await becomes(engaged, **before["spec"])


async def test_override_ends_at_its_time(engaged: Cockpit) -> None:
    until = (datetime.now(UTC) + timedelta(seconds=4)).replace(microsecond=0)
    await engaged.annotate(ASSET, mode="unmanaged", override_until=rfc3339(until))
    assert await eventually(lambda: engaged.told("OverrideEnds", ASSET), within=30)
    await engaged.edit(ASSET, {"spec": {"mode": "Predictive"}})
    assert await becomes(engaged, mode="Automatic"), "nobody had to do anything"
    assert datetime.now(UTC) >= until
    assert await eventually(lambda: engaged.told("OverrideLifted", ASSET), within=30)
    await engaged.annotate(ASSET, override_until="tomorrow")
    assert await eventually(lambda: engaged.told("InvalidOverrideUntil", ASSET), within=30)
    await engaged.edit(ASSET, {"spec": {"mode": "Predictive"}})
    await is_corrected(engaged)
    assert spec_of(await engaged.live(ASSET))["mode"] == "Predictive", "what ends at no known time is in force"


async def test_autopilot_owns_field_again_after_override(
    engaged: Cockpit,
) -> None:
    before = await substance(engaged)
    until = (datetime.now(UTC) + timedelta(seconds=6)).replace(microsecond=0)
    await engaged.annotate(ASSET, drift="report", override_until=rfc3339(until))
    await engaged.edit(ASSET, {"spec": {"mode": "Predictive"}})
    assert await eventually(lambda: engaged.told("DriftDetected", ASSET), within=30)
    await engaged.edit(ASSET, {"spec": {"mode": "Automatic"}})
    assert await eventually(lambda: engaged.told("AssetInOrder", ASSET), within=30)

    async def is_as_before() -> bool:
        return await substance(engaged) == before

    assert await eventually(is_as_before, within=30)
