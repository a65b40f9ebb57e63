"""Fixtures: a simulated platform, the advisor's rights, and a rig to work at."""

import asyncio
import uuid
from collections.abc import AsyncIterator
from contextlib import AbstractContextManager, suppress
from pathlib import Path

import pytest

from tests.audit import AuditLog
from tests.clients import a_client
from tests.controllers.advisor.process import Asked, Start
from tests.controllers.advisor.rig import AdvisorRig
from tests.controllers.approver.process import ALONE, Process, a_process, home_of
from tests.grants import Account, an_account
from tests.leftovers import delete_all
from tests.widgets import install_crd
from virt_steward.apis.virtplatformconfig import VIRT_PLATFORM_CONFIG, VIRT_PLATFORM_CONFIG_CRD
from virt_steward.controllers.advisor.definition import definition
from virt_steward.controllers.advisor.options import AdvisorOptions
from virt_steward.controllers.advisor.records import name_of_record
from virt_steward.kube.client import Client, Selection
from virt_steward.kube.errors import NotFound
from virt_steward.objects.corekinds import CONFIG_MAP
from virt_steward.objects.identity import Key, Ref, key_of
from virt_steward.plans.preimage import CONTROLLER_REVISION, PROFILE
from virt_steward.runtime.access import Installation
from virt_steward_demo.local.controlplane import ControlPlane
from virt_steward_demo.simulation.install import make_namespace
from virt_steward_demo.simulation.kinds import NAMES
from virt_steward_demo.simulation.platform import NAMESPACES, PlatformShape, SimulatedPlatform


@pytest.fixture(scope="session")
def account(control_plane: ControlPlane) -> Account:
    """The advisor's, as `virt-steward rbac` prints it."""

    async def install() -> Account:
        namespace = f"steward-{uuid.uuid4().hex[:8]}"
        async with a_client(control_plane) as client:
            await install_crd(client, VIRT_PLATFORM_CONFIG_CRD.manifest())
            for name in (namespace, *NAMESPACES):
                await make_namespace(client, name)
            access = definition(AdvisorOptions(example_profile=True)).access
            return await an_account(client, access, Installation(namespace, prefix=namespace))

    return asyncio.run(install())


NEEDED = (
    "HyperConverged",
    "KubeDescheduler",
    "KubeletConfig",
    "MachineConfig",
    "MachineConfigPool",
    "VirtualMachine",
    "VirtualMachineInstance",
    "VirtualMachineInstanceMigration",
)


@pytest.fixture
def shape() -> PlatformShape:
    """Override it for another platform."""
    return PlatformShape(pace=0.02, without=tuple(name for name in NAMES if name not in NEEDED))


@pytest.fixture
async def platform(admin: Client, account: Account, shape: PlatformShape) -> AsyncIterator[SimulatedPlatform]:
    assert account
    async with SimulatedPlatform(admin, shape) as started:
        yield started


@pytest.fixture
async def rig(platform: SimulatedPlatform, account: Account) -> AsyncIterator[AdvisorRig]:
    """An admin at the platform; no config outlives the test."""
    client = platform.client
    await clear_configs(client, home_of(account))
    yield AdvisorRig(client)
    await clear_configs(client, home_of(account))


@pytest.fixture
async def configs(admin: Client, account: Account) -> AsyncIterator[Client]:
    """An admin where the kind is served, and nothing else need be."""
    await clear_configs(admin, home_of(account))
    yield admin
    await clear_configs(admin, home_of(account))


async def clear_configs(client: Client, home: str) -> None:
    """Delete configs, revisions and records; those are only where the advisor runs."""
    await delete_all(client, VIRT_PLATFORM_CONFIG)
    for one in await client.list(CONTROLLER_REVISION, Selection(labels=PROFILE)):
        await client.delete(Ref(CONTROLLER_REVISION, key_of(one)))
    for one in await client.list(CONFIG_MAP, Selection(home)):
        if key_of(one).name.startswith(name_of_record("")):
            await client.delete(Ref(CONFIG_MAP, key_of(one)))
    with suppress(NotFound):
        await client.delete(Ref(CONFIG_MAP, Key("openshift-cnv", "example-config")))


@pytest.fixture
def asked(audit_log: AuditLog, account: Account) -> Asked:
    """What the advisor has asked of the server since the test began."""
    begin = audit_log.mark()
    return lambda: [one for one in audit_log.since(begin) if one.user == account.user]


@pytest.fixture
def start(control_plane: ControlPlane, account: Account, tmp_path: Path) -> Start:
    """Start the advisor as a process, with options or a fault."""

    def started(*options: str, fault: str = "") -> AbstractContextManager[Process]:
        kubeconfig = account.write_kubeconfig(tmp_path / "kubeconfig", control_plane)
        options = ("--example-profile", *(options or ALONE))
        return a_process(kubeconfig, home_of(account), *options, fault=fault, controller="advisor")

    return started
