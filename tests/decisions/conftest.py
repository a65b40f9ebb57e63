"""Fixtures: an admin of a cluster that serves VirtPlatformConfigs, and has none."""

from collections.abc import AsyncIterator

import pytest

from tests.console.objects import no_config
from tests.widgets import install_crd
from virt_steward.apis.profiles import EXAMPLE
from virt_steward.apis.virtplatformconfig import VIRT_PLATFORM_CONFIG_CRD
from virt_steward.kube.client import Client


@pytest.fixture
async def configs(admin: Client) -> AsyncIterator[Client]:
    await install_crd(admin, VIRT_PLATFORM_CONFIG_CRD.manifest())
    await no_config(admin, EXAMPLE)
    yield admin
    await no_config(admin, EXAMPLE)
