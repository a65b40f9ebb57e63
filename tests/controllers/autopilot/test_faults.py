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
from tests.controllers.autopilot.opponent import an_opponent, is_paused
from tests.controllers.autopilot.pair import ASSET, BOTH, OTHER, activate_two, becomes, is_corrected, substance
from tests.controllers.autopilot.rig import AutopilotRig, at_work, spec_of
from tests.eventually import eventually
from tests.proxy import FaultProxy
from virt_steward.controllers.autopilot.annotation_keys import CREATED
from virt_steward.controllers.autopilot.options import HCO
from virt_steward.insight.assets.explain import explain
from virt_steward.insight.assets.survey import survey
from virt_steward.insight.status import AssetRow, autopilot
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


def writes(rig: AutopilotRig, audit_log: AuditLog, mark: Mark) -> list[Request]:
    """What the autopilot has really written, or tried to."""
    return [
        one
        for one in audit_log.since(mark)
        if one.user == rig.account.user and one.is_write and one.resource != "events" and "dryRun" not in one.uri
    ]


@pytest.mark.parametrize("point", ["autopilot.apply.before", "autopilot.apply.after"])
async def test_kill_around_a_write_loses_and_repeats_nothing(
    rig: AutopilotRig, control_plane: ControlPlane, tmp_path: Path, audit_log: AuditLog, point: str
) -> None:
    kubeconfig = rig.account.write_kubeconfig(tmp_path / "kubeconfig", control_plane)
    await rig.activate(f"{GOLDEN},{BOTH}")
    with a_process(kubeconfig, HCO.namespace, fault=f"{point}#2:kill", controller="autopilot") as cut:
        assert await eventually(lambda: cut.was_killed, within=60)
    with a_process(kubeconfig, HCO.namespace, controller="autopilot"):
        for asset in (ASSET, OTHER):
            assert await eventually(partial(rig.is_there, asset), within=60)
        await is_corrected(rig)
    written = Counter(one.name for one in writes(rig, audit_log, rig.begin) if MINE in one.uri)
    assert written.pop(rig.ref(OTHER).key.name) == 2, "this one was corrected, too"
    assert set(written.values()) == {1}
    assert {HCO.name, rig.ref(ASSET).key.name} <= written.keys()
    made = await rig.live(ASSET)
    assert made
    assert made["metadata"]["annotations"][CREATED] == made["metadata"]["uid"], "the second process has signed it"


async def test_kill_before_a_pause_pauses_after_restart(
    rig: AutopilotRig, control_plane: ControlPlane, tmp_path: Path
) -> None:
    kubeconfig = rig.account.write_kubeconfig(tmp_path / "kubeconfig", control_plane)
    await rig.activate(BOTH)
    with a_process(kubeconfig, HCO.namespace, fault="autopilot.pause.before:kill", controller="autopilot") as cut:
        assert await eventually(partial(rig.is_there, ASSET), within=60)
        before = await substance(rig)
        async with an_opponent(rig, {"mode": "Predictive"}):
            assert await eventually(lambda: cut.was_killed, within=60)
    assert not await is_paused(rig)
    with a_process(kubeconfig, HCO.namespace, controller="autopilot"):
        async with an_opponent(rig, {"mode": "Predictive"}):
            assert await eventually(partial(is_paused, rig), within=60)
        assert await eventually(partial(rig.has_event, "ThrashingDetected", ASSET), within=30)
        await is_corrected(rig)
    assert len(await rig.events("ThrashingDetected")) == 1
    assert (await substance(rig))["spec"] == before["spec"] | {"mode": "Predictive"}


