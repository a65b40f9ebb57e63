"""Everything that the demo runs: a cluster with a simulated platform, member clusters, all controllers, the console."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from virt_steward import app
from virt_steward.apis.crds import CRDS
from virt_steward.console.access import ACCESS as CONSOLE_ACCESS
from virt_steward.controllers import NAMES, definition
from virt_steward.controllers.options import ControllerOptions
from virt_steward.controllers.placement.options import PlacementOptions
from virt_steward.packaging.parts import POLICIES
from virt_steward.runtime.access import NAMESPACE, Installation
from virt_steward.runtime.leader import LeaseTimes
from virt_steward.runtime.probes import Addresses
from virt_steward.settings import ConsoleSettings, Settings
from virt_steward.ssa import managers
from virt_steward_demo.local import accounts
from virt_steward_demo.simulation.install import install, make_namespace
from virt_steward_demo.simulation.platform import PlatformShape, SimulatedPlatform

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from virt_steward.kube.client import Client
    from virt_steward.runtime.access import Access
    from virt_steward.runtime.addresses import Address
    from virt_steward_demo.local.controlplane import ControlPlane
    from virt_steward_demo.tour.members import DemoFleet

INSTALLATION = Installation(secret_namespaces=(NAMESPACE,))
PROBE_INTERVAL = 3.0
"""Seconds between two probes of a member cluster: less than the default, since a person is watching."""
OPTIONS = ControllerOptions(placement=PlacementOptions(probe_interval=PROBE_INTERVAL))


@dataclass(frozen=True, slots=True)
class DemoCluster:
    client: Client
    """A client with the rights of an admin."""
    platform: SimulatedPlatform
    fleet: DemoFleet
    controllers: tuple[str, ...]


@asynccontextmanager
async def start_demo_cluster(
    control_plane: ControlPlane,
    fleet: DemoFleet,
    shape: PlatformShape,
    console: Address | None,
    print_link: Callable[[str], None],
) -> AsyncIterator[DemoCluster]:
    """Run everything until the end of the block."""
    async with AsyncExitStack() as stack:
        client = await stack.enter_async_context(app.connected(str(control_plane.kubeconfig), None))
        await make_namespace(client, NAMESPACE)
        await install(client, *(crd.manifest() for crd in CRDS))
        for policy in POLICIES:
            await client.apply(policy, manager=managers.INSTALL.name, force=True)
        platform = await stack.enter_async_context(SimulatedPlatform(client, shape))
        await fleet.join(client)
        definitions = [definition(name, OPTIONS) for name in NAMES]
        stop = asyncio.Event()
        running = await stack.enter_async_context(asyncio.TaskGroup())
        stack.callback(stop.set)
        for one in definitions:
            settings = await _settings(control_plane, client, one.access)
            running.create_task(app.run(settings, (one,), stop), name=one.name)
        if console:
            settings = await _settings(control_plane, client, CONSOLE_ACCESS, console)
            running.create_task(app.run(settings, (), stop, print_link), name="console")
        yield DemoCluster(client, platform, fleet, NAMES)


async def _settings(
    control_plane: ControlPlane, client: Client, access: Access, console: Address | None = None
) -> Settings:
    """Settings with the component's own ServiceAccount; it serves no ports that could be taken already."""
    token = await accounts.token_of(client, access, INSTALLATION)
    kubeconfig = control_plane.kubeconfig.with_name(f"kubeconfig-{access.controller}")
    accounts.write_kubeconfig(kubeconfig, control_plane, token)
    owner = str(control_plane.kubeconfig)
    return Settings(
        kubeconfig=str(kubeconfig),
        context=None,
        namespace=NAMESPACE,
        leader_elect=True,  # so that another `virt-steward run` stands by
        lease=LeaseTimes(),
        grace=1.0,
        addresses=Addresses(None, None, None),
        options=OPTIONS,
        console=ConsoleSettings(console, owner_kubeconfig=owner) if console else None,
    )
