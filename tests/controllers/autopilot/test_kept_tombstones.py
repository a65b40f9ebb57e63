"""What is obsolete stays if somebody wishes it to, and is deleted but once if it takes its time to go."""

from functools import partial
from typing import Any

import pytest

from tests.audit import AuditLog
from tests.controllers.autopilot.rig import AutopilotRig
from tests.controllers.autopilot.test_tombstones import OLD, OURS, a_map, account, catalog, is_gone
from tests.eventually import eventually
from virt_steward.objects.identity import ref_of

__all__ = ["account", "catalog"]

UNMANAGED = {"platform.kubevirt.io/mode": "unmanaged"}
EXCLUDES_OLD = "[{kind: ConfigMap, name: old}]"


@pytest.mark.parametrize(
    ("annotations", "excluded"),
    [
        pytest.param(UNMANAGED, None, id="is unmanaged"),
        pytest.param({}, EXCLUDES_OLD, id="is excluded"),
    ],
)
async def test_tombstone_is_kept_by_override(
    running_rig: AutopilotRig, annotations: dict[str, str], excluded: str | None
) -> None:
    old: dict[str, Any] = a_map("old", OURS)
    old["metadata"]["annotations"] = annotations
    await running_rig.client.apply(old, manager="admin", force=True)
    await running_rig.activate("metrics-service", disabled_resources=excluded)
    assert await eventually(lambda: running_rig.has_event("TombstoneSkipped"), within=30)
    assert await eventually(lambda: running_rig.is_there("metrics-service"), within=30)
    assert not await is_gone(running_rig, OLD)
    assert await running_rig.events("ExclusionMatchesNothing") == []
    await running_rig.client.apply(a_map("old", OURS), manager="admin", force=True)
    await running_rig.activate("metrics-service", disabled_resources=None)
    assert await eventually(partial(is_gone, running_rig, OLD), within=30)


async def test_tombstone_does_not_delete_a_terminating_object(running_rig: AutopilotRig, audit_log: AuditLog) -> None:
    old: dict[str, Any] = a_map("old", OURS)
    old["metadata"]["finalizers"] = ["example.org/later"]
    await running_rig.client.apply(old, manager="admin", force=True)
    mark = audit_log.mark()
    await running_rig.activate("metrics-service")
    assert await eventually(lambda: running_rig.has_event("TombstoneDeleted"), within=30)
    for number in range(3):
        await running_rig.activate(f"metrics-service,no-such-{number}")
        assert await eventually(partial(warned_of, running_rig, number), within=30)
    asked = [one for one in audit_log.since(mark) if one.user == running_rig.account.user]
    assert [one.name for one in asked if one.verb == "delete"] == ["old"]
    await running_rig.client.merge_patch(ref_of(OLD), {"metadata": {"finalizers": None}})
    assert await eventually(partial(is_gone, running_rig, OLD), within=30)


async def warned_of(rig: AutopilotRig, number: int) -> bool:
    return any(f"no-such-{number}" in one["note"] for one in await rig.events("UnknownAsset"))