async def test_kill_before_a_tombstone_deletes_after_restart(
    rig: AutopilotRig, control_plane: ControlPlane, tmp_path: Path, audit_log: AuditLog
) -> None:
    kubeconfig = rig.account.write_kubeconfig(tmp_path / "kubeconfig", control_plane)
    await rig.client.apply(an_obsolete_check(), manager="admin")
    await rig.activate(BOTH)
    with a_process(kubeconfig, HCO.namespace, fault="autopilot.bury.before:kill", controller="autopilot") as cut:
        assert await eventually(lambda: cut.was_killed, within=60)
    assert writes(rig, audit_log, rig.begin) == []
    with a_process(kubeconfig, HCO.namespace, controller="autopilot"):
        assert await eventually(partial(_is_gone, rig, OBSOLETE), within=60)
        assert await eventually(partial(rig.is_there, ASSET), within=60)
    assert [one.verb for one in writes(rig, audit_log, rig.begin)].count("delete") == 1


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


async def _is_gone(rig: AutopilotRig, ref: Ref) -> bool:
    try:
        await rig.client.get(ref)
    except NotFound:
        return True
    return False


async def test_removed_crd_is_managed_again_when_it_returns(
    rig: AutopilotRig, control_plane: ControlPlane, tmp_path: Path
) -> None:
    async with at_work(rig, control_plane, tmp_path):
        await activate_two(rig)
        before = spec_of(await rig.live(ASSET))
        for _ in range(2):
            await uninstall(rig.client, "KubeDescheduler")
            await is_corrected(rig)
            assert await eventually(partial(rig.has_event, "CRDMissing")), "else nobody noticed that it was away"
            await install(rig.client, "KubeDescheduler")
            assert await eventually(partial(rig.is_there, ASSET), within=30)
            assert spec_of(await rig.live(ASSET)) == before
        assert await eventually(partial(rig.has_event, "CRDDiscovered"), within=30)
        assert await rig.events("ApplyFailed") == []


@asynccontextmanager
async def without_rights_to(rig: AutopilotRig, resource: str) -> AsyncIterator[None]:
    """As a role from before the asset was added."""
    ref = Ref(Kind("rbac.authorization.k8s.io", "ClusterRole"), Key("", "test-autopilot"))
    rules = (await rig.client.get(ref))["rules"]
    await rig.client.merge_patch(ref, {"rules": [one for one in rules if resource not in one["resources"]]})
    try:
        yield
    finally:
        await rig.client.merge_patch(ref, {"rules": rules})


async def test_missing_right_holds_up_no_other_asset(
    rig: AutopilotRig, control_plane: ControlPlane, tmp_path: Path
) -> None:
    async with without_rights_to(rig, "kubedeschedulers"):
        assert await eventually(partial(_may_not_watch, rig, control_plane, rig.ref(ASSET)), within=30), (
            "an authorizer learns it later"
        )
        async with at_work(rig, control_plane, tmp_path):
            await rig.activate(BOTH)
            assert await eventually(partial(rig.has_event, "AssetApplied", OTHER), within=30)
            assert await eventually(partial(rig.has_event, "ApplyFailed", ASSET), within=30)
            [event] = await rig.events("ApplyFailed", ASSET)
            assert "forbidden (403) to watch it" in event["note"]


async def test_unreadable_nodes_hold_up_only_dependent_assets(
    rig: AutopilotRig, control_plane: ControlPlane, tmp_path: Path
) -> None:
    async with without_rights_to(rig, NODE.plural):
        nodes = Ref(NODE, Key("", "worker-0"))
        assert await eventually(partial(_may_not_watch, rig, control_plane, nodes), within=30)
        async with at_work(rig, control_plane, tmp_path):
            await rig.activate("True")
            assert await eventually(partial(rig.has_event, "LikelyTypo"), within=30)
            assert await rig.events("HardwareDetectionFailed") == [], "nobody asks for it yet"
            await activate_two(rig)
            assert await eventually(partial(rig.has_event, "HardwareDetectionFailed"), within=30)
            [event] = await rig.events("HardwareDetectionFailed")
            assert "forbidden (403) to watch Node" in event["note"]
            assert event["type"] == "Warning"


