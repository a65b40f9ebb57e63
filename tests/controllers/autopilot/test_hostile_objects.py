"""Objects that others have filled with nonsense: what depends on them fails with a reason, all else is applied."""

from typing import Any
from urllib.parse import quote

import pytest

from tests.catalog.builders import a_kubelet_config, a_machine_config, a_pool
from tests.controllers.autopilot.everything import HARDWARE
from tests.controllers.autopilot.rig import AutopilotRig, spec_of
from tests.controllers.autopilot.staging_rig import DROP_IN, has_pods
from tests.eventually import eventually
from virt_steward.controllers.autopilot.options import HCO
from virt_steward.objects.corekinds import NODE
from virt_steward.objects.identity import Key, Ref
from virt_steward.platform.hco import HYPERCONVERGED
from virt_steward.ssa.managers import AUTOPILOT
from virt_steward_demo.simulation.platform import PlatformShape

KUBELET = "kubelet-perf-settings"
INJECTION = "1\n    authorization:\n      mode: AlwaysAllow"
THE_HCO = Ref(HYPERCONVERGED, HCO)


@pytest.fixture
def shape() -> PlatformShape:
    return PlatformShape(machines_per_worker=0, packages=(), nodes=(HARDWARE,))


async def set_max_pods(rig: AutopilotRig, value: Any) -> None:
    spec = {"deployment": {"nodePlacements": {"infra": {"maxPods": value}}}}
    await rig.client.merge_patch(THE_HCO, {"spec": spec}, manager="admin")


async def test_injected_field_leaves_object_once_input_is_corrected(running_rig: AutopilotRig) -> None:
    """Another instance wrote such a field as ours; while the input is bad the object stays, and then the field goes."""
    name = running_rig.ref(KUBELET).key.name
    file = {"path": DROP_IN, "contents": {"source": f"data:,{quote(INJECTION)}"}, "mode": 420, "overwrite": True}
    injected = a_machine_config(name, config={"storage": {"files": [file]}})
    await running_rig.client.apply(injected, manager=AUTOPILOT.name)
    await set_max_pods(running_rig, INJECTION)
    asked = {"enable_kubelet_performance_settings": "true", "rollout": "immediate"}
    await running_rig.activate(f"{KUBELET},metrics-service", **asked)
    assert await eventually(lambda: running_rig.has_event("RenderFailed", KUBELET), within=30)
    [event] = await running_rig.events("RenderFailed", KUBELET)
    assert event["note"].endswith("an integer is needed here, not text")
    assert await eventually(lambda: running_rig.is_there("metrics-service"), within=30), "which comes later"
    await set_max_pods(running_rig, 250)

    async def is_clean() -> bool:
        source = spec_of(await running_rig.live(KUBELET))["config"]["storage"]["files"][0]["contents"]["source"]
        return "AlwaysAllow" not in source and await has_pods(running_rig, 250)

    assert await eventually(is_clean, within=30)


async def test_hostile_objects_stop_only_what_reads_them(running_rig: AutopilotRig) -> None:
    note = {"example.org/note": "x" * 200_000}
    steering = {f"platform.kubevirt.io/nonsense-{number}": "[{" * 1000 for number in range(20)}
    node = Ref(NODE, Key("", HARDWARE.name))
    await running_rig.client.merge_patch(node, {"metadata": {"annotations": note}}, manager="tenant")
    spec = {
        "liveMigrationConfig": {"parallelMigrationsPerCluster": "five\nspec: {}"},
        "virtualization": {
            "permittedHostDevices": {"pciHostDevices": [{"resourceName": "x", "pciDeviceSelector": INJECTION}]}
        },
    }
    await running_rig.client.merge_patch(
        THE_HCO, {"metadata": {"annotations": steering}, "spec": spec}, manager="tenant"
    )
    for hostile in (
        a_pool("odd", {"matchExpressions": [{"key": "a", "operator": "In", "values": ["x" * 60] * 1000}]}),
        a_machine_config("99-odd", config={"storage": {"files": ["x"]}, "systemd": 1}),
        a_kubelet_config("odd", pool="x" * 50),
    ):
        await running_rig.client.create(hostile | {"metadata": hostile["metadata"] | {"annotations": note}})
    await running_rig.activate("true", enable_drs="true", enable_kubelet_performance_settings="true")
    applied = ("metrics-service", "descheduler-loadaware", "swap-enable", KUBELET, "prometheus-alerts")
    for asset in applied:
        assert await eventually(lambda asset=asset: running_rig.is_there(asset), within=60), asset  # type: ignore[misc]
    assert await running_rig.events("ApplyFailed") == []
