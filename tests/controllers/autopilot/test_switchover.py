"""Starts ours on what the Go autopilot leaves behind: nothing is written before somebody acts."""

from dataclasses import replace
from datetime import datetime
from functools import partial
from pathlib import Path

import msgspec
import pytest

from tests.audit import AuditLog, Mark, Request
from tests.controllers.autopilot.rig import AutopilotRig, Object, at_work, explained
from tests.controllers.autopilot.staging_rig import KUBELET, is_settled, is_staged, rendered, staged, want_pods, writes
from tests.controllers.autopilot.test_changes import previewed
from tests.eventually import eventually
from tests.howtos import FOLDER, Follower, a_deployment
from tests.otheroperator import OtherOperator
from tests.recordings import recording, restore
from virt_steward.catalog.load import MANAGED_BY, MANAGER
from virt_steward.controllers.autopilot.access import GO_LEASE
from virt_steward.controllers.autopilot.annotation_keys import (
    PREFIX,
    ROLLOUT,
    ROLLOUT_DEADLINE,
    ROLLOUT_DEADLINE_ACTION,
    ROLLOUT_RELEASE,
    ROLLOUT_WINDOW,
    TAKEOVER,
)
from virt_steward.controllers.autopilot.options import HCO
from virt_steward.controllers.autopilot.rollouts.staged import NAME as STAGING
from virt_steward.controllers.autopilot.rollouts.staged import ref_of_staging
from virt_steward.insight.assets.changes import WRITES
from virt_steward.kube.client import EVERYTHING, Selection
from virt_steward.objects.corekinds import NAMESPACE, NODE
from virt_steward.objects.diff import changes
from virt_steward.objects.fieldpaths import readable
from virt_steward.objects.identity import Key, Ref, ref_of
from virt_steward.platform.machineconfigs import MACHINE_CONFIG
from virt_steward_demo.local.controlplane import ControlPlane
from virt_steward_demo.simulation.install import make_namespace
from virt_steward_demo.simulation.kinds.monitoring import POD_MONITOR
from virt_steward_demo.simulation.kinds.remediation import NODE_HEALTH_CHECK
from virt_steward_demo.simulation.platform import PlatformShape

REBOOTING = {
    "autopilot-default": {"swap-enable"},
    "autopilot-opt-ins": {"swap-enable", "ksm-zero-only", "thp-tuning", "vm-drain-shutdown-inhibitor"},
}
"""Assets that differ on a recorded cluster and reboot nodes."""
MONITOR = [".spec.endpoints", ".spec.selector.matchLabels.app", ".spec.selector.matchLabels.app.kubernetes.io/name"]
WRITTEN = {
    "metrics-servicemonitor": MONITOR,
    "prometheus-alerts": [".spec.groups"],
    "autopilot-dashboard": ["created"],
    "dashboard-datasource": ["created"],
    "descheduler-dashboard": ["created"],
}
"""Other assets that differ, with the fields that change once the takeover is accepted."""
PLUGINS = {
    "observability-operator": [".spec.monitoring.incidents.enabled"],
    "troubleshooting-panel-ui-plugin": ["created"],
}
"""And these where their opt-ins of release 4.22 were not set: they are always on since 5.0."""
ALL_WRITTEN = {"autopilot-default": WRITTEN | PLUGINS, "autopilot-opt-ins": WRITTEN}
UNKNOWN = "97-worker-obsolete"
OBSOLETE = Ref(NODE_HEALTH_CHECK, Key("", "virt-node-health-check"))
"""Which a tombstone names."""
REPLACED = Ref(POD_MONITOR, Key("kubevirt-metrics-exporter", "kubevirt-metrics-exporter"))
REPLACED_BY = "kubevirt-metrics-exporter-servicemonitor"
"""The asset that replaces it, which is not wanted here."""


@pytest.fixture
def shape() -> PlatformShape:
    return replace(PlatformShape(machines_per_worker=0, packages=()), render_delay=1.0)


async def boots(rig: AutopilotRig) -> dict[str, str]:
    nodes = await rig.client.list(NODE, EVERYTHING)
    return {node["metadata"]["name"]: node["status"]["nodeInfo"]["bootID"] for node in nodes}


