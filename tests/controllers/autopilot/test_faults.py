"""Cuts, outages and refusals: what can be looked after is, and the rest follows once it can, without help."""

from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.audit import AuditLog, Mark, Request
from tests.clients import a_client
from tests.controllers.approver.process import a_process
from tests.controllers.autopilot.cockpit import Cockpit, at_work, spec_of
from tests.controllers.autopilot.opponent import an_opponent, is_paused
from tests.controllers.autopilot.pair import ASSET, BOTH, OTHER, becomes, engage_two, is_corrected, substance
from tests.eventually import eventually
from tests.proxy import FaultProxy
from virt_steward.controllers.autopilot.annotation_keys import CREATED
from virt_steward.controllers.autopilot.options import HCO
from virt_steward.insight.assets.explain import explain
from virt_steward.insight.assets.survey import survey
from virt_steward.insight.status import autopilot
from virt_steward.kube.client import Reader, Selection
from virt_steward.kube.errors import Forbidden, KubeError, NotFound
from virt_steward.objects.corekinds import NODE
from virt_steward.objects.identity import Key, Kind, Ref, ref_of
from virt_steward.platform.hco import HYPERCONVERGED
from virt_steward.platform.storage import STORAGE_PROFILE
from virt_steward.ssa.managers import AUTOPILOT
from virt_steward_demo.local.controlplane import ControlPlane
from virt_steward_demo.simulation.install import install, uninstall

GOLDEN = "hco-golden-config"
STORAGE = "node-remediation-storage"
MINE = f"fieldManager={AUTOPILOT.name}&"
OBSOLETE = Ref(Kind("remediation.medik8s.io", "NodeHealthCheck"), Key("", "virt-node-health-check"))

Object = dict[str, Any]


def writes(cockpit: Cockpit, audit_log: AuditLog, mark: Mark) -> list[Request]:
    """What the autopilot has really written, or tried to."""
    return [
        one
        for one in audit_log.since(mark)
        if one.user == cockpit.account.user and one.is_write and one.resource != "events" and "dryRun" not in one.uri
    ]


@pytest.mark.parametrize("point", ["autopilot.apply.before", "autopilot.apply.after"])
async def test_kill_around_a_write_loses_and_repeats_nothing(
    cockpit: Cockpit, control_plane: ControlPlane, tmp_path: Path, audit_log: AuditLog, point: str
) -> None:
    kubeconfig = cockpit.account.write_kubeconfig(tmp_path / "kubeconfig", control_plane)
    await cockpit.engage(f"{GOLDEN},{BOTH}")
    with a_process(kubeconfig, HCO.namespace, fault=f"{point}#2:kill", controller="autopilot") as cut:
        assert await eventually(lambda: cut.was_killed, within=60)
    with a_process(kubeconfig, HCO.namespace, controller="autopilot"):
        for asset in (ASSET, OTHER):
            assert await eventually(partial(cockpit.is_there, asset), within=60)
        await is_corrected(cockpit)
    written = Counter(one.name for one in writes(cockpit, audit_log, cockpit.begin) if MINE in one.uri)
    assert written.pop(cockpit.ref(OTHER).key.name) == 2, "this one was corrected, too"
    assert set(written.values()) == {1}
    assert {HCO.name, cockpit.ref(ASSET).key.name} <= written.keys()
    made = await cockpit.live(ASSET)
    assert made
    assert made["metadata"]["annotations"][CREATED] == made["metadata"]["uid"], "the second process has signed it"


async def test_kill_before_a_pause_pauses_after_restart(
    cockpit: Cockpit, control_plane: ControlPlane, tmp_path: Path
) -> None:
    kubeconfig = cockpit.account.write_kubeconfig(tmp_path / "kubeconfig", control_plane)
    await cockpit.engage(BOTH)
    with a_process(kubeconfig, HCO.namespace, fault="autopilot.pause.before:kill", controller="autopilot") as cut:
        assert await eventually(partial(cockpit.is_there, ASSET), within=60)
        before = await substance(cockpit)
        async with an_opponent(cockpit, {"mode": "Predictive"}):
            assert await eventually(lambda: cut.was_killed, within=60)
    assert not await is_paused(cockpit)
    with a_process(kubeconfig, HCO.namespace, controller="autopilot"):
        async with an_opponent(cockpit, {"mode": "Predictive"}):
            assert await eventually(partial(is_paused, cockpit), within=60)
        assert await eventually(partial(cockpit.told, "ThrashingDetected", ASSET), within=30)
        await is_corrected(cockpit)
    assert len(await cockpit.events("ThrashingDetected")) == 1
    assert (await substance(cockpit))["spec"] == before["spec"] | {"mode": "Predictive"}


