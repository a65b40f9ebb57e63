"""Gates that ask a real Prometheus, built from its sources."""

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp

from tests import prometheus
from tests.eventually import eventually
from tests.runtime.clocks import ManualClock
from virt_steward.holds.gate_board import REMEMBERED, GateBoard
from virt_steward.holds.gate_settings import GateDefinition, GateSettings, PrometheusGate, PrometheusSettings
from virt_steward.holds.gates import GateState
from virt_steward.kube.client import Client
from virt_steward_demo.local.controlplane import ReservedPort

CONFIG = "global: {evaluation_interval: 1s}\nrule_files: [rules.yaml]\n"
FIRING = """\
groups:
- name: tests
  rules:
  - alert: EtcdDown
    expr: vector(1)
    labels: {severity: critical, namespace: openshift-etcd}
"""
QUERIES = {"broken": "sum(", "scalar": "1 + 1", "unknown": "no_such_metric > 0", "always": "vector(1)"}


class Prometheus:
    """At work, with rules that a test may change."""

    def __init__(self, folder: Path, process: asyncio.subprocess.Process, url: str) -> None:
        self.url = url
        self._folder = folder
        self._process = process

    def use(self, rules: str) -> None:
        (self._folder / "rules.yaml").write_text(rules)
        self._process.send_signal(signal.SIGHUP)


@asynccontextmanager
async def a_prometheus(folder: Path) -> AsyncIterator[Prometheus]:
    (folder / "prometheus.yaml").write_text(CONFIG)
    (folder / "rules.yaml").write_text("groups: []\n")
    port = ReservedPort()
    port.release()
    address = f"127.0.0.1:{port.number}"
    program = str(prometheus.find_or_build(os.environ))
    options = (f"--config.file={folder}/prometheus.yaml", f"--storage.tsdb.path={folder}/data")
    with (folder / "log").open("wb") as log:
        process = await asyncio.create_subprocess_exec(
            program, *options, f"--web.listen-address={address}", stdout=log, stderr=log
        )
    try:
        assert await eventually(lambda: _is_ready(f"http://{address}/-/ready"), within=60), (folder / "log").read_text()
        yield Prometheus(folder, process, f"http://{address}")
    finally:
        process.kill()
        await process.wait()


async def _is_ready(url: str) -> bool:
    try:
        async with aiohttp.ClientSession() as session, session.get(url) as response:
            return response.status == 200
    except aiohttp.ClientError:
        return False


async def test_gates_follow_a_real_prometheus(admin: Client, tmp_path: Path) -> None:
    async with a_prometheus(tmp_path) as started:
        gates = {name: GateDefinition(prometheus=PrometheusGate(query)) for name, query in QUERIES.items()}
        clock = ManualClock()
        board = GateBoard(admin, GateSettings(gates, PrometheusSettings(started.url)), clock)

        async def state(name: str) -> GateState:
            await clock.advance(REMEMBERED)
            return (await board.evaluate([name]))[name]

        async def is_open(name: str) -> bool:
            return (await state(name)).is_open

        async def is_closed(name: str) -> bool:
            return not await is_open(name)

        assert await is_open("unknown")
        assert await is_open("no-critical-alerts")
        assert (await state("always")).evidence == "a series"
        assert "parse error" in (await state("broken")).evidence
        assert "the query returns a scalar" in (await state("scalar")).evidence
        started.use(FIRING)
        assert await eventually(lambda: is_closed("no-critical-alerts"), within=30)
        assert (await state("no-critical-alerts")).evidence == "EtcdDown (namespace=openshift-etcd)"
        started.use("groups: []\n")
        assert await eventually(lambda: is_open("no-critical-alerts"), within=30)
    gone = await state("no-critical-alerts")
    assert (gone.is_open, "unreachable" in gone.evidence) == (False, True)
