"""A drop-in of the kubelet overrides a KubeletConfig, so ours never comes where somebody else has one."""

from tests.catalog.builders import a_kubelet_config
from tests.controllers.autopilot.cockpit import Cockpit
from tests.eventually import eventually
from virt_steward.objects.identity import ref_of

ASSET = "kubelet-perf-settings"


async def test_kubelet_config_of_an_admin_wins(flying: Cockpit) -> None:
    theirs = a_kubelet_config("more-pods")
    await flying.client.create(theirs)
    await flying.engage(f"{ASSET},metrics-service", enable_kubelet_performance_settings="true")
    assert await eventually(lambda: flying.is_there("metrics-service"), within=30), "which comes later"
    assert not await flying.is_there(ASSET)
    await flying.client.delete(ref_of(theirs))
    assert await eventually(lambda: flying.is_there(ASSET), within=30)
    await flying.client.create(theirs)
    await flying.engage("true")
    assert await eventually(lambda: flying.told("AssetApplied", "descheduler-dashboard"), within=60)
    assert await flying.is_there(ASSET), "it works, so it is not withdrawn"
