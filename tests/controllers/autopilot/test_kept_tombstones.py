"""What is obsolete stays if somebody wishes it to, and is deleted but once if it takes its time to go."""

from functools import partial
from typing import Any

import pytest

from tests.audit import AuditLog
from tests.controllers.autopilot.cockpit import Cockpit
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
    flying: Cockpit, annotations: dict[str, str], excluded: str | None
) -> None:
    old: dict[str, Any] = a_map("old", OURS)
    old["metadata"]["annotations"] = annotations
    await flying.client.apply(old, manager="admin", force=True)
    await flying.engage("metrics-service", disabled_resources=excluded)
    assert await eventually(lambda: flying.told("TombstoneSkipped"), within=30)
    assert await eventually(lambda: flying.is_there("metrics-service"), within=30)
    assert not await is_gone(flying, OLD)
    assert await flying.events("ExclusionMatchesNothing") == []
    await flying.client.apply(a_map("old", OURS), manager="admin", force=True)
    await flying.engage("metrics-service", disabled_resources=None)
    assert await eventually(partial(is_gone, flying, OLD), within=30)


async def test_tombstone_does_not_delete_a_terminating_object(flying: Cockpit, audit_log: AuditLog) -> None:
    old: dict[str, Any] = a_map("old", OURS)
    old["metadata"]["finalizers"] = ["example.org/later"]
    await flying.client.apply(old, manager="admin", force=True)
    mark = audit_log.mark()
    await flying.engage("metrics-service")
    assert await eventually(lambda: flying.told("TombstoneDeleted"), within=30)
    for number in range(3):
        await flying.engage(f"metrics-service,no-such-{number}")
        assert await eventually(partial(warned_of, flying, number), within=30)
    asked = [one for one in audit_log.since(mark) if one.user == flying.account.user]
    assert [one.name for one in asked if one.verb == "delete"] == ["old"]
    await flying.client.merge_patch(ref_of(OLD), {"metadata": {"finalizers": None}})
    assert await eventually(partial(is_gone, flying, OLD), within=30)


async def warned_of(cockpit: Cockpit, number: int) -> bool:
    return any(f"no-such-{number}" in one["note"] for one in await cockpit.events("UnknownAsset"))
