"""Opting out: objects stay, unless a person says that what we made may go."""

from collections.abc import AsyncIterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.audit import AuditLog
from tests.catalog.builders import a_context, an_asset, an_hco
from tests.controllers.autopilot.rig import AutopilotRig, at_work
from tests.eventually import eventually
from tests.grants import an_account
from virt_steward.catalog.conditions import AnnotationCondition, HardwareCondition
from virt_steward.catalog.load import MANAGED_BY, MANAGER
from virt_steward.controllers.autopilot import annotation_keys
from virt_steward.controllers.autopilot.definition import definition
from virt_steward.controllers.autopilot.live_summary import LiveSummary, live_summary
from virt_steward.controllers.autopilot.observation import AutopilotObservation, ServedKinds
from virt_steward.controllers.autopilot.options import HCO, OPT_OUT_DELETES
from virt_steward.controllers.autopilot.optout import Deletable, Kept, OptOut, judge_opt_out
from virt_steward.controllers.autopilot.signatures import is_of_another_instance
from virt_steward.controllers.autopilot.verdicts import AssetSkipped, SkipReason
from virt_steward.objects.identity import Key, Kind, Ref, Regarding
from virt_steward.platform.hco import HYPERCONVERGED
from virt_steward.platform.machineconfigs import MACHINE_CONFIG
from virt_steward.platform.nodes import Hardware
from virt_steward.runtime.access import Installation
from virt_steward.ssa.managers import AUTOPILOT, CREATION
from virt_steward_demo.local.controlplane import ControlPlane

ASSET = "metallb-operator"
OTHER = "metrics-service"
KEY = "platform.kubevirt.io/enable-fast"
DELETE = {annotation_keys.SCOPE: "true", annotation_keys.ON_OPT_OUT: "delete"}
TUNING = Kind("tuning.example", "Tuning", "tunings")
OPT_IN = an_asset(conditions=[{"type": "annotation", "key": KEY, "value": "true"}])


def an_entry(manager: str, subresource: str = "", **fields: Any) -> dict[str, Any]:
    return {"manager": manager, "subresource": subresource, "fieldsV1": fields or {"f:spec": {"f:speed": {}}}}


def a_sighting(
    *entries: Mapping[str, Any], annotations: Mapping[str, str] | None = None, ours: bool = True, **metadata: Any
) -> LiveSummary:
    noted = {annotation_keys.CREATED: "1", annotation_keys.CREATED_BY: annotation_keys.SIGNER} if ours else {}
    return live_summary(
        {
            "metadata": {
                "name": "fast",
                "uid": "1",
                "labels": {"platform.kubevirt.io/managed-by": "virt-platform-autopilot"},
                "annotations": noted | dict(annotations or {}),
                "managedFields": [an_entry(AUTOPILOT.name), an_entry(CREATION.name), *entries],
                **metadata,
            }
        }
    )


def a_platform(annotations: Mapping[str, str] | None = None, **context: Any) -> AutopilotObservation:
    hco = Regarding(Ref(HYPERCONVERGED, HCO), "hco.kubevirt.io/v1", "2")
    known = a_context(hco=an_hco(annotations=DELETE if annotations is None else annotations), **context)
    return AutopilotObservation.of(hco, known, ServedKinds(frozenset()), frozenset())


def an_opt_out(
    seen: LiveSummary | None = None, reason: SkipReason = SkipReason.OUT_OF_SCOPE, kind: Kind = TUNING
) -> OptOut:
    return OptOut(OPT_IN, Ref(kind, Key("", "fast")), seen or a_sighting(), AssetSkipped(reason, "as I say"))


@pytest.mark.parametrize(
    ("one", "platform"),
    [
        pytest.param(an_opt_out(), a_platform(), id="is out of scope"),
        pytest.param(an_opt_out(reason=SkipReason.EXCLUDED), a_platform(), id="is excluded"),
        pytest.param(an_opt_out(reason=SkipReason.CONDITIONS), a_platform(), id="is not opted in to any more"),
        pytest.param(
            an_opt_out(a_sighting(an_entry("operator", subresource="status"))), a_platform(), id="has a status writer"
        ),
        pytest.param(
            an_opt_out(a_sighting(an_entry("operator", **{"f:metadata": {"f:finalizers": {}}, "f:status": {}}))),
            a_platform(),
            id="has a finalizer",
        ),
    ],
)
def test_opt_out_deletes_our_object(one: OptOut, platform: AutopilotObservation) -> None:
    assert judge_opt_out(one, platform, (OPT_IN,)) == Deletable()


