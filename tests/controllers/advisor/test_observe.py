"""What is seen must be fresh before anything follows from it."""

from collections.abc import Iterable
from typing import Any

from structlog.testing import capture_logs

from tests.controllers.advisor.builders import NOON
from tests.controllers.advisor.rig import AdvisorRig, advising, the_config
from tests.eventually import eventually
from tests.grants import Account
from tests.widgets import install_crd
from virt_steward.apis.profiles import EXAMPLE
from virt_steward.apis.virtplatformconfig import VIRT_PLATFORM_CONFIG, VIRT_PLATFORM_CONFIG_CRD
from virt_steward.controllers.advisor.integrity import unauthenticated
from virt_steward.controllers.advisor.options import AdvisorOptions
from virt_steward.controllers.advisor.watches import CONFIGS
from virt_steward.insight.cluster_view import read_advisor_view
from virt_steward.insight.plans import profile_named
from virt_steward.kube.client import Client
from virt_steward.objects.identity import Key, Kind, ref_of
from virt_steward.runtime.informer import InformerState
from virt_steward_demo.local.controlplane import ControlPlane


async def test_observation_is_unsettled_while_watch_is_broken(configs: Client) -> None:
    await AdvisorRig(configs, EXAMPLE).ask("Apply")
    options = AdvisorOptions(example_profile=True)
    view = await read_advisor_view(configs, options)
    config = view.config(Key("", EXAMPLE))
    assert config
    profile = profile_named(EXAMPLE, options)
    assert view.observe(unauthenticated(config), profile, NOON).unsettled == ""
    for informer in view.informers.of(CONFIGS).informers:
        informer.state = InformerState.BROKEN
    assert "VirtPlatformConfig" in view.observe(unauthenticated(config), profile, NOON).unsettled


async def test_profiles_are_offered_again_when_crd_returns(
    configs: Client, control_plane: ControlPlane, account: Account
) -> None:
    rig = AdvisorRig(configs)
    definition = VIRT_PLATFORM_CONFIG_CRD.manifest()

    async def is_offered() -> bool:
        return await rig.exists(the_config())

    async with advising(control_plane, account):
        assert await eventually(is_offered)
        try:
            with capture_logs() as logged:
                await rig.client.delete(ref_of(definition))
                assert await eventually(lambda: is_absent(logged, VIRT_PLATFORM_CONFIG), within=20)
        finally:
            await install_crd(rig.client, definition)
        assert await eventually(is_offered)


def is_absent(logged: Iterable[Any], kind: Kind) -> bool:
    """Whether the advisor has found out that a kind is not served."""
    told = {"event": "watch settled", "kind": str(kind), "state": InformerState.ABSENT.value}
    return any(told.items() <= one.items() for one in logged)
