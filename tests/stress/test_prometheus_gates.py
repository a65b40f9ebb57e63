"""Gates that ask a real Prometheus, built from its sources."""

from pathlib import Path

from tests.eventually import eventually
from tests.prometheus.server import a_prometheus
from tests.runtime.clocks import ManualClock
from virt_steward.holds.gate_board import REMEMBERED, GateBoard
from virt_steward.holds.gate_settings import GateDefinition, GateSettings, PrometheusGate, PrometheusSettings
from virt_steward.holds.gates import GateState
from virt_steward.kube.client import Client

FIRING = """\
groups:
- name: tests
  rules:
  - alert: EtcdDown
    expr: vector(1)
    labels: {severity: critical, namespace: openshift-etcd}
"""
QUERIES = {"broken": "sum(", "scalar": "1 + 1", "unknown": "no_such_metric > 0", "always": "vector(1)"}


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