@pytest.mark.parametrize(
    ("one", "why"),
    [
        pytest.param(an_opt_out(a_sighting(ours=False)), "existed before", id="nobody noted"),
        pytest.param(an_opt_out(a_sighting(uid="3")), "existed before", id="is a copy"),
        pytest.param(an_opt_out(a_sighting(an_entry("argocd"))), "also managed by argocd", id="somebody else manages"),
        pytest.param(
            an_opt_out(a_sighting(annotations={annotation_keys.MODE: "unmanaged"})),
            annotation_keys.MODE,
            id="a person keeps unmanaged",
        ),
        pytest.param(
            an_opt_out(a_sighting(annotations={annotation_keys.PAUSED: "true"})), annotation_keys.PAUSED, id="is paused"
        ),
        pytest.param(
            an_opt_out(a_sighting(annotations={annotation_keys.GOVERNED_BY: "x"})), "advisor", id="the advisor governs"
        ),
        pytest.param(
            an_opt_out(kind=Kind("machineconfiguration.openshift.io", "MachineConfig")), "reboots", id="reboots nodes"
        ),
        pytest.param(
            an_opt_out(kind=Kind("machineconfiguration.openshift.io", "KubeletConfig")),
            "reboots",
            id="changes kubelets",
        ),
        pytest.param(an_opt_out(kind=Kind("", "Namespace")), "all objects in it", id="holds other objects"),
    ],
)
def test_opt_out_keeps_object_with_reason(one: OptOut, why: str) -> None:
    judged = judge_opt_out(one, a_platform(), (OPT_IN,))
    assert isinstance(judged, Kept)
    assert why in judged.message


@pytest.mark.parametrize(
    ("one", "platform"),
    [
        pytest.param(an_opt_out(), a_platform({annotation_keys.SCOPE: "true"}), id="nobody wants deletion"),
        pytest.param(
            an_opt_out(), a_platform({**DELETE, annotation_keys.ON_OPT_OUT: "Delete"}), id="the policy makes no sense"
        ),
        pytest.param(
            an_opt_out(), a_platform({**DELETE, annotation_keys.SCOPE: "slwo"}), id="the allow-list names no asset"
        ),
        pytest.param(
            an_opt_out(), a_platform({**DELETE, annotation_keys.EXCLUDED: "- {"}), id="exclusions cannot be read"
        ),
        pytest.param(an_opt_out(reason=SkipReason.NO_KIND), a_platform(), id="its kind is not served"),
        pytest.param(an_opt_out(reason=SkipReason.INPUTS_UNKNOWN), a_platform(), id="its inputs are not known"),
        pytest.param(an_opt_out(reason=SkipReason.EMPTY), a_platform(), id="its template renders nothing"),
        pytest.param(an_opt_out(reason=SkipReason.UNMANAGED), a_platform(), id="a person looks after it"),
        pytest.param(
            replace(
                an_opt_out(reason=SkipReason.CONDITIONS),
                asset=an_asset(
                    conditions=[
                        {"type": "annotation", "key": KEY},
                        {"type": "hardware-detection", "detector": "gpuPresent"},
                    ]
                ),
            ),
            a_platform({**DELETE, KEY: "true"}, hardware=Hardware()),
            id="only the cluster has changed",
        ),
        pytest.param(
            an_opt_out(a_sighting(deletionTimestamp="2030-01-01T00:00:00Z")), a_platform(), id="it goes already"
        ),
        pytest.param(an_opt_out(a_sighting(labels={})), a_platform(), id="it was never ours"),
        pytest.param(an_opt_out(kind=HYPERCONVERGED), a_platform(), id="it is the platform itself"),
    ],
)
def test_opt_out_does_not_apply(one: OptOut, platform: AutopilotObservation) -> None:
    assert judge_opt_out(one, platform, (OPT_IN,)) is None


def test_opt_in_keys_of_conditions() -> None:
    assert isinstance(OPT_IN.conditions[0], AnnotationCondition)
    assert OPT_IN.conditions[0].opt_in_key
    assert not HardwareCondition("gpuPresent").opt_in_key


@pytest.fixture
async def deleting(rig: AutopilotRig, control_plane: ControlPlane, tmp_path: Path) -> AsyncIterator[AutopilotRig]:
    """The autopilot at work, with the right to delete that an installation may grant."""
    access = definition(rig.options, rig.catalog).access
    installation = Installation("openshift-cnv", prefix="test-deleting", extras=(OPT_OUT_DELETES,))
    with_right = replace(rig, account=await an_account(rig.client, access, installation))
    async with at_work(with_right, control_plane, tmp_path):
        yield with_right


async def is_gone(rig: AutopilotRig, asset: str) -> bool:
    return not await rig.is_there(asset)