async def test_kill_before_a_tombstone_deletes_after_restart(
    cockpit: Cockpit, control_plane: ControlPlane, tmp_path: Path, audit_log: AuditLog
) -> None:
    kubeconfig = cockpit.account.write_kubeconfig(tmp_path / "kubeconfig", control_plane)
    await cockpit.client.apply(an_obsolete_check(), manager="admin")
    await cockpit.engage(BOTH)
    with a_process(kubeconfig, HCO.namespace, fault="autopilot.bury.before:kill", controller="autopilot") as cut:
        assert await eventually(lambda: cut.was_killed, within=60)
    assert writes(cockpit, audit_log, cockpit.begin) == []
    with a_process(kubeconfig, HCO.namespace, controller="autopilot"):
        assert await eventually(partial(_is_gone, cockpit, OBSOLETE), within=60)
        assert await eventually(partial(cockpit.is_there, ASSET), within=60)
    assert [one.verb for one in writes(cockpit, audit_log, cockpit.begin)].count("delete") == 1


def an_obsolete_check() -> Object:
    spec = {
        "minHealthy": "51%",
        "selector": {"matchLabels": {"node-role.kubernetes.io/worker": ""}},
        "unhealthyConditions": [{"type": "Ready", "status": "False", "duration": "300s"}],
    }
    labels = {"platform.kubevirt.io/managed-by": "virt-platform-autopilot"}
    metadata = {"name": OBSOLETE.key.name, "labels": labels}
    version = "remediation.medik8s.io/v1alpha1"
    return {"apiVersion": version, "kind": OBSOLETE.kind.name, "metadata": metadata, "spec": spec}


async def _is_gone(cockpit: Cockpit, ref: Ref) -> bool:
    try:
        await cockpit.client.get(ref)
    except NotFound:
        return True
    return False


async def test_removed_crd_is_managed_again_when_it_returns(
    cockpit: Cockpit, control_plane: ControlPlane, tmp_path: Path
) -> None:
    async with at_work(cockpit, control_plane, tmp_path):
        await engage_two(cockpit)
        before = spec_of(await cockpit.live(ASSET))
        for _ in range(2):
            await uninstall(cockpit.client, "KubeDescheduler")
            await is_corrected(cockpit)
            assert await eventually(partial(cockpit.told, "CRDMissing")), "else nobody noticed that it was away"
            await install(cockpit.client, "KubeDescheduler")
            assert await eventually(partial(cockpit.is_there, ASSET), within=30)
            assert spec_of(await cockpit.live(ASSET)) == before
        assert await eventually(partial(cockpit.told, "CRDDiscovered"), within=30)
        assert await cockpit.events("ApplyFailed") == []


@asynccontextmanager
async def without_rights_to(cockpit: Cockpit, resource: str) -> AsyncIterator[None]:
    """As a role from before the asset was added."""
    ref = Ref(Kind("rbac.authorization.k8s.io", "ClusterRole"), Key("", "test-autopilot"))
    rules = (await cockpit.client.get(ref))["rules"]
    await cockpit.client.merge_patch(ref, {"rules": [one for one in rules if resource not in one["resources"]]})
    try:
        yield
    finally:
        await cockpit.client.merge_patch(ref, {"rules": rules})


async def test_missing_right_holds_up_no_other_asset(
    cockpit: Cockpit, control_plane: ControlPlane, tmp_path: Path
) -> None:
    async with without_rights_to(cockpit, "kubedeschedulers"):
        assert await eventually(partial(_may_not_watch, cockpit, control_plane, cockpit.ref(ASSET)), within=30), (
            "an authorizer learns it later"
        )
        async with at_work(cockpit, control_plane, tmp_path):
            await cockpit.engage(BOTH)
            assert await eventually(partial(cockpit.told, "AssetApplied", OTHER), within=30)
            assert await eventually(partial(cockpit.told, "ApplyFailed", ASSET), within=30)
            [event] = await cockpit.events("ApplyFailed", ASSET)
            assert "forbidden (403) to watch it" in event["note"]


async def test_unreadable_nodes_hold_up_only_dependent_assets(
    cockpit: Cockpit, control_plane: ControlPlane, tmp_path: Path
) -> None:
    async with without_rights_to(cockpit, NODE.plural):
        nodes = Ref(NODE, Key("", "worker-0"))
        assert await eventually(partial(_may_not_watch, cockpit, control_plane, nodes), within=30)
        async with at_work(cockpit, control_plane, tmp_path):
            await cockpit.engage("True")
            assert await eventually(partial(cockpit.told, "LikelyTypo"), within=30)
            assert await cockpit.events("HardwareDetectionFailed") == [], "nobody asks for it yet"
            await engage_two(cockpit)
            assert await eventually(partial(cockpit.told, "HardwareDetectionFailed"), within=30)
            [event] = await cockpit.events("HardwareDetectionFailed")
            assert "forbidden (403) to watch Node" in event["note"]
            assert event["type"] == "Warning"


