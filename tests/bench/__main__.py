"""Measure on a control plane of its own, and print a table. Compare ratios, not milliseconds.

Without options: the engine, as ratios to a bare request. `--does` measures one controller at work, `--against` other
operators on the same load. `--curves` shows how figures grow with the size.
"""

import argparse
import asyncio
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

import msgspec
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from tests.audit import AuditLog
from tests.bench import cpu, drift, latency, memory, silence, startup
from tests.bench.bare import Bare
from tests.bench.compare import Performance, compare
from tests.bench.curves import CURVES, Row
from tests.bench.figures import Figure, Report
from tests.bench.loads import LOADS
from tests.clients import a_client
from tests.cluster import a_control_plane
from tests.installplans import DEFINITION
from tests.widgets import install_crd
from virt_steward import logs
from virt_steward_demo.local.controlplane import ControlPlane
from virt_steward_demo.local.progress import ProgressPrinter

MEMORY_OF_SERVER = "6GiB"
"""An API server with 100,000 objects that has less spends its time collecting garbage."""
WIDTH = 140
"""Columns, at least: shorter lines would break headings."""


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
        progress.say("measuring starts")
        starts = await startup.measure(control_plane, folder)
        progress.say("measuring memory")
        space = await memory.measure(client, control_plane.kubeconfig)
        progress.say("measuring CPU")
        effort = await cpu.measure(client, bare, control_plane.kubeconfig)
    return Report((*times.figures, reverts, effort, *starts, space), (*times.counts, looks))


def console() -> Console:
    found = Console()
    found.width = max(found.width, WIDTH)
    return found


def table_of(report: Report) -> Table:
    table = Table(box=SIMPLE_HEAD, padding=(0, 1), pad_edge=False)
    table.add_column("", no_wrap=True)
    for heading in ("median", "ratio", "by round", "p90"):
        table.add_column(heading, justify="right", no_wrap=True)
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


def comparison(found: list[Performance]) -> Table:
    """Operators side by side, with the limit (a bare request) in the same table."""
    title = f"{found[0].reaction.name}, {found[0].size:,} {found[0].unit}"
    table = Table(title=title, title_justify="left", box=SIMPLE_HEAD, padding=(0, 1), pad_edge=False)
    table.add_column("", no_wrap=True)
    table.add_column("a bare request", justify="right")
    for one in found:
        table.add_column(one.operator, justify="right")
    for heading, limit, values in _rows(found):
        table.add_row(heading, limit, *values)
    return table


def _rows(found: list[Performance]) -> Iterator[tuple[str, str, list[str]]]:
    bare = median(one for performance in found for turn in performance.reaction.rounds for one in turn.baseline)
    yield "median, ms", f"{bare:.2f}", [f"{one.reaction.median:.2f}" for one in found]
    yield "ratio to a bare request", "1.00", [f"{one.reaction.ratio:.2f}" for one in found]
    yield "p90, ratio", "", [f"{one.reaction.ratio_of_p90:.2f}" for one in found]
    yield "requests", "1", [f"{one.requests:.1f}" for one in found]
    yield "CPU of the operator, ms", "", [f"{one.cpu:.2f}" for one in found]
    yield "memory, MiB", "", [f"{one.memory:.0f}" for one in found]
    yield "memory at most, MiB", "", [f"{one.peak:.0f}" for one in found]
    yield "start to first result, s", "", [f"{one.start:.2f}" for one in found]
    yield "requests per minute at rest", "", [f"{one.at_rest:.0f}" for one in found]


def curve_table(title: str, unit: str, rows: dict[int, Row]) -> Table:
    table = Table(title=title, title_justify="left", box=SIMPLE_HEAD, padding=(0, 1), pad_edge=False)
    for heading in (unit, *next(iter(rows.values()))):
        table.add_column(heading, justify="right")
    for size, row in rows.items():
        table.add_row(f"{size:,}", *(f"{value:.2f}" for value in row.values()))
    return table


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog='make bench DOES=approver AGAINST="COMMAND" ARGS="…"',
        usage='make bench DOES=approver AGAINST="COMMAND" ARGS="…"',
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--does", choices=LOADS, metavar="CONTROLLER", help=f"one of {', '.join(LOADS)}")
    parser.add_argument(
        "--against",
        action="append",
        default=[],
        metavar="COMMAND",
        help="an operator that does the same; {kubeconfig} and {namespace} are filled in, and KUBECONFIG is set",
    )
    parser.add_argument("--size", type=int, metavar="N", help="how many older InstallPlans, clusters, nodes or assets")
    parser.add_argument(
        "--curves", nargs="*", choices=(*CURVES, []), metavar="CURVE", help=f"all, or some of {', '.join(CURVES)}"
    )
    parser.add_argument("--most", type=int, metavar="N", help="leave out sizes above this")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the figures to this file")
    given = parser.parse_args()
    if given.against and not given.does:
        parser.error("--against needs --does: what the other operator does")
    return given


def main() -> None:
    given = arguments()
    logs.configure("console", "error")
    os.environ.setdefault("GOMEMLIMIT", MEMORY_OF_SERVER)
    busy, cores = os.getloadavg()[0], os.cpu_count() or 1
    if busy > cores:
        ProgressPrinter().say(f"load average {busy:.1f} on {cores} cores: repeat this when the machine is idle")
    document: Any
    with tempfile.TemporaryDirectory(prefix="virt-steward-bench-") as folder:
        if given.curves is not None:
            document = draw(given.curves or list(CURVES), given.most or sys.maxsize, Path(folder))
        elif given.does:
            kind = LOADS[given.does]
            with a_control_plane(Path(folder)) as started:
                work = compare(started, kind, Path(folder), size=given.size or kind.usual_size, against=given.against)
                found = asyncio.run(work)
            console().print(comparison(found))
            document = [one.document() for one in found]
        else:
            with a_control_plane(Path(folder)) as started:
                report = asyncio.run(measure(started, ProgressPrinter(), Path(folder)))
            console().print(table_of(report))
            document = report.document()
    if given.json:
        given.json.write_bytes(msgspec.json.format(msgspec.json.encode(document)) + b"\n")


def draw(names: list[str], most: int, folder: Path) -> list[dict[str, Any]]:
    progress, document = ProgressPrinter(), list[dict[str, Any]]()
    for name in names:
        curve, rows = CURVES[name], dict[int, Row]()
        try:
            for size in (one for one in curve.sizes if one <= most):
                progress.say(f"measuring {size:,} {curve.unit}")
                below = folder / name / str(size)
                below.mkdir(parents=True)
                busy, started = os.getloadavg()[0], perf_counter()
                row = asyncio.run(curve.row(size, below))
                rows[size] = row | {"load before": busy, "took s": perf_counter() - started}
                shutil.rmtree(below)
        finally:  # what was measured before a size that fails is worth as much
            if rows:
                console().print(curve_table(curve.title, curve.unit, rows))
        document.append({"curve": name, "rows": [{"size": size, **row} for size, row in rows.items()]})
    return document


if __name__ == "__main__":
    main()
