"""`virt-steward demo`: everything on this machine, to look at and to try; and a tour through all of it."""

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
from virt_steward_demo.tour import scene
from virt_steward_demo.tour.members import DemoFleet
from virt_steward_demo.tour.narrator import Narrator
from virt_steward_demo.tour.stage import set_up
from virt_steward_demo.tour.stories import STORIES

if TYPE_CHECKING:
    from virt_steward.runtime.addresses import Address
    from virt_steward_demo.tour.stage import DemoCluster

TOUR_PACE = 0.5
ADDRESS = "--console-bind-address"

TRY = """
Running on this machine, on loopback only:
  control plane   {server}
  other clusters  {members}
  controllers     {controllers}, each with the rights that 'virt-steward rbac' prints, and no more
  console         {console}

Three things to try, in another terminal:
  export KUBECONFIG={kubeconfig}
  kubectl patch virtplatformconfig load-aware-rebalancing --type merge -p '{{"spec":{{"action":"DryRun"}}}}'
      # then look at the plan: in the console, or with .venv/bin/virt-steward explain plan load-aware-rebalancing
  kubectl -n team-backup patch subscriptions.operators.coreos.com backup-operator --type merge \\
    -p '{{"spec":{{"startingCSV":"backup-operator.v2.1.0"}}}}'
      # once 2.1.0 waits (see Approvals; it takes about 15 s): this moves the pin, and the plan is approved
  kubectl -n openshift-cnv label service virt-platform-autopilot-metrics app=mine --overwrite
      # and see the autopilot set it right

Ctrl-C stops it and leaves nothing behind.
"""


def demo(
    *,
    tour: Annotated[bool, typer.Option("--tour", help="Play every story, check that it comes true, and exit.")] = False,
    pace: Annotated[float, typer.Option(min=0.0, help="Seconds that a simulated node takes to reboot.")] = 5.0,
    console: Annotated[
        str, typer.Option(ADDRESS, metavar="ADDRESS", help="Where on loopback the console is served; 0 turns it off.")
    ] = "127.0.0.1:8090",
) -> None:
    """Start a simulated platform on this machine with all controllers and the console, and say what to try."""
    address = parse_address(ADDRESS, console)
    served_at = loopback_only(address) if address else None  # anywhere else, no link may be offered
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # as Ctrl-C: all that was started is taken away
    logs.configure("auto", "error" if tour else "warning")
    narrator = ProgressPrinter()
    binaries = find_or_build(os.environ, narrator)
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="virt-steward-demo-")))
        narrator.say("starting the control planes")
        fleet = stack.enter_context(DemoFleet(binaries, folder))
        control_plane = stack.enter_context(ControlPlane(binaries, folder / "main"))
        if tour:
            asyncio.run(_tour(control_plane, fleet))
        else:
            asyncio.run(_play(control_plane, fleet, PlatformShape(pace=pace), served_at))
    narrator.say("stopped; nothing is left behind")


async def _play(control_plane: ControlPlane, fleet: DemoFleet, shape: PlatformShape, console: Address | None) -> None:
    links: asyncio.Queue[str] = asyncio.Queue()
    async with set_up(control_plane, fleet, shape, console, links.put_nowait) as stage:
        await _set_the_scene(stage)
        stop = stop_on_signals()  # until here, Ctrl-C ends it at once
        typer.echo(
            TRY.format(
                server=control_plane.server,
                members=", ".join(member.name for member in fleet.members),
                controllers=", ".join(stage.controllers),
                console=(await links.get()).removeprefix("console: ") if console else "turned off",
                kubeconfig=shlex.quote(str(control_plane.kubeconfig)),
            )
        )
        async with asyncio.TaskGroup() as beside:
            saying = beside.create_task(_say_each(links))
            await stop.wait()
            saying.cancel()


async def _say_each(links: asyncio.Queue[str]) -> None:
    """A link works once; the next one is made when it is used."""
    while True:
        typer.echo(await links.get())


async def _set_the_scene(stage: DemoCluster) -> None:
    """Something for every page: a pinned operator, machines, assets, and a descheduler to tune."""
    await scene.pin_an_operator(stage.client)
    await scene.engage_the_autopilot(stage.client)
    await scene.set_up_a_descheduler(stage.client)
    await scene.add_a_machine(stage.client, "reports")
    await scene.add_a_machine(stage.client, "portal", cluster_selector="topology.kubernetes.io/region=north")
    await scene.add_a_machine(stage.client, "shop")


async def _tour(control_plane: ControlPlane, fleet: DemoFleet) -> None:
    reporter = Narrator(Console())
    async with set_up(control_plane, fleet, PlatformShape(pace=TOUR_PACE), None, _unheard) as stage:
        for story in STORIES:
            await story(stage, reporter)
    reporter.say(f"\n{reporter.checks} things were told and came true, in {reporter.seconds:.0f} s.")


def _unheard(_link: str) -> None:
    """A tour opens no console."""
