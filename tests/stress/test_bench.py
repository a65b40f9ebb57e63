"""The measurements themselves: nothing got slower than the committed ratios, and any operator can be measured."""

import asyncio
import subprocess
import sys
from pathlib import Path
from shlex import join

import msgspec
import pytest

from tests.bench.__main__ import comparison, console
from tests.bench.compare import compare
from tests.bench.curves import CURVES
from tests.bench.loads import LOADS, Approvals
from tests.bench.startup import READY
from tests.cluster import a_control_plane

COMMITTED = Path(__file__).parents[1] / "bench" / "ratios.json"
WORSE = 1.25
TRIES = 3


def test_no_ratio_is_a_quarter_worse_than_the_committed_one(tmp_path: Path) -> None:
    """The best of a few tries counts: others use the cores, too."""
    committed: dict[str, float] = msgspec.json.decode(COMMITTED.read_bytes())
    best: dict[str, float] = {}
    for number in range(TRIES):
        found = measured(tmp_path / f"{number}.json")
        best = {name: min(value, best.get(name, value)) for name, value in found.items()}
        worse = {name: (was, best[name]) for name, was in committed.items() if best[name] > was * WORSE}
        if not worse:
            break
    print({name: f"{was:.3f} → {best[name]:.3f}" for name, was in committed.items()})
    assert best.keys() == {*committed, READY}  # a time that others who use the cores prolong; its CPU is compared
    assert worse == {}, "name: (committed, now)"


def measured(file: Path) -> dict[str, float]:
    """In a process of its own, as `make bench` does it: without the plugins and the logs of tests."""
    subprocess.run([sys.executable, "-m", "tests.bench", "--json", str(file)], check=True)
    report = msgspec.json.decode(file.read_bytes())
    ratios = {one["name"]: one["ratio"] for one in report["figures"]}
    return ratios | {one["name"]: one["value"] for one in report["counts"]}


@pytest.mark.parametrize("controller", LOADS)
def test_another_operator_is_measured_on_the_same_load(tmp_path: Path, controller: str) -> None:
    """Here it is virt-steward itself, started by a command line."""
    kind = LOADS[controller]
    servers = [f"--{server}-bind-address=0" for server in ("metrics", "debug", "health-probe")]
    run = [sys.executable, "-m", "virt_steward", "run", f"--controllers={controller}", "--no-leader-elect", *servers]
    command = join(run) + " --kubeconfig={kubeconfig} --namespace={namespace} " + join(kind.options)
    with a_control_plane(tmp_path) as control_plane:
        size = min(kind.usual_size, 100) if kind is Approvals else kind.usual_size
        found = asyncio.run(compare(control_plane, kind, tmp_path, size=size, against=[command]))
    console().print(comparison(found))
    ours, other = found
    assert (ours.requests, other.requests) > (0, 0)
    assert other.reaction.spread[0] < 3 * ours.reaction.spread[1], "it is the same program"


@pytest.mark.parametrize("curve", CURVES)
def test_curves_begin(tmp_path: Path, curve: str) -> None:
    """Their first points; all of them take longer: `make bench ARGS=--curves`."""
    row = asyncio.run(CURVES[curve].row(CURVES[curve].sizes[0], tmp_path))
    print(row)
    assert min(row[name] for name in ("bare request ms", "median ms", "CPU ms", "MiB")) > 0