async def test_explain_without_right_to_list_storage(rig: AutopilotRig, control_plane: ControlPlane) -> None:
    await rig.activate(f"{ASSET},{STORAGE}", enable_node_remediation="true")
    async with without_rights_to(rig, STORAGE_PROFILE.plural):
        profiles = Ref(STORAGE_PROFILE, Key("", "nfs"))
        assert await eventually(partial(_may_not_watch, rig, control_plane, profiles), within=30)
        async with a_client(control_plane, rig.account.token) as person:
            reader = Reader(person.connection, person.discovery)
            found = await survey(reader, rig.catalog, rig.options, datetime.now(UTC))
            told = await autopilot(reader, rig.options, datetime.now(UTC))
    assert explain(found, ASSET, {}).state == "Not there yet"
    unknown = "Inputs not known (storage: not known here)"
    assert (explain(found, STORAGE, {}).state, explain(found, STORAGE, {}).because) == ("Left alone", unknown)
    assert AssetRow(STORAGE, "Left alone", unknown) in told.assets


async def test_explain_does_not_take_forbidden_for_absent(rig: AutopilotRig, control_plane: ControlPlane) -> None:
    async with without_rights_to(rig, "kubedeschedulers"):
        assert await eventually(partial(_may_not_watch, rig, control_plane, rig.ref(ASSET)), within=30)
        async with a_client(control_plane, rig.account.token) as person:
            reader = Reader(person.connection, person.discovery)
            with pytest.raises(Forbidden, match="kubedeschedulers"):
                await survey(reader, rig.catalog, rig.options, datetime.now(UTC))


async def _may_not_watch(rig: AutopilotRig, control_plane: ControlPlane, ref: Ref) -> bool:
    async with a_client(control_plane, rig.account.token) as client:
        try:
            await client.list(ref.kind, Selection.one(ref.key))
        except Forbidden:
            return True
    return False


async def test_missing_hyperconverged_stops_everything(running_rig: AutopilotRig, audit_log: AuditLog) -> None:
    await activate_two(running_rig)
    await is_corrected(running_rig)  # so that no write is under way
    hco = await running_rig.live(GOLDEN)
    assert hco
    await uninstall(running_rig.client, HYPERCONVERGED.name)
    await running_rig.edit(ASSET, {"spec": {"mode": "Predictive"}})
    mark = audit_log.mark()
    await install(running_rig.client, HYPERCONVERGED.name)
    fresh = {name: hco["metadata"][name] for name in ("name", "namespace")}
    await running_rig.client.apply(hco | {"metadata": fresh}, manager="admin")
    assert writes(running_rig, audit_log, mark) == []
    assert spec_of(await running_rig.live(ASSET))["mode"] == "Predictive"
    await running_rig.activate(BOTH)
    assert await becomes(running_rig, mode="Automatic")


async def test_autopilot_survives_api_server_restart(running_rig: AutopilotRig, control_plane: ControlPlane) -> None:
    await activate_two(running_rig)
    before = await substance(running_rig)
    await running_rig.edit(ASSET, {"spec": {"mode": "Predictive"}})
    control_plane.kill_apiserver()
    control_plane.start_apiserver()
    control_plane.wait_until_ready()

    async def as_before() -> bool:
        try:
            return await substance(running_rig) == before
        except KubeError:  # a connection of ours has ended, too
            return False

    assert await eventually(as_before, within=60)
    await is_corrected(running_rig)


async def test_drift_during_disconnection_is_corrected_afterwards(
    rig: AutopilotRig, control_plane: ControlPlane, tmp_path: Path, proxy: FaultProxy
) -> None:
    async with at_work(rig, control_plane, tmp_path, proxy.server):
        await activate_two(rig)
        before = await substance(rig)
        for _ in range(3):
            await proxy.refuse()
            await proxy.cut()
            await rig.edit(ASSET, {"spec": {"mode": "Predictive"}})
            await proxy.accept()
            assert await becomes(rig, mode="Automatic")
        assert await substance(rig) == before
        assert await rig.events("ThrashingDetected") == []


def by_policy(rig: AutopilotRig) -> tuple[Object, ...]:
    head: Object = {"apiVersion": "admissionregistration.k8s.io/v1", "metadata": {"name": "no-marks"}}
    policy = head | {
        "kind": "ValidatingAdmissionPolicy",
        "spec": {
            "matchConstraints": {"resourceRules": [_updates()]},
            "matchConditions": [_of_the_autopilot(rig)],
            "validations": [{"expression": "false", "message": "no marks here"}],
        },
    }
    binding = head | {
        "kind": "ValidatingAdmissionPolicyBinding",
        "spec": {"policyName": "no-marks", "validationActions": ["Deny"]},
    }
    return policy, binding


