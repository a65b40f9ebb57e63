from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from tests.audit import AuditLog
from tests.controllers.autopilot.cockpit import Cockpit, at_work
from tests.controllers.autopilot.everything import SHAPE, ask_for_everything, expected
from tests.eventually import soon
from virt_steward.local.controlplane import ControlPlane
from virt_steward.local.simulation.platform import Shape

MANAGED_BY = "platform.kubevirt.io/managed-by"
NOT_USED_HERE = {
    **dict.fromkeys(("create leases", "get leases", "patch leases"), "one process elects nobody"),
    **dict.fromkeys(("delete nodehealthchecks", "delete uiplugins"), "nothing obsolete is there"),
    **dict.fromkeys(
        (
            "bind clusterroles",
            "get persistentvolumeclaims",
            "get pods",
            "get virtualmachineinstances",
            "use securitycontextconstraints",
            "watch persistentvolumeclaims",
            "watch pods",
            "watch virtualmachineinstances",
        ),
        "it is handed on by roles and bindings",
    ),
}


@pytest.fixture
def shape() -> Shape:
    return SHAPE


@pytest.fixture
async def complete(cockpit: Cockpit, control_plane: ControlPlane, tmp_path: Path) -> AsyncIterator[Cockpit]:
    """Every asset is there."""
    await ask_for_everything(cockpit)
    async with at_work(cockpit, control_plane, tmp_path):
        await soon(lambda: _has_all(cockpit), within=60)
        assert [name for name in expected(cockpit.catalog) if not await cockpit.is_there(name)] == []
        yield cockpit


async def _has_all(cockpit: Cockpit) -> bool:
    for name in expected(cockpit.catalog):
        if not await cockpit.is_there(name):
            return False
    return True


async def test_with_everything_asked_for_every_asset_is_there_and_every_right_is_used(
    complete: Cockpit, audit_log: AuditLog
) -> None:
    for reason in ("ApplyFailed", "RenderFailed", "DriftDetected", "CRDMissing"):
        assert await complete.events(reason) == []
    assert await drifted_and_set_right(complete) == []
    requests = list(audit_log.since(complete.begin))
    assert complete.account.denied(requests) == []
    assert set(complete.account.unused(requests)) == NOT_USED_HERE.keys()


async def drifted_and_set_right(cockpit: Cockpit) -> list[str]:
    """Change one object of every asset behind the autopilot's back; gives those that stay so."""
    before = {name: await cockpit.live(name) for name in expected(cockpit.catalog)}
    for name in before:
        await cockpit.edit(name, {"metadata": {"labels": {MANAGED_BY: "somebody-else"}}})
    left = dict(before)

    async def all_right() -> bool:
        for name in list(left):
            now = await cockpit.live(name)
            if _content(now) == _content(before[name]):
                del left[name]
        return not left

    await soon(all_right, within=60)
    return sorted(left)


def _content(obj: dict[str, Any] | None) -> dict[str, Any]:
    assert obj
    metadata = {name: obj["metadata"].get(name) for name in ("labels", "annotations", "uid")}
    return {name: value for name, value in obj.items() if name not in ("metadata", "status")} | {"metadata": metadata}