async def test_explain_without_right_to_list_storage(cockpit: Cockpit, control_plane: ControlPlane) -> None:
    await cockpit.engage(f"{ASSET},{STORAGE}", enable_node_remediation="true")
    async with without_rights_to(cockpit, STORAGE_PROFILE.plural):
        profiles = Ref(STORAGE_PROFILE, Key("", "nfs"))
        assert await eventually(partial(_may_not_watch, cockpit, control_plane, profiles), within=30)
        async with a_client(control_plane, cockpit.account.token) as person:
            reader = Reader(person.connection, person.discovery)
            found = await survey(reader, cockpit.catalog, cockpit.options, datetime.now(UTC))
            told = await autopilot(reader, cockpit.options)
    assert explain(found, ASSET, {}).state == "Not there yet"
    unknown = "Inputs not known (storage: not known here)"
    assert (explain(found, STORAGE, {}).state, explain(found, STORAGE, {}).because) == ("Left alone", unknown)
    assert (STORAGE, "Left alone", unknown) in told.rows


async def test_explain_does_not_take_forbidden_for_absent(cockpit: Cockpit, control_plane: ControlPlane) -> None:
    async with without_rights_to(cockpit, "kubedeschedulers"):
        assert await eventually(partial(_may_not_watch, cockpit, control_plane, cockpit.ref(ASSET)), within=30)
        async with a_client(control_plane, cockpit.account.token) as person:
            reader = Reader(person.connection, person.discovery)
            with pytest.raises(Forbidden, match="kubedeschedulers"):
                await survey(reader, cockpit.catalog, cockpit.options, datetime.now(UTC))


async def _may_not_watch(cockpit: Cockpit, control_plane: ControlPlane, ref: Ref) -> bool:
    async with a_client(control_plane, cockpit.account.token) as client:
        try:
            await client.list(ref.kind, Selection.one(ref.key))
        except Forbidden:
            return True
    return False


async def test_missing_hyperconverged_stops_everything(flying: Cockpit, audit_log: AuditLog) -> None:
    await engage_two(flying)
    hco = await flying.live(GOLDEN)
    assert hco
    await uninstall(flying.client, HYPERCONVERGED.name)
    await flying.edit(ASSET, {"spec": {"mode": "Predictive"}})
    mark = audit_log.mark()
    await install(flying.client, HYPERCONVERGED.name)
    fresh = {name: hco["metadata"][name] for name in ("name", "namespace")}
    await flying.client.apply(hco | {"metadata": fresh}, manager="admin")
    assert writes(flying, audit_log, mark) == []
    assert spec_of(await flying.live(ASSET))["mode"] == "Predictive"
    await flying.engage(BOTH)
    assert await becomes(flying, mode="Automatic")


async def test_autopilot_survives_api_server_restart(flying: Cockpit, control_plane: ControlPlane) -> None:
    await engage_two(flying)
    before = await substance(flying)
    await flying.edit(ASSET, {"spec": {"mode": "Predictive"}})
    control_plane.kill_apiserver()
    control_plane.start_apiserver()
    control_plane.wait_until_ready()

    async def as_before() -> bool:
        try:
            return await substance(flying) == before
        except KubeError:  # a connection of ours has ended, too
            return False

    assert await eventually(as_before, within=60)
    await is_corrected(flying)


async def test_drift_during_disconnection_is_corrected_afterwards(
    cockpit: Cockpit, control_plane: ControlPlane, tmp_path: Path, proxy: FaultProxy
) -> None:
    async with at_work(cockpit, control_plane, tmp_path, proxy.server):
        await engage_two(cockpit)
        before = await substance(cockpit)
        for _ in range(3):
            proxy.refuse()
            await proxy.cut()
            await cockpit.edit(ASSET, {"spec": {"mode": "Predictive"}})
            await proxy.accept()
            assert await becomes(cockpit, mode="Automatic")
        assert await substance(cockpit) == before
        assert await cockpit.events("ThrashingDetected") == []


