"""All that plays in the demo: a cluster with its platform, other clusters, every controller, and the console."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from virt_steward import app
from virt_steward.apis import CRDS
from virt_steward.console.access import ACCESS as CONSOLE_ACCESS
from virt_steward.controllers import NAMES, definition
from virt_steward.controllers.options import Options
from virt_steward.controllers.placement.options import Options as PlacementOptions
from virt_steward.local import accounts
from virt_steward.local.simulation.install import install, make_namespace
from virt_steward.local.simulation.platform import Platform, Shape
from virt_steward.runtime.access import NAMESPACE, Installation
from virt_steward.runtime.leader import LeaseTimes
from virt_steward.runtime.probes import Addresses
from virt_steward.settings import ConsoleSettings, Settings

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from virt_steward.demo.members import Fleet
    from virt_steward.kube.client import Client
    from virt_steward.local.controlplane import ControlPlane
    from virt_steward.runtime.access import Access
    from virt_steward.runtime.addresses import Address

INSTALLATION = Installation(secret_namespaces=(NAMESPACE,))
PROBES = 3.0
"""Seconds between looks at the other clusters: quicker than in earnest, since somebody watches."""
OPTIONS = Options(placement=PlacementOptions(probe_interval=PROBES))


@dataclass(frozen=True, slots=True)
class Stage:
    client: Client
    """An admin's."""
    platform: Platform
    fleet: Fleet
    controllers: tuple[str, ...]


@asynccontextmanager
async def set_up(
    control_plane: ControlPlane, fleet: Fleet, shape: Shape, console: Address | None, tell: Callable[[str], None]
) -> AsyncIterator[Stage]:
    """Everything runs until the end of the block."""
    async with AsyncExitStack() as stack:
        client = await stack.enter_async_context(app.connected(str(control_plane.kubeconfig), None))
        await make_namespace(client, NAMESPACE)
        await install(client, *(crd.manifest() for crd in CRDS))
        platform = await stack.enter_async_context(Platform(client, shape))
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
            running.create_task(app.run(settings, (), stop, tell), name="console")
        yield Stage(client, platform, fleet, NAMES)


async def _settings(
    control_plane: ControlPlane, client: Client, access: Access, console: Address | None = None
) -> Settings:
    """As the part's own ServiceAccount, alone, and without servers that could be in somebody's way."""
    token = await accounts.token_of(client, access, INSTALLATION)
    kubeconfig = control_plane.kubeconfig.with_name(f"kubeconfig-{access.controller}")
    accounts.write_kubeconfig(kubeconfig, control_plane, token)
    owner = str(control_plane.kubeconfig)
    return Settings(
        kubeconfig=str(kubeconfig),
        context=None,
        namespace=NAMESPACE,
        leader_elect=False,
        lease=LeaseTimes(),
        grace=1.0,
        addresses=Addresses(None, None, None),
        options=OPTIONS,
        console=ConsoleSettings(console, owner_kubeconfig=owner) if console else None,
    )