@pytest.mark.parametrize("name", REBOOTING)
async def test_takeover_from_the_go_autopilot_writes_nothing_until_somebody_acts(
    rig: AutopilotRig, control_plane: ControlPlane, tmp_path: Path, audit_log: AuditLog, name: str
) -> None:
    rebooting, others = REBOOTING[name], ALL_WRITTEN[name]
    objects = [acceptable(obj) for obj in recording(name)]
    objects += [
        unknown(objects[0]),
        of_go(OBSOLETE, "remediation.medik8s.io/v1alpha1", {"pauseRequests": ["later"]}),
        of_go(REPLACED, "monitoring.coreos.com/v1", {"selector": {}, "podMetricsEndpoints": []}),
    ]
    assert await eventually(partial(has_namespace, rig, REPLACED.key.namespace), within=60)
    await restore(rig.client, objects)
    assert await eventually(partial(is_settled, rig), within=60)
    before, renderings = await boots(rig), await rendered(rig)
    restored = {ref_of(one): await rig.client.get(ref_of(one)) for one in objects}
    preview = await previewed(rig, "true")
    assert {asset for asset, change in preview.items() if change.staged} == {
        "",
        REPLACED_BY,
        *rebooting,
        *others,
    }
    assert [asset for asset, change in preview.items() if change.action in WRITES and not change.staged] == []
    mark = audit_log.mark()
    async with at_work(rig, control_plane, tmp_path):
        assert await eventually(partial(is_staged, rig, *rebooting, *others, REPLACED_BY), within=60)
        found = await staged(rig)
        occasions = {asset: entry.occasion.value for asset, entry in found.items()}
        assert occasions.pop(REPLACED_BY) == "delete"
        assert {*occasions.values()} == {"first contact"}
        await explains_what_waits(rig)
        assert len(records_of(rig, audit_log, mark)) <= len(found), "each is recorded once, and then there is silence"
        assert await rig.events("DriftDetected") == []
        assert written_by(rig, audit_log, mark) == []
        assert (await boots(rig), await rendered(rig)) == (before, renderings)

        await rig.activate("true", rollout_release=found["swap-enable"].id)
        assert await eventually(partial(is_staged, rig, *others, REPLACED_BY), within=60), "those of the pool too"
        assert await eventually(partial(is_settled, rig), within=60)
        names = sorted(one.name for one in written_by(rig, audit_log, mark))
        assert names == sorted(rig.ref(asset).key.name for asset in rebooting), "each once"
        assert len(await rendered(rig) - renderings) == 1, "nodes reboot once"

        mark = audit_log.mark()
        await rig.activate("true", rollout_release=found["prometheus-alerts"].id)
        assert await eventually(partial(rig.has_event, "TakeoverReleased", "prometheus-alerts"), within=60)
        assert await first_contact(rig, audit_log, mark, restored) == {"prometheus-alerts": [".spec.groups"]}
        await rig.activate("true", takeover="accept")
        assert await eventually(partial(is_staged, rig), within=60)
        assert await eventually(partial(deleted, rig, OBSOLETE, REPLACED), within=60)
        on_hco = [f".metadata.annotations.{key}" for key in (ROLLOUT_RELEASE, TAKEOVER)]  # by people; ours takes fields
        written = await first_contact(rig, audit_log, mark, restored)
        assert written == others | {"hco-golden-config": on_hco}
    assert await rig.client.get(Ref(MACHINE_CONFIG, Key("", UNKNOWN)))
    assert rig.account.denied(audit_log.since(mark)) == []


async def explains_what_waits(rig: AutopilotRig) -> None:
    for asset, reason, words in (
        ("swap-enable", "MachineConfigUpdateStaged", "/spec/config/storage/files"),
        ("prometheus-alerts", "TakeoverStaged", "platform.kubevirt.io/takeover: accept on the HyperConverged"),
    ):
        assert await eventually(partial(rig.has_event, reason, asset))
        [event] = await rig.events(reason, asset)
        assert "written by another instance or release of the autopilot, differs" in event["note"]
        assert words in event["note"]
        assert f"virt-steward release {asset}" in event["note"]
    for reason, name in (("NotInCatalog", UNKNOWN), ("TombstoneSkipped", OBSOLETE.key.name)):
        assert await eventually(partial(rig.has_event, reason))
        [event] = await rig.events(reason)
        assert event["related"]["name"] == name
    shown = await explained(rig, "prometheus-alerts")
    assert (shown.state, shown.review and shown.review.impact) == ("Staged", "no node reboots")


