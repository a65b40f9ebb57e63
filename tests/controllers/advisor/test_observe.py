"""What is seen must be fresh before anything follows from it."""

from tests.controllers.advisor.builders import NOON
from tests.controllers.advisor.desk import Desk
from virt_steward.apis.virtplatformconfig import EXAMPLE
from virt_steward.controllers.advisor.options import Options
from virt_steward.controllers.advisor.watches import CONFIGS
from virt_steward.insight.outlook import look
from virt_steward.insight.plans import profile_named
from virt_steward.kube.client import Client
from virt_steward.objects.identity import Key
from virt_steward.runtime.informer import State


async def test_nothing_follows_from_a_config_that_may_have_changed_unseen(configs: Client) -> None:
    await Desk(configs, EXAMPLE).ask("Apply")
    outlook = await look(configs, Options())
    config = outlook.config(Key("", EXAMPLE))
    assert config
    profile = profile_named(EXAMPLE, Options())
    assert outlook.observe(config, profile, NOON).unsettled == ""
    for informer in outlook.informers.of(CONFIGS).informers:
        informer.state = State.BROKEN
    assert "VirtPlatformConfig" in outlook.observe(config, profile, NOON).unsettled
