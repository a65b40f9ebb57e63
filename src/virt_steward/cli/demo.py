"""`virt-steward demo`: a local control plane with everything that exists on it, to try things on."""

from __future__ import annotations

import asyncio
import os
import shlex
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from virt_steward import app, logs
from virt_steward.apis import CRDS
from virt_steward.apis.installplanapprover import INSTALL_PLAN_APPROVER
from virt_steward.app import connected, stop_on_signals
from virt_steward.controllers import CONTROLLERS
from virt_steward.local import accounts, platform
from virt_steward.local.binaries import find_or_build
from virt_steward.local.controlplane import ControlPlane
from virt_steward.local.progress import Narrator
from virt_steward.runtime.access import NAMESPACE, Installation
from virt_steward.runtime.leader import LeaseTimes
from virt_steward.runtime.probes import Addresses
from virt_steward.settings import Settings
from virt_steward.ssa import managers

if TYPE_CHECKING:
    from virt_steward.kube.client import Client
    from virt_steward.runtime.access import Access

TRY = """
Running on this machine, on loopback only:
  control plane   {server}
  controllers     {controllers}, each with the rights that 'virt-steward rbac' prints, and no more

Two namespaces hold an operator subscription that is pinned to a version:
  demo-pinned     OLM offers that version: the approver has approved its InstallPlan
  demo-upgrade    that version is installed and OLM offers a newer one: the plan waits, and its status says what for

Three things to try, in another terminal:
  export KUBECONFIG={kubeconfig}
  kubectl get installplanapprovers -A -o wide
  .venv/bin/virt-steward explain installplan demo-upgrade/install-backup-operator
  kubectl -n demo-upgrade patch subscriptions.operators.coreos.com backup-operator --type merge \\
    -p '{{"spec":{{"startingCSV":"backup-operator.v2.1.0"}}}}'   # move the pin, and see the plan approved

Ctrl-C stops it and leaves nothing behind.
"""


def demo() -> None:
    """Start a control plane on this machine with all controllers, and say what to try."""
    logs.configure("auto", "warning")
    narrator = Narrator()
    binaries = find_or_build(os.environ, narrator)
    with tempfile.TemporaryDirectory(prefix="virt-steward-demo-") as folder:
        narrator.say("starting the control plane")
        with ControlPlane(binaries, Path(folder)) as control_plane:
            asyncio.run(_play(control_plane, narrator))
    narrator.say("stopped; nothing is left behind")


async def _play(control_plane: ControlPlane, narrator: Narrator) -> None:
    stop = stop_on_signals()
    narrator.say("starting the controllers")
    async with connected(str(control_plane.kubeconfig), None) as client:
        await platform.install(client, (*platform.OLM_DEFINITIONS, *(crd.manifest() for crd in CRDS)))
        await platform.make_namespace(client, NAMESPACE)
        controllers = [await _settings(control_plane, client, definition.access) for definition in CONTROLLERS]
        async with asyncio.TaskGroup() as running:
            for settings, definition in zip(controllers, CONTROLLERS, strict=True):
                running.create_task(app.run(settings, (definition,), stop))
            await _set_the_scene(client)
            names = ", ".join(definition.name for definition in CONTROLLERS)
            kubeconfig = shlex.quote(str(control_plane.kubeconfig))
            typer.echo(TRY.format(server=control_plane.server, controllers=names, kubeconfig=kubeconfig))
            await stop.wait()


async def _settings(control_plane: ControlPlane, client: Client, access: Access) -> Settings:
    """As the controller's own ServiceAccount, alone, and without servers that could be in somebody's way."""
    token = await accounts.token_of(client, access, Installation())
    kubeconfig = control_plane.kubeconfig.with_name(f"kubeconfig-{access.controller}")
    accounts.write_kubeconfig(kubeconfig, control_plane, token)
    return Settings(
        kubeconfig=str(kubeconfig),
        context=None,
        namespace=NAMESPACE,
        leader_elect=False,
        lease=LeaseTimes(),
        grace=1.0,
        addresses=Addresses(None, None, None),
    )


async def _set_the_scene(client: Client) -> None:
    """An approver for all namespaces, a plan that it approves, and one that has to wait."""
    await client.apply(
        {
            "apiVersion": f"{INSTALL_PLAN_APPROVER.group}/v1alpha1",
            "kind": INSTALL_PLAN_APPROVER.name,
            "metadata": {"name": "everywhere", "namespace": NAMESPACE},
        },
        manager=managers.INSTALL.name,
    )
    old, new = "backup-operator.v2.0.0", "backup-operator.v2.1.0"
    for namespace, offered, installed in (("demo-pinned", old, ""), ("demo-upgrade", new, old)):
        await platform.make_namespace(client, namespace)
        await platform.offer_operator(client, namespace, pinned=old, offered=offered, installed=installed)
