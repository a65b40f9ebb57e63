"""A drop-in of the kubelet overrides a KubeletConfig, so ours never comes where somebody else has one."""

from tests.catalog.builders import a_kubelet_config
from tests.controllers.autopilot.rig import AutopilotRig
from tests.eventually import eventually
from virt_steward.objects.identity import ref_of

ASSET = "kubelet-perf-settings"


async def test_kubelet_config_of_an_admin_wins(running_rig: AutopilotRig) -> None:
    theirs = a_kubelet_config("more-pods")
    await running_rig.client.create(theirs)
    await running_rig.activate(f"{ASSET},metrics-service", enable_kubelet_performance_settings="true")
    assert await eventually(lambda: running_rig.is_there("metrics-service"), within=30), "which comes later"
    assert not await running_rig.is_there(ASSET)
    await running_rig.client.delete(ref_of(theirs))
    assert await eventually(lambda: running_rig.is_there(ASSET), within=30)
    await running_rig.client.create(theirs)
    await running_rig.activate("true")
    assert await eventually(lambda: running_rig.has_event("AssetApplied", "descheduler-dashboard"), within=60)
    assert await running_rig.is_there(ASSET), "it works, so it is not withdrawn"
