"""Measures the start of a single controller until it is ready, and its memory at rest, beside a bare Python.

It starts as in its image: with the ServiceAccount of a pod, with compiled modules and with the image's settings. On a
busy machine the seconds until it is ready grow more than those of a bare Python, its CPU time does not.
"""

import asyncio
import os
import resource
import subprocess
import sys
import urllib.error
import urllib.request
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from urllib.parse import urlsplit

from tests.bench.figures import Figure, Round
from tests.controllers.approver.process import Process, an_installation, home_of
from tests.eventually import eventually
from tests.grants import Account
from tests.image import image_settings
from tests.ports import a_free_port
from virt_steward_demo.local.controlplane import ControlPlane
from virt_steward_demo.local.processes import Child

ROUNDS = 7
POLL = 0.005
IN_POD = str(Path(__file__).with_name("in_pod.py"))
BARE = "bare Python"
READY = "start to ready"
_RSS = "print(next(line for line in open('/proc/self/status') if line.startswith('VmRSS:')).split()[1])"


async def measure(control_plane: ControlPlane, folder: Path) -> tuple[Figure, ...]:
    """The approver, with its own rights, its servers and its Lease, as a pod runs it."""
    account = await an_installation(control_plane)
    pod = _a_pod(folder / "startup", control_plane, account)
    await _start(pod)  # compiles the modules
    starts, efforts, memories = [], [], []
    for _ in range(ROUNDS):
        bare, bare_cpu = _bare_start()
        seconds, cpu, rss = await _start(pod)
        starts.append(Round((seconds,), (bare,)))
        efforts.append(Round((cpu,), (bare_cpu,)))
        memories.append(Round((rss,), (_bare_memory(),)))
    return (
        Figure(READY, "s", BARE, tuple(starts)),
        Figure("CPU of a start", "s", BARE, tuple(efforts)),
        Figure("memory of a controller", "MiB", BARE, tuple(memories)),
    )


@dataclass(frozen=True, slots=True)
class _Pod:
    service_account: Path
    environment: dict[str, str]
    log: Path


def _a_pod(folder: Path, control_plane: ControlPlane, account: Account) -> _Pod:
    folder.mkdir()
    (folder / "token").write_text(account.token)
    (folder / "ca.crt").write_bytes(control_plane.authority.certificate)
    (folder / "namespace").write_text(home_of(account))
    server = urlsplit(control_plane.server)
    environment = {
        **image_settings(),
        "PATH": os.environ["PATH"],
        "POD_NAMESPACE": home_of(account),
        "PYTHONPYCACHEPREFIX": str(folder / "compiled"),
        "KUBERNETES_SERVICE_HOST": str(server.hostname),
        "KUBERNETES_SERVICE_PORT": str(server.port),
    }
    return _Pod(folder, environment, folder / "log")


async def _start(pod: _Pod) -> tuple[float, float, float]:
    """Seconds from the start of the process until /readyz says so, those of CPU, and MiB of memory after that."""
    port = a_free_port()
    address = f"127.0.0.1:{port}"
    command = [sys.executable, IN_POD, str(pod.service_account), "run", "--controllers=approver"]
    command += [f"--health-probe-bind-address={address}", "--metrics-bind-address=127.0.0.1:0", "--lease-duration=15"]
    command += ["--debug-bind-address=0", "--log-format=json"]
    pod.log.write_bytes(b"")
    started = perf_counter()
    child = Child(command, log=pod.log, env=pod.environment)
    try:
        while not await asyncio.to_thread(_is_ready, f"http://{address}/readyz"):  # noqa: ASYNC110 - of another process
            await asyncio.sleep(POLL)
        process = Process(child, pod.log)
        seconds, cpu = perf_counter() - started, process.cpu
        assert await eventually(lambda: b'"leading"' in pod.log.read_bytes(), within=60)
        await asyncio.sleep(1)  # what the first reconciles need is released by then
        return seconds, cpu, process.rss
    finally:
        child.kill()


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