async def first_contact(
    rig: AutopilotRig, audit_log: AuditLog, mark: Mark, before: dict[Ref, Object]
) -> dict[str, list[str]]:
    """What the autopilot has written, by asset: the fields that have changed, lists as a whole, or that it is new."""
    refs = {asset.name: rig.ref(asset.name) for asset in rig.catalog.assets}
    assets = {(ref.kind.plural, ref.key): name for name, ref in refs.items()}
    found = [one for one in written_by(rig, audit_log, mark) if one.verb != "delete"]
    written = [assets[one.resource, Key(one.namespace, one.name)] for one in found]
    return {name: await changed_fields(rig, refs[name], before) for name in written}


async def changed_fields(rig: AutopilotRig, ref: Ref, before: dict[Ref, Object]) -> list[str]:
    if ref not in before:
        return ["created"]
    found = changes(before[ref], await rig.client.get(ref))
    return sorted({readable(change.path).partition("[")[0] for change in found})


async def stands_by_no_more(howto: Follower) -> bool:
    return "standing by" not in (await howto.steward("status")).stdout


async def test_takeover_by_the_howto_creates_nothing_until_somebody_acts(
    rig: AutopilotRig, control_plane: ControlPlane, tmp_path: Path, audit_log: AuditLog
) -> None:
    """Not even for pools without a staged change: the other instance did not have these objects."""
    howto = Follower("switch-from-the-go-autopilot", rig.client, control_plane.kubeconfig)
    deployment = a_deployment(HCO.namespace, "virt-platform-autopilot")
    go_autopilot = OtherOperator(rig.client, Key(HCO.namespace, GO_LEASE))
    objects = [acceptable(obj) for obj in recording("autopilot-default") if obj["kind"] != "MachineConfig"]
    await restore(rig.client, [*objects])
    await rig.activate("true", enable_kubelet_performance_settings="true")
    await rig.client.create(deployment)
    assert await eventually(partial(is_settled, rig), within=60)
    mark = audit_log.mark()
    assert (await howto.steward("switch-check autopilot")).code == 2
    async with go_autopilot.running(), at_work(rig, control_plane, tmp_path):
        assert "standing by: go-1 holds Lease" in (await howto.steward("status")).stdout
        assert written_by(rig, audit_log, mark) == []
    scaled = await howto.kubectl("scale deployment virt-platform-autopilot -n openshift-cnv --replicas=0")
    assert scaled["spec"]["replicas"] == 0
    async with at_work(rig, control_plane, tmp_path):
        waiting = (*WRITTEN, *PLUGINS)
        rebooting = ("swap-enable", "psi-enable", KUBELET)
        assert await eventually(partial(is_staged, rig, *rebooting, *waiting), within=60)
        entries = (await staged(rig)).values()
        assert {entry.occasion.value for entry in entries} == {"first contact"}
        assert await eventually(partial(stands_by_no_more, howto))
        command = "get events -n openshift-cnv --field-selector reason=MachineConfigUpdateStaged"
        notes = [one["message"] for one in (await howto.kubectl(command))["items"]]
        origin = ", which another instance or release of the autopilot did not create, is new: nodes"
        assert any(origin in note and "95-worker-kubelet-perf-settings" in note for note in notes)
        await want_pods(rig, 321)
        assert await eventually(partial(wants_another, rig, (await staged(rig))[KUBELET].desired_hash))
        assert writes(rig, audit_log, mark) == []
        assert "staged" in (await howto.steward("explain asset ASSET", ASSET=KUBELET)).stdout
        config = await rig.client.get(ref_of_staging(HCO.namespace))
        entries = {name: msgspec.json.decode(text, type=GoStagedChange) for name, text in config["data"].items()}
        assert all(entries[rig.ref(asset).key.name].matching_pools == ["worker"] for asset in rebooting)
        assert (await howto.steward("release ASSET", "--yes", ASSET=KUBELET)).code == 0
        assert await eventually(partial(is_staged, rig, *waiting), within=60), "the others of the pool go along"
        assert (await howto.steward("release prometheus-alerts", "--yes")).code == 0
        others = [asset for asset in waiting if asset != "prometheus-alerts"]
        assert await eventually(partial(is_staged, rig, *others), within=60)
        accepted = await howto.kubectl(f"annotate hyperconverged {HCO.name} -n {HCO.namespace} {TAKEOVER}=accept")
        assert accepted["metadata"]["annotations"][TAKEOVER] == "accept"
        assert await eventually(partial(is_staged, rig), within=60)
    assert howto.left_out == []
    await go_autopilot.delete()
    await rig.client.delete(ref_of(deployment))


