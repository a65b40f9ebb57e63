"""`virt-steward demo`: a platform with all controllers on this machine, to try out; with --tour, a checked tour."""

from __future__ import annotations

import asyncio
import os
import shlex
import signal
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from virt_steward import logs
from virt_steward.app import stop_on_signals
from virt_steward.runtime.addresses import loopback_only, parse_address
from virt_steward_demo.local.binaries import find_or_build
from virt_steward_demo.local.controlplane import ControlPlane
from virt_steward_demo.local.progress import ProgressPrinter
from virt_steward_demo.simulation.platform import PlatformShape
from virt_steward_demo.tour import sample_objects
from virt_steward_demo.tour.environment import start_demo_cluster
from virt_steward_demo.tour.members import DemoFleet
from virt_steward_demo.tour.narrator import Narrator
from virt_steward_demo.tour.walkthroughs import WALKTHROUGHS

if TYPE_CHECKING:
    from virt_steward.runtime.addresses import Address
    from virt_steward_demo.tour.environment import DemoCluster

TOUR_PACE = 0.5
ADDRESS = "--console-bind-address"

TRY = """
Running on this machine, on loopback only:
  control plane   {server}
  member clusters {members}
  controllers     {controllers}, each with only the rights that 'virt-steward rbac' prints
  console         {console}
  warnings        {log}

Three things to try, in another terminal:
  export KUBECONFIG={kubeconfig}
  kubectl patch virtplatformconfig load-aware-rebalancing --type merge -p '{{"spec":{{"action":"DryRun"}}}}'
      # drafts a plan; review it in the console, or with .venv/bin/virt-steward explain plan load-aware-rebalancing
  kubectl -n team-backup patch subscriptions.operators.coreos.com backup-operator --type merge \\
    -p '{{"spec":{{"startingCSV":"backup-operator.v2.1.0"}}}}'
      # wait until 2.1.0 is pending (page Approvals, about 15 s); this moves the pin, and the plan is approved
  kubectl -n openshift-cnv label servicemonitor virt-platform-autopilot-metrics app=mine --overwrite
      # changes a managed label; the autopilot reverts it

Ctrl-C stops it and leaves nothing behind.
"""


def demo(
    *,
    tour: Annotated[
        bool, typer.Option("--tour", help="Run a walkthrough of each controller, check every step, and exit.")
    ] = False,
    pace: Annotated[float, typer.Option(min=0.0, help="Seconds that a simulated node takes to reboot.")] = 5.0,
    console: Annotated[
        str, typer.Option(ADDRESS, metavar="ADDRESS", help="Loopback address of the console; 0 turns it off.")
    ] = "127.0.0.1:8090",
) -> None:
    """Start a simulated platform with all controllers.

    It runs on this machine, with the console, and prints what to try.
    """
    address = parse_address(ADDRESS, console)
    served_at = loopback_only(address) if address else None  # sign-in links are only for loopback
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # like Ctrl-C: everything that was started is stopped
    logs.configure("auto", "error")
    progress = ProgressPrinter()
    binaries = find_or_build(os.environ, progress)
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="virt-steward-demo-")))
        log = folder / "log"
        if not tour:  # a person reads the terminal: the link to the console stays its last line
            logs.configure("console", "warning", stack.enter_context(log.open("w")))
        progress.say("starting the control planes")
        fleet = stack.enter_context(DemoFleet(binaries, folder))
        control_plane = stack.enter_context(ControlPlane(binaries, folder / "main"))
        if tour:
            asyncio.run(_tour(control_plane, fleet))
        else:
            asyncio.run(_run(control_plane, fleet, PlatformShape(pace=pace), served_at, log))
    progress.say("stopped; nothing is left behind")


async def _run(
    control_plane: ControlPlane, fleet: DemoFleet, shape: PlatformShape, console: Address | None, log: Path
) -> None:
    links: asyncio.Queue[str] = asyncio.Queue()
    async with start_demo_cluster(control_plane, fleet, shape, console, links.put_nowait) as cluster:
        await _create_sample_objects(cluster)
        stop = stop_on_signals()  # before this, Ctrl-C exits at once
        typer.echo(
            TRY.format(
                server=control_plane.server,
                members=", ".join(member.name for member in fleet.members),
                controllers=", ".join(cluster.controllers),
                console="open the link in the last line" if console else "turned off",
                log=log,
                kubeconfig=shlex.quote(str(control_plane.kubeconfig)),
            )
        )
        async with asyncio.TaskGroup() as group:
            printing = group.create_task(_print_links(links))
            await stop.wait()
            printing.cancel()


async def _print_links(links: asyncio.Queue[str]) -> None:
    """A link works once. When it is used, the console makes the next one. It comes after all other text."""
    while True:
        typer.echo(await links.get())


async def _create_sample_objects(cluster: DemoCluster) -> None:
    """Create objects for every page: a pinned operator, assets, a descheduler to tune, and Machines."""
    await sample_objects.create_pinned_operator(cluster.client)
    await sample_objects.enable_autopilot(cluster.client)
    await sample_objects.create_descheduler(cluster.client)
    await sample_objects.create_machine(cluster.client, "reports")
    await sample_objects.create_machine(
        cluster.client, "portal", cluster_selector="topology.kubernetes.io/region=north"
    )
    await sample_objects.create_machine(cluster.client, "batch", placement_strategy="least-loaded")
    await sample_objects.create_machine(cluster.client, "shop")


async def _tour(control_plane: ControlPlane, fleet: DemoFleet) -> None:
    narrator = Narrator(Console())
    async with start_demo_cluster(control_plane, fleet, PlatformShape(pace=TOUR_PACE), None, _ignore_link) as cluster:
        for walkthrough in WALKTHROUGHS:
            await walkthrough(cluster, narrator)
    narrator.say(f"\n{narrator.passed} checks passed in {narrator.seconds:.0f} s.")


def _ignore_link(_link: str) -> None:
    """The tour serves no console."""