def by_a_dead_webhook(rig: AutopilotRig) -> tuple[Object, ...]:
    webhook = {
        "name": "marks.example.org",
        "clientConfig": {"url": "https://127.0.0.1:1/"},
        "rules": [_updates()],
        "matchConditions": [_of_the_autopilot(rig)],
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


def _of_the_autopilot(rig: AutopilotRig) -> Object:
    return {"name": "the-autopilot", "expression": f"request.userInfo.username == '{rig.account.user}'"}


@asynccontextmanager
async def installed(rig: AutopilotRig, *objects: Object) -> AsyncIterator[None]:
    for one in objects:
        await rig.client.apply(one, manager="admin")
    try:
        yield
    finally:
        for one in reversed(objects):
            await rig.client.delete(ref_of(one))


@pytest.mark.parametrize("refusal", [by_policy, by_a_dead_webhook], ids=["admission", "a webhook that does not answer"])
async def test_assets_are_pending_while_the_hyperconverged_fails(
    running_rig: AutopilotRig, control_plane: ControlPlane, audit_log: AuditLog, refusal: Any
) -> None:
    async with installed(running_rig, *refusal(running_rig)):
        assert await eventually(partial(_is_refused, running_rig, control_plane), within=30), (
            "it takes a moment to be in force"
        )
        await running_rig.activate("false", disabled_resources="[{kind: HyperConverged, name: '*'}]")
        await running_rig.activate(BOTH)
        assert await eventually(partial(running_rig.is_there, OTHER), within=30), "an excluded one makes nobody wait"
        await running_rig.activate("false", disabled_resources=None)
        assert await eventually(_silence_of(running_rig, audit_log)), "it has seen that it is off"
        await running_rig.clear()
        await running_rig.client.delete(running_rig.ref(ASSET))
        mark = audit_log.mark()
        await running_rig.activate(f"{GOLDEN},{BOTH}")
        assert await eventually(partial(_failed, running_rig, audit_log, mark, 4), within=60)
        assert {one.resource for one in writes(running_rig, audit_log, mark)} <= {HYPERCONVERGED.plural}
        assert await eventually(partial(running_rig.has_event, "ApplyFailed", GOLDEN), within=30)
        await running_rig.annotate(GOLDEN, mode="unmanaged")
        assert await eventually(partial(running_rig.is_there, OTHER), within=30), "nor does one that is unmanaged"
        await running_rig.annotate(GOLDEN, mode=None)
    assert await eventually(partial(running_rig.has_event, "AssetApplied", GOLDEN), within=60), (
        "the queue tries again by itself"
    )
    await is_corrected(running_rig)


def _silence_of(rig: AutopilotRig, audit_log: AuditLog) -> Callable[[], bool]:
    """Whether the autopilot has written nothing in between ten looks."""
    begin, counts = audit_log.mark(), [0]

    def is_silent() -> bool:
        counts.append(len(writes(rig, audit_log, begin)))
        return len(counts) > 10 and len(set(counts[-10:])) == 1

    return is_silent


async def _is_refused(rig: AutopilotRig, control_plane: ControlPlane) -> bool:
    marker = {"metadata": {"labels": {"probe": "yes"}}}
    async with a_client(control_plane, rig.account.token) as client:
        try:
            await client.merge_patch(Ref(HYPERCONVERGED, HCO), marker, dry_run=True)
        except KubeError:
            return True
    return False


async def _failed(rig: AutopilotRig, audit_log: AuditLog, mark: Mark, times: int) -> bool:
    """Whether the HyperConverged was tried so often; in between, all others had their turn."""
    tried = [one for one in audit_log.since(mark) if one.user == rig.account.user and one.name == HCO.name]
    return len([one for one in tried if one.code >= 400]) >= times
