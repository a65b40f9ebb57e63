"""Fixtures: a simulated platform, and the autopilot's rights on it."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.audit import AuditLog
from tests.controllers.autopilot.everything import options_for
from tests.controllers.autopilot.rig import AutopilotRig, at_work, installed_account
from tests.eventually import eventually
from tests.grants import Account
from virt_steward.apis.virtplatformconfig import VIRT_PLATFORM_CONFIG_CRD
from virt_steward.catalog.load import Catalog, load
from virt_steward.kube.client import Client
from virt_steward_demo.local.controlplane import ControlPlane
from virt_steward_demo.simulation.install import install
from virt_steward_demo.simulation.platform import PlatformShape, SimulatedPlatform


@pytest.fixture(scope="session")
def catalog() -> Catalog:
    return load()


@pytest.fixture(scope="session")
def account(control_plane: ControlPlane, catalog: Catalog) -> Account:
    return installed_account(control_plane, catalog)


@pytest.fixture
def shape() -> PlatformShape:
    """Tests override it."""
    return PlatformShape(machines_per_worker=0, packages=())


@pytest.fixture
async def rig(
    admin: Client, catalog: Catalog, account: Account, shape: PlatformShape, audit_log: AuditLog
) -> AsyncIterator[AutopilotRig]:
    """The platform without the autopilot."""
    async with SimulatedPlatform(admin, shape) as platform:
        await install(admin, VIRT_PLATFORM_CONFIG_CRD.manifest())
        rig = AutopilotRig(admin, platform, catalog, account, options_for(catalog), audit_log.mark())
        assert await eventually(rig.is_clear)
        yield rig
        await rig.clear()


@pytest.fixture
async def running_rig(
    rig: AutopilotRig, control_plane: ControlPlane, tmp_path: Path, audit_log: AuditLog
) -> AsyncIterator[AutopilotRig]:
    """The autopilot at work; whatever it asks for, it may have."""
    async with at_work(rig, control_plane, tmp_path):
        yield rig
    assert rig.account.denied(audit_log.since(rig.begin)) == []
