from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from tests.audit import AuditLog
from tests.controllers.autopilot.everything import SHAPE, ask_for_everything, expected
from tests.controllers.autopilot.rig import AutopilotRig, at_work
from tests.eventually import eventually
from virt_steward.controllers.autopilot.asset_report import AssetReport
from virt_steward.insight.assets.survey import render_online
from virt_steward.kube.client import Reader
from virt_steward.kube.errors import Refused
from virt_steward.objects.paths import Pointer, leaves
from virt_steward_demo.local.controlplane import ControlPlane
from virt_steward_demo.simulation.platform import PlatformShape

MANAGED_BY = "platform.kubevirt.io/managed-by"
NOT_USED_HERE = {
    **dict.fromkeys(("create leases", "get leases", "patch leases"), "one process elects nobody"),
    **dict.fromkeys(
        ("delete kubeletconfigs", "delete nodehealthchecks", "delete podmonitors", "delete uiplugins"),
        "nothing obsolete is there",
    ),
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

ONLY_MARKED = {
    **dict.fromkeys(("hco-golden-config", "metallb-operator"), "it wants nothing of the spec"),
    **dict.fromkeys(
        ("kubevirt-metrics-exporter-namespace", "kubevirt-metrics-exporter-account", "logging-collector"),
        "it is only to be there",
    ),
    "troubleshooting-panel-ui-plugin": "the one field of its spec may have no other value",
}
"""Assets of whose objects nothing but labels and annotations can drift."""
NOT_TO_DRIFT = ("apiVersion", "kind", "metadata")
COUNTED_BY_THE_SERVER = ("deprecated.daemonset.template.generation",)


@pytest.fixture
def shape() -> PlatformShape:
    return SHAPE


@pytest.fixture
async def complete(rig: AutopilotRig, control_plane: ControlPlane, tmp_path: Path) -> AsyncIterator[AutopilotRig]:
    """Every asset is there."""
    await ask_for_everything(rig)
    async with at_work(rig, control_plane, tmp_path):
        await eventually(lambda: _has_all(rig), within=60)
        assert [name for name in expected(rig.catalog) if not await rig.is_there(name)] == []
        yield rig


async def _has_all(rig: AutopilotRig) -> bool:
    for name in expected(rig.catalog):
        if not await rig.is_there(name):
            return False
    return True


async def test_full_catalog_applies_with_exactly_its_rights(complete: AutopilotRig, audit_log: AuditLog) -> None:
    for reason in ("ApplyFailed", "RenderFailed", "DriftDetected", "CRDMissing"):
        assert await complete.events(reason) == []
    assert await drifted_and_set_right(complete) == []
    requests = list(audit_log.since(complete.begin))
    assert complete.account.denied(requests) == []
    assert set(complete.account.unused(requests)) == NOT_USED_HERE.keys()


async def drifted_and_set_right(rig: AutopilotRig) -> list[str]:
    """Change the object of every asset behind the autopilot's back; gives those that stay so."""
    # A rollout that the drift itself starts would do, too, but on the simulated platform it may be over too soon.
    await rig.activate(rollout="immediate")
    reader = Reader(rig.client.connection, rig.client.discovery)
    found = await render_online(reader, rig.catalog, rig.options, datetime.now(UTC))
    before = {line.asset.name: await rig.live(line.asset.name) for line in found.reports if line.object}
    assert sorted(before) == sorted(expected(rig.catalog))
    drifted = {line.asset.name: await _drifts(rig, line) for line in found.reports if line.object}
    assert {name for name, path in drifted.items() if path.startswith("/metadata")} == ONLY_MARKED.keys()
    left = dict(before)

    async def all_right() -> bool:
        for name in list(left):
            now = await rig.live(name)
            if _content(now) == _content(before[name]):
                del left[name]
        return not left

    await eventually(all_right, within=60)
    return sorted(f"{drifted[name]} of {name}" for name in left)


async def _drifts(rig: AutopilotRig, line: AssetReport) -> str:
    """Change the first value of the asset that the server lets anybody change; gives its path."""
    assert line.object
    live = await rig.live(line.asset.name)
    for path, value in sorted(leaves(line.object), key=_reluctance):
        for other in _others(value) if path.tokens[0] not in NOT_TO_DRIFT else ():
            drift = {"op": "replace", "path": str(path), "value": other}
            try:
                changed = await rig.client.json_patch(rig.ref(line.asset.name), [drift], manager="editor")
            except Refused:
                continue
            if _content(changed) != _content(live):  # the server may have put the same value back, as its default
                return str(path)
    await rig.edit(line.asset.name, {"metadata": {"labels": {MANAGED_BY: "somebody-else"}}})
    return "/metadata/labels"


def _reluctance(leaf: tuple[Pointer, Any]) -> tuple[bool, bool]:
    """Elements of lists come last, and of these the names: under another one, it may be another element."""
    tokens = leaf[0].tokens
    return any(token.isdigit() for token in tokens), tokens[-1] in ("name", "port")


def _others(value: Any) -> tuple[Any, ...]:
    match value:
        case bool():
            return (not value,)
        case int():
            return (value + 1,)
        case str():
            return ("", f"{value}-drifted", "false")
    return ()


def _content(obj: dict[str, Any] | None) -> dict[str, Any]:
    assert obj
    metadata = {name: obj["metadata"].get(name) for name in ("labels", "uid")}
    annotations = obj["metadata"].get("annotations") or {}
    metadata["annotations"] = {name: value for name, value in annotations.items() if name not in COUNTED_BY_THE_SERVER}
    return {name: value for name, value in obj.items() if name not in ("metadata", "status")} | {"metadata": metadata}
