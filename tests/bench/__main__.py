"""Run all measurements on their own control plane, and print them: `python -m tests.bench [--json FILE]`."""

import argparse
import asyncio
import tempfile
from pathlib import Path

import msgspec
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from tests.audit import AuditLog
from tests.bench import cpu, drift, latency, memory, silence
from tests.bench.bare import Bare
from tests.bench.figures import Figure, Report
from tests.clients import a_client
from tests.cluster import a_control_plane
from tests.installplans import DEFINITION
from tests.widgets import install_crd
from virt_steward import logs
from virt_steward_demo.local.controlplane import ControlPlane
from virt_steward_demo.local.progress import ProgressPrinter


async def measure(control_plane: ControlPlane, progress: ProgressPrinter, folder: Path) -> Report:
    async with a_client(control_plane) as client:
        await install_crd(client, DEFINITION)
        bare = await Bare.on(client)
        audit_log = AuditLog(control_plane.audit_log)
        progress.say("measuring latency")
        times = await latency.measure(client, bare, audit_log)
        looks = await silence.measure(client, audit_log)
        progress.say("measuring drift")
        reverts = await drift.measure(client, control_plane, bare, folder)
        progress.say("measuring memory")
        space = await memory.measure(client, control_plane.kubeconfig)
        progress.say("measuring CPU")
        effort = await cpu.measure(client, bare, control_plane.kubeconfig)
    return Report((*times.figures, reverts, effort, space), (*times.counts, looks))


def table_of(report: Report) -> Table:
    table = Table(box=SIMPLE_HEAD, padding=(0, 1), pad_edge=False)
    table.add_column("", no_wrap=True)
    for heading in ("median", "ratio", "by round", "p90"):
        table.add_column(heading, justify="right")
    table.add_column("ratio to")
    for figure in report.figures:
        table.add_row(*_cells(figure))
    for count in report.counts:
        table.add_row(count.name, f"{count.value:.2f}")
    return table


def _cells(figure: Figure) -> tuple[str, ...]:
    low, high = figure.spread
    return (
        figure.name,
        f"{figure.median:.2f} {figure.unit}",
        f"{figure.ratio:.2f}",
        f"{low:.2f}-{high:.2f}",
        f"{figure.ratio_of_p90:.2f}",
        figure.baseline,
    )


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description=__doc__)
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the figures to this file")
    arguments = parser.parse_args()
    logs.configure("console", "error")
    with tempfile.TemporaryDirectory(prefix="virt-steward-bench-") as folder, a_control_plane(Path(folder)) as started:
        report = asyncio.run(measure(started, ProgressPrinter(), Path(folder)))
    Console().print(table_of(report))
    if arguments.json:
        arguments.json.write_bytes(msgspec.json.format(msgspec.json.encode(report.document())) + b"\n")


if __name__ == "__main__":
    main()
