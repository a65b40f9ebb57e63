"""Measures what each Deployment needs while nothing changes: `python -m tests.bench.footprint`.

Each component runs as a process of its own on a control plane with the kinds of the simulation, and then all of them
in one. The resource requests of the manifests are from these figures and those of `make stress`.
"""

import asyncio
import os
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from urllib.request import urlopen

from rich.console import Console

from tests.clients import a_client
from tests.cluster import a_control_plane
from tests.console.objects import define_all
from tests.eventually import eventually_blocking
from tests.image import allocator_settings
from virt_steward.controllers import NAMES
from virt_steward_demo.local.controlplane import ControlPlane
from virt_steward_demo.local.processes import Child

IDLE = 60.0
"""Seconds for which CPU is measured, after as many to settle."""
PORT = 18082


@dataclass(frozen=True, slots=True)
class Footprint:
    """What one process needs."""

    rss: float
    """MiB, at the end."""
    peak: float
    """MiB, at most."""
    cpu: float
    """Thousandths of a core, while idle."""


def main() -> None:
    say = Console().print
    with tempfile.TemporaryDirectory(prefix="virt-steward-") as folder, a_control_plane(Path(folder)) as plane:
        asyncio.run(_define(plane))
        say(f"{'':<12} {'RSS MiB':>8} {'peak MiB':>9} {'idle CPU':>9}")
        for names in (*((name,) for name in (*NAMES, "console")), NAMES):
            found = measure(plane.kubeconfig, names, Path(folder))
            title = names[0] if len(names) == 1 else "all-in-one"
            say(f"{title:<12} {found.rss:>8.1f} {found.peak:>9.1f} {found.cpu:>8.1f}m")


async def _define(plane: ControlPlane) -> None:
    async with a_client(plane) as client:
        await define_all(client)


def measure(kubeconfig: Path, names: tuple[str, ...], folder: Path) -> Footprint:
    address = f"127.0.0.1:{PORT}"
    command = [sys.executable, "-m", "virt_steward", "run", f"--controllers={','.join(names)}"]
    command += [f"--kubeconfig={kubeconfig}", f"--health-probe-bind-address={address}", "--namespace=default"]
    command += ["--metrics-bind-address=0", "--debug-bind-address=0"]
    child = Child(command, log=folder / "log", cwd=Path.cwd(), env={**os.environ, **allocator_settings()})
    try:
        assert eventually_blocking(lambda: _is_ready(address), within=60)
        time.sleep(IDLE)
        used = _cpu(child.pid)
        time.sleep(IDLE)
        status = Path(f"/proc/{child.pid}/status").read_text().split()
        rss, peak = (int(status[status.index(field) + 1]) / 1024 for field in ("VmRSS:", "VmHWM:"))
        return Footprint(rss, peak, (_cpu(child.pid) - used) * 1000 / IDLE)
    finally:
        child.stop(grace=10)


def _is_ready(address: str) -> bool:
    try:
        with urlopen(f"http://{address}/readyz") as answer:
            return bool(answer.status == 200)
    except OSError:
        return False


def _cpu(pid: int) -> float:
    """Seconds of CPU that a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


if __name__ == "__main__":
    main()
