"""What releases before this one made: it is deleted if it is ours, and holds up nothing if it cannot be."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import pytest

from tests.audit import AuditLog
from tests.controllers.autopilot.rig import AutopilotRig, installed_account
from tests.eventually import eventually
from tests.grants import Account
from virt_steward.catalog.load import Catalog, Tombstone, load
from virt_steward.kube.errors import NotFound, Refused
from virt_steward.objects.identity import Kind, Ref, key_of, ref_of
from virt_steward_demo.local.controlplane import ControlPlane

LABEL = "platform.kubevirt.io/managed-by"
OURS = {LABEL: "virt-platform-autopilot"}
CONFIG_MAP = Kind("", "ConfigMap", "configmaps")

Object = dict[str, Any]


def a_map(name: str, labels: dict[str, str]) -> Object:
    metadata = {"name": name, "namespace": "openshift-cnv", "labels": labels}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}


OLD, OLDER = a_map("old", OURS), a_map("older", OURS)
SOMEBODYS = a_map("older", {LABEL: "somebody"})


@pytest.fixture(scope="module")
def catalog() -> Catalog:
    """The shipped one, as if it had made two maps once."""
    stones = tuple(Tombstone(Ref(CONFIG_MAP, key_of(obj)), "v1", "tests") for obj in (OLD, OLDER))
    return replace(load(), tombstones=stones)


@pytest.fixture(scope="module")
def account(control_plane: ControlPlane, catalog: Catalog) -> Account:
    """With rights on the two maps, too."""
    return installed_account(control_plane, catalog, prefix="tombstones")


async def is_gone(rig: AutopilotRig, obj: Object) -> bool:
    try:
        await rig.client.get(ref_of(obj))
    except NotFound:
        return True
    return False


async def test_tombstones_are_deleted_first_while_active(running_rig: AutopilotRig, audit_log: AuditLog) -> None:
    another = a_map("another", OURS)
    for obj in (OLD, SOMEBODYS, another):
        await running_rig.client.apply(obj, manager="admin", force=True)
    await running_rig.activate("false")
    await running_rig.activate("True")
    assert await eventually(lambda: running_rig.has_event("LikelyTypo"), within=30), "by then, the others were seen"
    assert not await is_gone(running_rig, OLD), "it rests"
    mark = audit_log.mark()
    await running_rig.activate("metrics-service")
    assert await eventually(lambda: is_gone(running_rig, OLD), within=30)
    assert await eventually(lambda: running_rig.has_event("TombstoneSkipped"), within=30)
    assert await eventually(lambda: running_rig.is_there("metrics-service"), within=30)
    writes = [
        (one.verb, one.name)
        for one in audit_log.since(mark)
        if one.user == running_rig.account.user
        and one.is_write
        and one.resource != "events"
        and "dryRun" not in one.uri
    ]
    assert [*dict.fromkeys(writes)] == [("delete", "old"), ("patch", running_rig.ref("metrics-service").key.name)]
    assert not await is_gone(running_rig, SOMEBODYS), "its label says whose it is"
    assert not await is_gone(running_rig, another), "nobody has said that it is obsolete"
    await running_rig.client.apply(OLDER, manager="admin", force=True)
    assert await eventually(lambda: is_gone(running_rig, OLDER), within=30), "once it is ours, it goes, too"
    assert await eventually(lambda: _deleted(running_rig, {"old", "older"}), within=30)
    await running_rig.client.delete(ref_of(another))


async def _deleted(rig: AutopilotRig, names: set[str]) -> bool:
    return {one["related"]["name"] for one in await rig.events("TombstoneDeleted")} == names


async def test_failed_tombstone_holds_up_nothing(running_rig: AutopilotRig) -> None:
    async with undeletable(running_rig, OLD):
        await running_rig.client.apply(OLDER, manager="admin", force=True)
        await running_rig.activate("metrics-service")
        assert await eventually(lambda: running_rig.has_event("TombstoneFailed"), within=30)
        assert await eventually(lambda: running_rig.is_there("metrics-service"), within=30)
        assert await eventually(lambda: is_gone(running_rig, OLDER), within=30)
        [event] = await running_rig.events("TombstoneFailed")
        assert "maps stay" in event["note"]
        assert not await is_gone(running_rig, OLD)
    assert await eventually(lambda: is_gone(running_rig, OLD), within=30)


async def test_tombstones_are_kept_with_unreadable_exclusions(running_rig: AutopilotRig) -> None:
    await running_rig.client.apply(OLD, manager="admin", force=True)
    await running_rig.activate("metrics-service", disabled_resources="{")
    assert await eventually(lambda: running_rig.has_event("InvalidExclusions"), within=30)
    await running_rig.activate("metrics-service,no-such", disabled_resources="{")
    assert await eventually(lambda: running_rig.has_event("UnknownAsset"), within=30)
    assert not await is_gone(running_rig, OLD)
    await running_rig.activate("metrics-service", disabled_resources=None)
    assert await eventually(lambda: is_gone(running_rig, OLD), within=30)


@asynccontextmanager
async def undeletable(rig: AutopilotRig, obj: Object) -> AsyncIterator[None]:
    """Have admission keep an object, which is made for that."""
    rule = {
        "apiGroups": [""],
        "apiVersions": ["v1"],
        "operations": ["DELETE"],
        "resources": ["configmaps"],
        "resourceNames": [obj["metadata"]["name"]],
    }
    metadata = {"apiVersion": "admissionregistration.k8s.io/v1", "metadata": {"name": "maps-stay"}}
    policy = metadata | {
        "kind": "ValidatingAdmissionPolicy",
        "spec": {
            "matchConstraints": {"resourceRules": [rule]},
            "validations": [{"expression": "false", "message": "maps stay"}],
        },
    }
    binding = metadata | {
        "kind": "ValidatingAdmissionPolicyBinding",
        "spec": {"policyName": "maps-stay", "validationActions": ["Deny"]},
    }
    for one in (obj, policy, binding):
        await rig.client.apply(one, manager="admin", force=True)
    assert await eventually(lambda: _refuses(rig, obj), within=30)
    try:
        yield
    finally:
        for one in (binding, policy):
            await rig.client.delete(ref_of(one))
        assert await eventually(lambda: _allows(rig, obj), within=30)


async def _refuses(rig: AutopilotRig, obj: Object) -> bool:
    """Whether it cannot be deleted; otherwise it is made again."""
    try:
        await rig.client.delete(ref_of(obj))
    except Refused as error:
        return "maps stay" in str(error)
    await rig.client.apply(obj, manager="admin", force=True)
    return False


async def _allows(rig: AutopilotRig, obj: Object) -> bool:
    """Whether it can be deleted; it is made again."""
    try:
        await rig.client.delete(ref_of(obj))
    except NotFound:
        pass
    except Refused:
        return False
    await rig.client.apply(obj, manager="admin", force=True)
    return True