class GoStagedChange(msgspec.Struct, rename="camel"):
    """What the Go operator of release 5.0 reads of an entry."""

    staged_at: datetime
    desired_hash: str
    matching_pools: list[str] = []


def test_howto_names_what_only_ours_follows() -> None:
    page = (FOLDER / "switch-from-the-go-autopilot.md").read_text().partition("## The way back")[2]
    keys = (ROLLOUT, ROLLOUT_WINDOW, ROLLOUT_DEADLINE, ROLLOUT_DEADLINE_ACTION, ROLLOUT_RELEASE, TAKEOVER)
    assert [key for key in keys if f"`{key.removeprefix(PREFIX)}`" not in page] == []


def written_by(rig: AutopilotRig, audit_log: AuditLog, mark: Mark) -> list[Request]:
    """What the autopilot has written, but for events and what is staged."""
    return [
        one
        for one in audit_log.since(mark)
        if one.user == rig.account.user and one.is_write and "dryRun" not in one.uri
        if one.resource != "events" and one.name != STAGING
    ]


def records_of(rig: AutopilotRig, audit_log: AuditLog, mark: Mark) -> list[Request]:
    """How often what is staged was written."""
    mine = (one for one in audit_log.since(mark) if one.user == rig.account.user)
    return [one for one in mine if one.is_write and one.name == STAGING]


async def wants_another(rig: AutopilotRig, before: str) -> bool:
    return (await staged(rig))[KUBELET].desired_hash != before


def acceptable(obj: Object) -> Object:
    """Texts that were left out of the recording are no rules, and addresses are of another network."""
    if obj["kind"] == "Service":
        return obj | {"spec": {name: value for name, value in obj["spec"].items() if "clusterIP" not in name}}
    if obj["kind"] != "PrometheusRule":
        return obj
    groups = [group | {"rules": []} for group in obj["spec"]["groups"]]
    return obj | {"spec": {"groups": groups}}


def unknown(config: Object) -> Object:
    """An object of an asset that the other one has and we do not."""
    return config | {"metadata": config["metadata"] | {"name": UNKNOWN}, "spec": {"kernelArguments": ["obsolete"]}}


async def deleted(rig: AutopilotRig, *refs: Ref) -> bool:
    names = {one["related"]["name"] for one in await rig.events("TombstoneDeleted")}
    return names == {ref.key.name for ref in refs}


async def has_namespace(rig: AutopilotRig, name: str) -> bool:
    """Whether the namespace exists; one that another test has deleted may still be terminating."""
    await make_namespace(rig.client, name)
    found = await rig.client.list(NAMESPACE, Selection(fields=f"metadata.name={name}"))
    return any("deletionTimestamp" not in one["metadata"] for one in found)


def of_go(ref: Ref, api_version: str, spec: Object) -> Object:
    """An object that the other one has and that a tombstone of ours names."""
    fields = {
        "f:metadata": {"f:labels": {f"f:{MANAGED_BY}": {}}},
        "f:spec": {f"f:{name}": {} for name in spec},
    }
    entry = {"manager": MANAGER, "operation": "Apply", "fieldsType": "FieldsV1", "fieldsV1": fields}
    metadata = {
        "name": ref.key.name,
        "labels": {MANAGED_BY: MANAGER},
        "managedFields": [entry | {"apiVersion": api_version}],
    }
    if ref.key.namespace:
        metadata["namespace"] = ref.key.namespace
    return {"apiVersion": api_version, "kind": ref.kind.name, "metadata": metadata, "spec": spec}
