"""A thousand silent connections to each server of a process that may open few files: it answers, and logs little."""

import asyncio
import statistics
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from tests.eventually import eventually
from tests.ports import a_free_port
from tests.stress.connections import (
    FAILURE_THRESHOLD,
    OPEN_FILES,
    SILENT,
    all_answer,
    flood,
    longest_failure,
    open_files_limit,
    probe,
    raise_own_limit,
)
from virt_steward_demo.local.controlplane import ControlPlane
from virt_steward_demo.local.processes import Child

SECONDS = 30.0
LONGEST_LOG = 64 * 1024


async def test_silent_connections_leave_probes_and_log_alone(control_plane: ControlPlane, tmp_path: Path) -> None:
    raise_own_limit()
    health, metrics, console = a_free_port(), a_free_port(), a_free_port()
    with a_limited_process(control_plane, tmp_path / "run.log", health, metrics, console) as process:
        probes = {
            f"http://127.0.0.1:{health}/healthz": 200,
            f"http://127.0.0.1:{health}/readyz": 200,
            f"http://127.0.0.1:{metrics}/metrics": 200,
            f"http://127.0.0.1:{console}/sign-in": 200,
        }
        assert await eventually(lambda: all_answer(probes), within=60), process.last_output()
        assert open_files_limit(process.pid) == OPEN_FILES
        log_before = process.log.stat().st_size
        took: list[float] = []
        outcomes: dict[str, list[bool]] = {url: [] for url in probes}
        opened = 0
        with ExitStack() as connections:
            floods = [asyncio.create_task(flood(port, connections)) for port in (health, metrics, console)]
            end = time.monotonic() + SECONDS
            while time.monotonic() < end:
                for url, status in probes.items():
                    began = time.monotonic()
                    answer = await probe(url)
                    took.append(time.monotonic() - began)
                    outcomes[url].append(answer == status)
                await asyncio.sleep(0.5)
            for one in floods:
                one.cancel()
            opened = sum(one for one in await asyncio.gather(*floods, return_exceptions=True) if isinstance(one, int))
        assert process.alive
        log = process.log.stat().st_size - log_before
    failed = {url: longest_failure(found) for url, found in outcomes.items()}
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
