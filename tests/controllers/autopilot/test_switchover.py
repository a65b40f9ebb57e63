"""Starts ours on what the Go autopilot leaves behind: no node reboots before somebody has released it."""

from dataclasses import replace
from datetime import datetime
from functools import partial
from pathlib import Path

import msgspec
import pytest

from tests.audit import AuditLog, Mark, Request
from tests.controllers.autopilot.cockpit import Cockpit, Object, at_work, spec_of
from tests.controllers.autopilot.staging_rig import KUBELET, is_settled, is_staged, rendered, staged, want_pods, writes
from tests.controllers.autopilot.test_changes import previewed
from tests.eventually import eventually
from tests.howtos import FOLDER, Follower, a_deployment
from tests.otheroperator import OtherOperator
from tests.recordings import recording, restore
from virt_steward.controllers.autopilot.access import GO_LEASE
from virt_steward.controllers.autopilot.annotation_keys import (
    PREFIX,
    ROLLOUT,
    ROLLOUT_DEADLINE,
    ROLLOUT_DEADLINE_ACTION,
    ROLLOUT_RELEASE,
    ROLLOUT_WINDOW,
)
from virt_steward.controllers.autopilot.options import HCO
from virt_steward.controllers.autopilot.rollouts.staged import NAME as STAGING
from virt_steward.controllers.autopilot.rollouts.staged import ref_of_staging
from virt_steward.kube.client import EVERYTHING
from virt_steward.objects.corekinds import NODE
from virt_steward.objects.diff import changes
from virt_steward.objects.fieldpaths import readable
from virt_steward.objects.identity import Key, Ref, ref_of
from virt_steward.platform.machineconfigs import MACHINE_CONFIG
from virt_steward_demo.local.controlplane import ControlPlane
from virt_steward_demo.simulation.platform import PlatformShape

DEFAULT = {"swap-enable": "first contact"}
OPT_INS = DEFAULT | dict.fromkeys(("ksm-zero-only", "thp-tuning", "vm-drain-shutdown-inhibitor"), "first contact")
EXPECTED = {"autopilot-default": DEFAULT, "autopilot-opt-ins": OPT_INS}
MONITOR = [".spec.endpoints", ".spec.selector.matchLabels.app", ".spec.selector.matchLabels.app.kubernetes.io/name"]
WRITTEN = {
    "hco-golden-config": [],  # which changes owners alone
    "metrics-servicemonitor": MONITOR,
    "prometheus-alerts": [".spec.groups"],
    "autopilot-dashboard": ["created"],
    "dashboard-datasource": ["created"],
    "descheduler-dashboard": ["created"],
}
"""What is written to a recorded cluster before somebody acts, with the fields that change."""
PLUGINS = {
    "observability-operator": [".spec.monitoring.incidents.enabled"],
    "troubleshooting-panel-ui-plugin": ["created"],
}
"""And this where their opt-ins of release 4.22 were not set: they are always on since 5.0."""
ALL_WRITTEN = {"autopilot-default": WRITTEN | PLUGINS, "autopilot-opt-ins": WRITTEN}
OBSOLETE = "97-worker-obsolete"


@pytest.fixture
def shape() -> PlatformShape:
    return replace(PlatformShape(machines_per_worker=0, packages=()), render_delay=1.0)


async def boots(cockpit: Cockpit) -> dict[str, str]:
    nodes = await cockpit.client.list(NODE, EVERYTHING)
    return {node["metadata"]["name"]: node["status"]["nodeInfo"]["bootID"] for node in nodes}