def by_policy(cockpit: Cockpit) -> tuple[Object, ...]:
    head: Object = {"apiVersion": "admissionregistration.k8s.io/v1", "metadata": {"name": "no-marks"}}
    policy = head | {
        "kind": "ValidatingAdmissionPolicy",
        "spec": {
            "matchConstraints": {"resourceRules": [_updates()]},
            "matchConditions": [_of_the_autopilot(cockpit)],
            "validations": [{"expression": "false", "message": "no marks here"}],
        },
    }
    binding = head | {
        "kind": "ValidatingAdmissionPolicyBinding",
        "spec": {"policyName": "no-marks", "validationActions": ["Deny"]},
    }
    return policy, binding


def by_a_dead_webhook(cockpit: Cockpit) -> tuple[Object, ...]:
    webhook = {
        "name": "marks.example.org",
        "clientConfig": {"url": "https://127.0.0.1:1/"},
        "rules": [_updates()],
        "matchConditions": [_of_the_autopilot(cockpit)],
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
        "timeoutSeconds": 1,
    }
    return (
        {
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": "ValidatingWebhookConfiguration",
            "metadata": {"name": "no-marks"},
            "webhooks": [webhook],
        },
    )


def _updates() -> Object:
    what: Object = {"apiGroups": [HYPERCONVERGED.group], "resources": [HYPERCONVERGED.plural]}
    return what | {"apiVersions": ["*"], "operations": ["UPDATE"]}


def _of_the_autopilot(cockpit: Cockpit) -> Object:
    return {"name": "the-autopilot", "expression": f"request.userInfo.username == '{cockpit.account.user}'"}


@asynccontextmanager
async def installed(cockpit: Cockpit, *objects: Object) -> AsyncIterator[None]:
    for one in objects:
        await cockpit.client.apply(one, manager="admin")
    try:
        yield
    finally:
        for one in reversed(objects):
            await cockpit.client.delete(ref_of(one))


@pytest.mark.parametrize("refusal", [by_policy, by_a_dead_webhook], ids=["admission", "a webhook that does not answer"])
async def test_assets_are_pending_while_the_hyperconverged_fails(
    flying: Cockpit, control_plane: ControlPlane, audit_log: AuditLog, refusal: Any
) -> None:
    async with installed(flying, *refusal(flying)):
        assert await eventually(partial(_is_refused, flying, control_plane), within=30), (
            "it takes a moment to be in force"
        )
        await flying.engage("false", disabled_resources="[{kind: HyperConverged, name: '*'}]")
        await flying.engage(BOTH)
        assert await eventually(partial(flying.is_there, OTHER), within=30), "an excluded one makes nobody wait"
        await flying.engage("false", disabled_resources=None)
        assert await eventually(_silence_of(flying, audit_log)), "it has seen that it is off"
        await flying.clear()
        await flying.client.delete(flying.ref(ASSET))
        mark = audit_log.mark()
        await flying.engage(f"{GOLDEN},{BOTH}")
        assert await eventually(partial(_failed, flying, audit_log, mark, 4), within=60)
        assert {one.resource for one in writes(flying, audit_log, mark)} <= {HYPERCONVERGED.plural}
        assert await eventually(partial(flying.told, "ApplyFailed", GOLDEN), within=30)
        await flying.annotate(GOLDEN, mode="unmanaged")
        assert await eventually(partial(flying.is_there, OTHER), within=30), "nor does one that is unmanaged"
        await flying.annotate(GOLDEN, mode=None)
    assert await eventually(partial(flying.told, "AssetApplied", GOLDEN), within=60), "the queue tries again by itself"
    await is_corrected(flying)


def _silence_of(cockpit: Cockpit, audit_log: AuditLog) -> Callable[[], bool]:
    """Whether the autopilot has written nothing in between ten looks."""
    begin, counts = audit_log.mark(), [0]

    def is_silent() -> bool:
        counts.append(len(writes(cockpit, audit_log, begin)))
        return len(counts) > 10 and len(set(counts[-10:])) == 1

    return is_silent


async def _is_refused(cockpit: Cockpit, control_plane: ControlPlane) -> bool:
    marker = {"metadata": {"labels": {"probe": "yes"}}}
    async with a_client(control_plane, cockpit.account.token) as client:
        try:
            await client.merge_patch(Ref(HYPERCONVERGED, HCO), marker, dry_run=True)
        except KubeError:
            return True
    return False


async def _failed(cockpit: Cockpit, audit_log: AuditLog, mark: Mark, times: int) -> bool:
    """Whether the HyperConverged was tried so often; in between, all others had their turn."""
    tried = [one for one in audit_log.since(mark) if one.user == cockpit.account.user and one.name == HCO.name]
    return len([one for one in tried if one.code >= 400]) >= times
