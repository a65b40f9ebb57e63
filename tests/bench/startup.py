"""Measures the start of a single controller until it is ready, and its memory at rest, beside a bare Python.

On a busy machine the seconds until it is ready grow more than those of a bare Python, its CPU time does not.
"""

import asyncio
import resource
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path
from time import perf_counter

from tests.bench.figures import Figure, Round
from tests.controllers.approver.process import a_process, an_installation, home_of
from tests.eventually import eventually
from virt_steward_demo.local.controlplane import ControlPlane, ReservedPort

ROUNDS = 7
POLL = 0.005
BARE = "bare Python"
READY = "start to ready"
_RSS = "print(next(line for line in open('/proc/self/status') if line.startswith('VmRSS:')).split()[1])"


async def measure(control_plane: ControlPlane, folder: Path) -> tuple[Figure, ...]:
    """The approver, with its own rights, its servers and its Lease, as a pod runs it."""
    account = await an_installation(control_plane)
    kubeconfig = account.write_kubeconfig(folder / "startup", control_plane)
    starts, efforts, memories = [], [], []
    for _ in range(ROUNDS):
        bare, bare_cpu = _bare_start()
        seconds, cpu, rss = await _start(kubeconfig, home_of(account))
        starts.append(Round((seconds,), (bare,)))
        efforts.append(Round((cpu,), (bare_cpu,)))
        memories.append(Round((rss,), (_bare_memory(),)))
    return (
        Figure(READY, "s", BARE, tuple(starts)),
        Figure("CPU of a start", "s", BARE, tuple(efforts)),
        Figure("memory of a controller", "MiB", BARE, tuple(memories)),
    )


async def _start(kubeconfig: Path, namespace: str) -> tuple[float, float, float]:
    """Seconds from the start of the process until /readyz says so, those of CPU, and MiB of memory after that."""
    port = ReservedPort()
    port.release()
    address = f"127.0.0.1:{port.number}"
    options = (f"--health-probe-bind-address={address}", "--metrics-bind-address=127.0.0.1:0", "--lease-duration=15")
    started = perf_counter()
    with a_process(kubeconfig, namespace, *options, measured=True) as process:
        while not await asyncio.to_thread(_is_ready, f"http://{address}/readyz"):  # noqa: ASYNC110 - of another process
            await asyncio.sleep(POLL)
        seconds, cpu = perf_counter() - started, process.cpu
        assert await eventually(lambda: process.said("leading"), within=60)
        await asyncio.sleep(1)  # what the first reconciles need is released by then
        return seconds, cpu, process.rss


def _is_ready(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=1) as answer:
            return bool(answer.status == 200)
    except (urllib.error.URLError, OSError):
        return False


def _bare_start() -> tuple[float, float]:
    """Seconds, and those of CPU."""
    started, used = perf_counter(), _cpu_of_children()
    subprocess.run([sys.executable, "-c", ""], check=True)
    return perf_counter() - started, _cpu_of_children() - used


def _cpu_of_children() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def _bare_memory() -> float:
    found = subprocess.run([sys.executable, "-c", _RSS], check=True, capture_output=True, text=True)
    return int(found.stdout) / 1024