@pytest.mark.parametrize("name", EXPECTED)
async def test_takeover_from_the_go_autopilot_reboots_nothing_until_released(
    cockpit: Cockpit, control_plane: ControlPlane, tmp_path: Path, audit_log: AuditLog, name: str
) -> None:
    expected = EXPECTED[name]
    objects = [acceptable(obj) for obj in recording(name)]
    objects.append(obsolete(objects[0]))
    await restore(cockpit.client, objects)
    assert await eventually(partial(is_settled, cockpit), within=60)
    before, renderings = await boots(cockpit), await rendered(cockpit)
    restored = {ref_of(one): await cockpit.client.get(ref_of(one)) for one in objects}
    preview = await previewed(cockpit, "true")
    assert {asset for asset, change in preview.items() if change.staged} == expected.keys()
    assert [asset for asset, change in preview.items() if change.reboots and not change.staged] == []
    mark = audit_log.mark()
    async with at_work(cockpit, control_plane, tmp_path):
        assert await eventually(partial(is_staged, cockpit, *expected), within=60)
        assert await eventually(partial(has_our_rules, cockpit), within=60), "other kinds are updated at once"
        assert await eventually(partial(cockpit.told, "AssetApplied", "descheduler-dashboard"), within=60)
        found = await staged(cockpit)
        assert {asset: entry.occasion.value for asset, entry in found.items()} == expected
        assert await eventually(partial(cockpit.told, "MachineConfigUpdateStaged", "swap-enable"))
        [event] = await cockpit.events("MachineConfigUpdateStaged", "swap-enable")
        assert "written by another instance or release of the autopilot, differs" in event["note"]
        assert ".spec.config.storage.files" in event["note"]
        assert await eventually(partial(cockpit.told, "NotInCatalog"))
        [event] = await cockpit.events("NotInCatalog")
        assert event["related"]["name"] == OBSOLETE
        assert await first_contact(cockpit, audit_log, mark, restored) == ALL_WRITTEN[name]
        for asset, fields in (("metrics-servicemonitor", MONITOR), ("prometheus-alerts", [".spec.groups"])):
            assert await eventually(partial(cockpit.told, "AssetApplied", asset))
            [event] = await cockpit.events("AssetApplied", asset)
            assert "applied over what another instance or release of the autopilot wrote, changed: " in event["note"]
            assert fields[0] in event["note"]
        assert await cockpit.events("DriftDetected") == []
        assert writes(cockpit, audit_log, mark) == []
        assert (await boots(cockpit), await rendered(cockpit)) == (before, renderings)
        await cockpit.engage("true", rollout_release=found["swap-enable"].id)
        assert await eventually(partial(is_staged, cockpit), within=60)
        assert await eventually(partial(is_settled, cockpit), within=60)
    written = sorted(one.name for one in writes(cockpit, audit_log, mark))
    assert written == sorted(cockpit.ref(asset).key.name for asset in expected), "each once"
    assert len(await rendered(cockpit) - renderings) == 1, "nodes reboot once"
    assert await cockpit.client.get(Ref(MACHINE_CONFIG, Key("", OBSOLETE)))
    assert cockpit.account.denied(audit_log.since(mark)) == []


async def first_contact(
    cockpit: Cockpit, audit_log: AuditLog, mark: Mark, before: dict[Ref, Object]
) -> dict[str, list[str]]:
    """What the autopilot has written, by asset: the fields that have changed, lists as a whole, or that it is new."""
    refs = {asset.name: cockpit.ref(asset.name) for asset in cockpit.catalog.assets}
    assets = {(ref.kind.plural, ref.key): name for name, ref in refs.items()}
    written = [assets[one.resource, Key(one.namespace, one.name)] for one in written_by(cockpit, audit_log, mark)]
    return {name: await changed_fields(cockpit, refs[name], before) for name in written}


async def changed_fields(cockpit: Cockpit, ref: Ref, before: dict[Ref, Object]) -> list[str]:
    if ref not in before:
        return ["created"]
    found = changes(before[ref], await cockpit.client.get(ref))
    return sorted({readable(change.path).partition("[")[0] for change in found})


