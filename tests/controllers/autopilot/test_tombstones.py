"""What releases before this one made: it is deleted if it is ours, and holds up nothing if it cannot be."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import pytest

from tests.audit import AuditLog
from tests.controllers.autopilot.cockpit import Cockpit, installed_account
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


async def is_gone(cockpit: Cockpit, obj: Object) -> bool:
    try:
        await cockpit.client.get(ref_of(obj))
    except NotFound:
        return True
    return False


async def test_tombstones_are_deleted_first_while_active(flying: Cockpit, audit_log: AuditLog) -> None:
    another = a_map("another", OURS)
    for obj in (OLD, SOMEBODYS, another):
        await flying.client.apply(obj, manager="admin", force=True)
    await flying.engage("false")
    await flying.engage("True")
    assert await eventually(lambda: flying.told("LikelyTypo"), within=30), "by then, the others were seen"
    assert not await is_gone(flying, OLD), "it rests"
    mark = audit_log.mark()
    await flying.engage("metrics-service")
    assert await eventually(lambda: is_gone(flying, OLD), within=30)
    assert await eventually(lambda: flying.told("TombstoneSkipped"), within=30)
    assert await eventually(lambda: flying.is_there("metrics-service"), within=30)
    writes = [
        (one.verb, one.name)
        for one in audit_log.since(mark)
        if one.user == flying.account.user and one.is_write and one.resource != "events" and "dryRun" not in one.uri
    ]
    assert [*dict.fromkeys(writes)] == [("delete", "old"), ("patch", flying.ref("metrics-service").key.name)]
    assert not await is_gone(flying, SOMEBODYS), "its label says whose it is"
    assert not await is_gone(flying, another), "nobody has said that it is obsolete"
    await flying.client.apply(OLDER, manager="admin", force=True)
    assert await eventually(lambda: is_gone(flying, OLDER), within=30), "once it is ours, it goes, too"
    assert await eventually(lambda: _deleted(flying, {"old", "older"}), within=30)
    await flying.client.delete(ref_of(another))


async def _deleted(cockpit: Cockpit, names: set[str]) -> bool:
    return {one["related"]["name"] for one in await cockpit.events("TombstoneDeleted")} == names


async def test_failed_tombstone_holds_up_nothing(flying: Cockpit) -> None:
    async with undeletable(flying, OLD):
        await flying.client.apply(OLDER, manager="admin", force=True)
        await flying.engage("metrics-service")
        assert await eventually(lambda: flying.told("TombstoneFailed"), within=30)
        assert await eventually(lambda: flying.is_there("metrics-service"), within=30)
        assert await eventually(lambda: is_gone(flying, OLDER), within=30)
        [event] = await flying.events("TombstoneFailed")
        assert "maps stay" in event["note"]
        assert not await is_gone(flying, OLD)
    assert await eventually(lambda: is_gone(flying, OLD), within=30)


async def test_tombstones_are_kept_with_unreadable_exclusions(flying: Cockpit) -> None:
    await flying.client.apply(OLD, manager="admin", force=True)
    await flying.engage("metrics-service", disabled_resources="{")
    assert await eventually(lambda: flying.told("InvalidExclusions"), within=30)
    await flying.engage("metrics-service,no-such", disabled_resources="{")
    assert await eventually(lambda: flying.told("UnknownAsset"), within=30)
    assert not await is_gone(flying, OLD)
    await flying.engage("metrics-service", disabled_resources=None)
    assert await eventually(lambda: is_gone(flying, OLD), within=30)


@asynccontextmanager
async def undeletable(cockpit: Cockpit, obj: Object) -> AsyncIterator[None]:
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
        await cockpit.client.apply(one, manager="admin", force=True)
    assert await eventually(lambda: _refuses(cockpit, obj), within=30)
    try:
        yield
    finally:
        for one in (binding, policy):
            await cockpit.client.delete(ref_of(one))
        assert await eventually(lambda: _allows(cockpit, obj), within=30)


async def _refuses(cockpit: Cockpit, obj: Object) -> bool:
    """Whether it cannot be deleted; otherwise it is made again."""
    try:
        await cockpit.client.delete(ref_of(obj))
    except Refused as error:
        return "maps stay" in str(error)
    await cockpit.client.apply(obj, manager="admin", force=True)
    return False


async def _allows(cockpit: Cockpit, obj: Object) -> bool:
    """Whether it can be deleted; it is made again."""
    try:
        await cockpit.client.delete(ref_of(obj))
    except NotFound:
        pass
    except Refused:
        return False
    await cockpit.client.apply(obj, manager="admin", force=True)
    return True
