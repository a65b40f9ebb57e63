"""A thousand silent connections to each server of a process that may open few files: it answers, and logs little."""

import asyncio
import resource
import socket
import statistics
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import aiohttp

from tests.eventually import eventually
from virt_steward_demo.local.controlplane import ControlPlane
from virt_steward_demo.local.processes import Child

SILENT = 1_100
"""Connections to each port, which send nothing."""
REOPEN = 5.0
"""Seconds after which those that the server closed are opened again."""
OPEN_FILES = 1_024
SECONDS = 30.0
PROBE_TIMEOUT = 1.0
"""As the kubelet has it by default."""
FAILURE_THRESHOLD = 3
"""Failures in a row after which the kubelet restarts a pod, by default."""
LONGEST_LOG = 64 * 1024


async def test_silent_connections_leave_probes_and_log_alone(control_plane: ControlPlane, tmp_path: Path) -> None:
    _raise_own_limit()
    health, metrics, console = a_free_port(), a_free_port(), a_free_port()
    with a_limited_process(control_plane, tmp_path / "run.log", health, metrics, console) as process:
        probes = {
            f"http://127.0.0.1:{health}/healthz": 200,
            f"http://127.0.0.1:{health}/readyz": 200,
            f"http://127.0.0.1:{metrics}/metrics": 200,
            f"http://127.0.0.1:{console}/sign-in": 200,
        }
        assert await eventually(lambda: _all_answer(probes), within=60), process.last_output()
        assert _open_files_limit(process.pid) == OPEN_FILES
        log_before = process.log.stat().st_size
        took: list[float] = []
        outcomes: dict[str, list[bool]] = {url: [] for url in probes}
        opened = 0
        with ExitStack() as connections:
            floods = [asyncio.create_task(_flood(port, connections)) for port in (health, metrics, console)]
            end = time.monotonic() + SECONDS
            while time.monotonic() < end:
                for url, status in probes.items():
                    began = time.monotonic()
                    answer = await _status(url)
                    took.append(time.monotonic() - began)
                    outcomes[url].append(answer == status)
                await asyncio.sleep(0.5)
            for flood in floods:
                flood.cancel()
            opened = sum(one for one in await asyncio.gather(*floods, return_exceptions=True) if isinstance(one, int))
        assert process.alive
        log = process.log.stat().st_size - log_before
    failed = {url: _longest_failure(found) for url, found in outcomes.items()}
    print(
        f"\n{SILENT} silent connections to each of 3 ports for {SECONDS:.0f} s ({opened} opened in all), "
        f"{OPEN_FILES} open files: {len(took)} probes, "
        f"{sum(found.count(False) for found in outcomes.values())} failed, at most {max(failed.values())} in a row, "
        f"median {statistics.median(took) * 1000:.0f} ms, slowest {max(took) * 1000:.0f} ms; log grew by {log} bytes"
    )
    assert max(failed.values()) < FAILURE_THRESHOLD, failed
    assert log <= LONGEST_LOG


@contextmanager
def a_limited_process(
    control_plane: ControlPlane, log: Path, health: int, metrics: int, console: int
) -> Iterator[Child]:
    """The console with probes, in a process whose hard limit of open files is low, too."""
    run = [sys.executable, "-m", "virt_steward", "run", "--controllers=console", "--debug-bind-address=0"]
    run += [f"--kubeconfig={control_plane.kubeconfig}", f"--health-probe-bind-address=127.0.0.1:{health}"]
    run += [f"--metrics-bind-address=127.0.0.1:{metrics}", f"--console-bind-address=127.0.0.1:{console}"]
    child = Child(["/bin/sh", "-c", f'ulimit -n {OPEN_FILES}; exec "$@"', "sh", *run], log=log)
    try:
        yield child
    finally:
        child.kill()


def _longest_failure(outcomes: list[bool]) -> int:
    return max(len(run) for run in "".join("+" if one else "-" for one in outcomes).split("+"))


async def _flood(port: int, connections: ExitStack) -> int:
    """Keep as many silent connections open as wanted; how many were opened when it is cancelled."""
    loop = asyncio.get_running_loop()
    opened, silent = 0, []
    try:
        while True:
            for one in [one for one in silent if _is_closed(one)]:
                one.close()
                silent.remove(one)
            while len(silent) < SILENT:
                one = connections.enter_context(socket.socket())
                one.setblocking(False)
                await loop.sock_connect(one, ("127.0.0.1", port))
                silent.append(one)
                opened += 1
            await asyncio.sleep(REOPEN)
    except asyncio.CancelledError:
        return opened


def _is_closed(connection: socket.socket) -> bool:
    try:
        return connection.recv(1) == b""
    except BlockingIOError:
        return False
    except OSError:
        return True


async def _status(url: str) -> int | str:
    """The status of the answer on a new connection, as the kubelet asks; or what went wrong."""
    timeout = aiohttp.ClientTimeout(total=PROBE_TIMEOUT)
    try:
        async with aiohttp.ClientSession(timeout=timeout) as session, session.get(url) as answer:
            await answer.read()
            return answer.status
    except (aiohttp.ClientError, TimeoutError, OSError) as error:
        return type(error).__name__


async def _all_answer(probes: dict[str, int]) -> bool:
    return [await _status(url) for url in probes] == list(probes.values())


def a_free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        return int(probe.getsockname()[1])


def _open_files_limit(pid: int) -> int:
    return resource.prlimit(pid, resource.RLIMIT_NOFILE)[0]


def _raise_own_limit() -> None:
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 65_536) if hard > 0 else 65_536, hard))
