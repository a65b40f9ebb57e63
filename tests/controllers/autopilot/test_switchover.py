"""Starts ours on what the Go autopilot leaves behind: no node reboots before somebody has released it."""

from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from tests.audit import AuditLog
from tests.controllers.autopilot.cockpit import Cockpit, Object, at_work, spec_of
from tests.controllers.autopilot.staging_rig import is_settled, is_staged, rendered, staged, writes
from tests.eventually import eventually
from tests.recordings import recording, restore
from virt_steward.kube.client import EVERYTHING
from virt_steward.objects.corekinds import NODE
from virt_steward.objects.identity import Key, Ref
from virt_steward.platform.machineconfigs import MACHINE_CONFIG
from virt_steward_demo.local.controlplane import ControlPlane
from virt_steward_demo.simulation.platform import PlatformShape

DEFAULT = {"swap-enable": "first contact", "kubelet-perf-settings": "create"}
OPT_INS = DEFAULT | dict.fromkeys(("ksm-zero-only", "thp-tuning", "vm-drain-shutdown-inhibitor"), "first contact")
EXPECTED = {"autopilot-default": DEFAULT, "autopilot-opt-ins": OPT_INS}
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