async def test_takeover_by_the_howto_creates_nothing_that_reboots_nodes_until_released(
    cockpit: Cockpit, control_plane: ControlPlane, tmp_path: Path, audit_log: AuditLog
) -> None:
    """Not even for pools without a staged change: the other instance did not have these objects."""
    howto = Follower("switch-from-the-go-autopilot", cockpit.client, control_plane.kubeconfig)
    deployment = a_deployment(HCO.namespace, "virt-platform-autopilot")
    go_autopilot = OtherOperator(cockpit.client, Key(HCO.namespace, GO_LEASE))
    objects = [acceptable(obj) for obj in recording("autopilot-default") if obj["kind"] != "MachineConfig"]
    await restore(cockpit.client, [*objects])
    await cockpit.engage("true", enable_kubelet_performance_settings="true")
    await cockpit.client.create(deployment)
    assert await eventually(partial(is_settled, cockpit), within=60)
    mark = audit_log.mark()
    assert (await howto.steward("switch-check autopilot")).code == 2
    async with go_autopilot.running(), at_work(cockpit, control_plane, tmp_path):
        assert "standing by: go-1 holds Lease" in (await howto.steward("status")).stdout
        assert written_by(cockpit, audit_log, mark) == []
    scaled = await howto.kubectl("scale deployment virt-platform-autopilot -n openshift-cnv --replicas=0")
    assert scaled["spec"]["replicas"] == 0
    async with at_work(cockpit, control_plane, tmp_path):
        assert await eventually(partial(is_staged, cockpit, "swap-enable", "psi-enable", KUBELET), within=60)
        assert await eventually(partial(cockpit.told, "AssetApplied", "descheduler-dashboard"), within=60)
        entries = (await staged(cockpit)).values()
        assert {entry.occasion.value for entry in entries} == {"first contact"}
        assert "standing by" not in (await howto.steward("status")).stdout
        command = "get events -n openshift-cnv --field-selector reason=MachineConfigUpdateStaged"
        notes = [one["message"] for one in (await howto.kubectl(command))["items"]]
        origin = ", which another instance or release of the autopilot did not create, is new: nodes"
        assert any(origin in note and "95-worker-kubelet-perf-settings" in note for note in notes)
        await want_pods(cockpit, 321)
        assert await eventually(partial(wants_another, cockpit, (await staged(cockpit))[KUBELET].desired_hash))
        assert writes(cockpit, audit_log, mark) == []
        assert "staged" in (await howto.steward("explain asset ASSET", ASSET=KUBELET)).stdout
        config = await cockpit.client.get(ref_of_staging(HCO.namespace))
        for text in config["data"].values():
            assert msgspec.json.decode(text, type=GoStagedChange).matching_pools == ["worker"]
        assert (await howto.steward("release ASSET", "--yes", ASSET=KUBELET)).code == 0
        assert await eventually(partial(is_staged, cockpit), within=60), "the others go along"
    assert howto.left_out == []
    await go_autopilot.delete()
    await cockpit.client.delete(ref_of(deployment))


class GoStagedChange(msgspec.Struct, rename="camel"):
    """What the Go operator of release 5.0 reads of an entry."""

    staged_at: datetime
    desired_hash: str
    matching_pools: list[str]


def test_howto_names_what_only_ours_follows() -> None:
    page = (FOLDER / "switch-from-the-go-autopilot.md").read_text().partition("## The way back")[2]
    keys = (ROLLOUT, ROLLOUT_WINDOW, ROLLOUT_DEADLINE, ROLLOUT_DEADLINE_ACTION, ROLLOUT_RELEASE)
    assert [key for key in keys if f"`{key.removeprefix(PREFIX)}`" not in page] == []


def written_by(cockpit: Cockpit, audit_log: AuditLog, mark: Mark) -> list[Request]:
    """What the autopilot has written, but for events and what is staged."""
    return [
        one
        for one in audit_log.since(mark)
        if one.user == cockpit.account.user and one.is_write and "dryRun" not in one.uri
        if one.resource != "events" and one.name != STAGING
    ]


async def wants_another(cockpit: Cockpit, before: str) -> bool:
    return (await staged(cockpit))[KUBELET].desired_hash != before


async def has_our_rules(cockpit: Cockpit) -> bool:
    return all(group["rules"] for group in spec_of(await cockpit.live("prometheus-alerts"))["groups"])


def acceptable(obj: Object) -> Object:
    """Texts that were left out of the recording are no rules, and addresses are of another network."""
    if obj["kind"] == "Service":
        return obj | {"spec": {name: value for name, value in obj["spec"].items() if "clusterIP" not in name}}
    if obj["kind"] != "PrometheusRule":
        return obj
    groups = [group | {"rules": []} for group in obj["spec"]["groups"]]
    return obj | {"spec": {"groups": groups}}


def obsolete(config: Object) -> Object:
    """An object of an asset that the other one has and we do not."""
    return config | {"metadata": config["metadata"] | {"name": OBSOLETE}, "spec": {"kernelArguments": ["obsolete"]}}