async def test_opt_out_deletes_only_what_we_created(deleting: AutopilotRig, audit_log: AuditLog) -> None:
    rig = deleting
    service = {"apiVersion": "v1", "kind": "Service", "spec": {"ports": [{"name": "theirs", "port": 1}]}}
    theirs = rig.ref(OTHER).key
    named = {"name": theirs.name, "namespace": theirs.namespace}
    await rig.client.apply({**service, "metadata": named}, manager="somebody")
    assets = f"{ASSET},{OTHER},swap-enable,mtv-operator,aaq-operator"
    keys = {"enable_metallb": "true", "enable_mtv": "true"}
    await rig.activate(assets, on_opt_out="delete", **keys)
    for asset in (ASSET, "mtv-operator", "swap-enable"):
        assert await eventually(lambda asset=asset: rig.is_there(asset), within=30)
    assert await eventually(lambda: rig.has_event("AssetApplied", OTHER), within=30)
    metallb = await rig.live(ASSET)
    assert metallb
    assert metallb["metadata"]["annotations"][annotation_keys.CREATED] == metallb["metadata"]["uid"]
    forklift = await rig.live("mtv-operator")
    assert forklift
    identity = {name: forklift[name] for name in ("apiVersion", "kind")}
    place = {name: forklift["metadata"][name] for name in ("name", "namespace")}
    await rig.client.apply({**identity, "metadata": place | {"labels": {"argocd": "yes"}}}, manager="argocd")

    mark = audit_log.mark()
    await rig.activate("hco-golden-config", on_opt_out="delete", **keys)
    assert await eventually(lambda: is_gone(rig, ASSET), within=30)
    assert await eventually(lambda: rig.has_event("OptOutDeleted", ASSET))
    for asset, why in ((OTHER, "existed before"), ("mtv-operator", "argocd"), ("swap-enable", "reboots")):
        assert await eventually(lambda asset=asset: rig.has_event("OptOutSkipped", asset), within=20)
        [event] = await rig.events("OptOutSkipped", asset)
        assert why in event["note"]
        assert await rig.is_there(asset)
    asked = [one for one in audit_log.since(mark) if one.user == rig.account.user and one.verb == "delete"]
    assert {one.name for one in asked} == {rig.ref(ASSET).key.name}
    assert [one.code for one in asked].count(200) == 1, "asked twice before the watch tells, it goes once"
    assert rig.account.denied(audit_log.since(mark)) == []


async def test_opt_out_needs_policy_and_right(rig: AutopilotRig, control_plane: ControlPlane, tmp_path: Path) -> None:
    async with at_work(rig, control_plane, tmp_path):
        await rig.activate(f"{ASSET},{OTHER}", enable_metallb="true")
        assert await eventually(lambda: rig.is_there(ASSET), within=30)
        await rig.activate(OTHER, enable_metallb=None, on_opt_out="Delete")
        assert await eventually(lambda: rig.has_event("InvalidOptOut"), within=20)
        assert await rig.is_there(ASSET)
        await rig.activate(OTHER, enable_metallb=None, on_opt_out="delete")
        assert await eventually(lambda: rig.has_event("OptOutForbidden", ASSET), within=20)
        [event] = await rig.events("OptOutForbidden", ASSET)
        assert "virt-steward rbac --controllers autopilot --opt-out-deletes" in event["note"]
        assert await rig.is_there(ASSET)


async def test_opt_out_keeps_what_another_instance_created(deleting: AutopilotRig) -> None:
    """The Go operator applies as the same field manager, with the same label."""
    place = deleting.ref(ASSET).key
    metadata = {"name": place.name, "namespace": place.namespace, "labels": {MANAGED_BY: MANAGER}}
    made = {"apiVersion": "metallb.io/v1beta1", "kind": "MetalLB", "spec": {}, "metadata": metadata}
    await deleting.client.apply(made, manager=AUTOPILOT.name)
    keys = {"enable_metallb": "true", "takeover": "accept"}
    await deleting.activate(f"{ASSET},{OTHER}", on_opt_out="delete", **keys)
    assert await eventually(lambda: deleting.has_event("AssetApplied", OTHER), within=30), "which comes later"
    await deleting.activate(OTHER, on_opt_out="delete", **keys)
    assert await eventually(lambda: deleting.has_event("OptOutSkipped", ASSET), within=20)
    [event] = await deleting.events("OptOutSkipped", ASSET)
    assert "carries no record that the autopilot created it" in event["note"]
    live = await deleting.live(ASSET)
    assert live
    assert annotation_keys.CREATED not in live["metadata"].get("annotations", {})


@pytest.mark.parametrize(
    ("live", "kind", "expected"),
    [
        (a_sighting(ours=False), TUNING, True),
        (a_sighting(), TUNING, False),
        (a_sighting(an_entry("admin"), ours=False), TUNING, False),
        (a_sighting(an_entry("controller", "status"), ours=False), TUNING, True),
        (a_sighting(ours=False, labels={}), TUNING, False),
        (a_sighting(ours=False), MACHINE_CONFIG, False),
    ],
    ids=["unsigned", "signed", "also of an admin", "with a status", "without our label", "never signed"],
)
def test_object_of_another_instance_is_recognised(live: LiveSummary, kind: Kind, expected: bool) -> None:
    assert is_of_another_instance(Ref(kind, Key("", "fast")), live) is expected
