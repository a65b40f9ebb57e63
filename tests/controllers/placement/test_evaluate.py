"""A remembered answer of a cluster never decides a choice and never causes an error to be reported."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from tests.controllers.placement.builders import a_machine
from tests.runtime.clocks import ManualClock
from virt_steward.apis.kubevirtconfig import KubevirtConfigSpec
from virt_steward.controllers.placement.assignments import Assignments
from virt_steward.controllers.placement.capacity import CapacityCache
from virt_steward.controllers.placement.evaluate import evaluate
from virt_steward.controllers.placement.observation import Unreachable
from virt_steward.controllers.placement.observe import KubevirtConfig, KubevirtConfigMeta, PlacementClusterView
from virt_steward.controllers.placement.options import PlacementRules, SearchTimeouts
from virt_steward.controllers.placement.search import Search
from virt_steward.controllers.placement.verdicts import Blocked, Chosen, PlacementReason
from virt_steward.controllers.placement.watches import CONFIGS, MACHINES
from virt_steward.objects.identity import Key
from virt_steward.runtime.store import Store

WEB = Key("default", "web")


class Clusters:
    """Clusters whose VMs a test decides; they count how often they are asked."""

    def __init__(self) -> None:
        self.vms: dict[str, frozenset[str] | Unreachable] = {"east": frozenset(), "west": frozenset()}
        self.asked: list[str] = []
        self.editions: dict[str, int] = {}
        self.meanwhile: Callable[[], None] = lambda: None
        self.in_the_end: Callable[[], None] = lambda: None
        """When all others have answered."""

    def edition(self, config: str) -> int:
        return self.editions.get(config, 1)

    async def ask(self, config: str, _question: Callable[..., Awaitable[Any]]) -> Any:
        self.asked.append(config)
        self.meanwhile()
        if config == "west":
            for _ in range(20):
                await asyncio.sleep(0)
            self.in_the_end()
        return self.vms[config]

    def why_unusable(self, _config: str) -> None:
        return None

    def last_failure(self, _config: str) -> None:
        return None


class Bench:
    def __init__(self, strategy: str = "round-robin", apart: float = 0) -> None:
        self.clock = ManualClock()
        self.clusters = Clusters()
        machines, configs = Store(MACHINES.indexes or {}), Store(CONFIGS.indexes or {})
        machines.put(a_machine("web"))
        for name in self.clusters.vms:
            configs.put(KubevirtConfig(KubevirtConfigMeta(name=name)))
        assignments = Assignments()
        capacities = CapacityCache(self.clusters, configs, assignments, self.clock, lasting=60)
        self.view = PlacementClusterView(
            machines, configs, self.clusters, assignments, PlacementRules(strategy=strategy), capacities
        )
        self.search = Search(self.clusters, SearchTimeouts(apart=apart), self.clock)

    async def outcome(self, machine: str = "web", reported: Blocked | None = None) -> Any:
        key = Key("default", machine)
        evaluation = await evaluate(self.view, self.search, key, self.clock.now(), reported)
        return evaluation.decision.outcome if evaluation else None


@pytest.fixture
def bench() -> Bench:
    return Bench()


async def test_evaluate_decides_by_a_new_answer(bench: Bench) -> None:
    assert isinstance(await bench.outcome(), Chosen)
    assert sorted(bench.clusters.asked) == ["east", "west"]


async def test_evaluate_finds_a_vm_made_since_the_last_answer(bench: Bench) -> None:
    await bench.outcome()
    bench.clusters.vms["west"] = frozenset({"vm-web"})
    await bench.clock.advance(1)
    outcome = await bench.outcome()
    assert isinstance(outcome, Chosen)
    assert outcome.cluster == "west"


async def test_evaluate_notices_a_vm_deleted_since_the_last_answer(bench: Bench) -> None:
    bench.view.configs.put(KubevirtConfig(KubevirtConfigMeta(name="west"), KubevirtConfigSpec(schedulable=False)))
    bench.clusters.vms["west"] = frozenset({"vm-web"})
    assert await bench.outcome() == Chosen("west", "VM vm-web exists there")
    bench.clusters.vms["west"] = frozenset()
    bench.clusters.asked.clear()
    await bench.clock.advance(1)
    outcome = await bench.outcome()
    assert isinstance(outcome, Chosen)
    assert (outcome.cluster, outcome.reason) == ("east", "round-robin: number 1 in turn")
    assert sorted(bench.clusters.asked) == ["east", "west"]


async def test_evaluate_asks_again_before_it_reports_ambiguity() -> None:
    bench = Bench(strategy="none")
    bench.view.machines.put(a_machine("db"))
    ambiguous = await bench.outcome("db")
    assert ambiguous.reason is PlacementReason.AMBIGUOUS
    bench.clusters.vms["west"] = frozenset({"vm-web"})
    await bench.clock.advance(1)
    assert await bench.outcome("web") == Chosen("west", "VM vm-web exists there")


async def test_evaluate_asks_again_before_it_reports_an_unreachable_cluster(bench: Bench) -> None:
    bench.clusters.vms["west"] = Unreachable("cluster west is down")
    bench.view.machines.put(a_machine("db"))
    assert isinstance(await bench.outcome("db"), Blocked)
    bench.clusters.vms["east"] = frozenset({"vm-web"})
    await bench.clock.advance(1)
    assert isinstance(await bench.outcome("web"), Chosen)


async def test_evaluate_relies_on_memory_while_the_reported_error_is_the_same(bench: Bench) -> None:
    bench.clusters.vms["west"] = Unreachable("cluster west is down")
    reported = await bench.outcome()
    assert isinstance(reported, Blocked)
    bench.clusters.asked.clear()
    await bench.clock.advance(1)
    outcome = await bench.outcome(reported=reported)
    assert outcome == reported
    assert outcome.reason is PlacementReason.CLUSTERS_SILENT
    assert bench.clusters.asked == ["west"]


async def test_evaluate_asks_each_cluster_at_most_once_a_second() -> None:
    bench = Bench(strategy="none", apart=1)
    names = [f"web-{number}" for number in range(20)]
    for name in names:
        bench.view.machines.put(a_machine(name))
    await bench.outcome(names[0])
    bench.clusters.asked.clear()
    await bench.clock.advance(0.5)
    evaluations = [asyncio.create_task(bench.outcome(name)) for name in names[1:]]
    for _ in range(50):
        await asyncio.sleep(0)
    assert bench.clusters.asked == [], "both were asked less than a second ago"
    await bench.clock.advance(0.5)
    outcomes = await asyncio.gather(*evaluations)
    assert {one.reason for one in outcomes} == {PlacementReason.AMBIGUOUS}
    assert sorted(bench.clusters.asked) == ["east", "west"]


async def test_evaluate_asks_a_cluster_that_joins_meanwhile(bench: Bench) -> None:
    def join() -> None:
        bench.clusters.vms["north"] = frozenset({"vm-web"})
        bench.view.configs.put(KubevirtConfig(KubevirtConfigMeta(name="north")))
        bench.clusters.meanwhile = lambda: None

    bench.clusters.meanwhile = join
    outcome = await bench.outcome()
    assert isinstance(outcome, Chosen)
    assert outcome.cluster == "north"


async def test_evaluate_ends_if_the_machine_is_deleted_meanwhile(bench: Bench) -> None:
    bench.clusters.meanwhile = lambda: bench.view.machines.remove(WEB) and None
    assert await bench.outcome() is None


async def test_evaluate_asks_again_if_a_kubeconfig_changes_meanwhile(bench: Bench) -> None:
    def rotate() -> None:
        bench.clusters.editions["east"] = 2
        bench.clusters.vms["east"] = frozenset({"vm-web"})

    await bench.outcome()
    await bench.clock.advance(1)
    bench.clusters.in_the_end = rotate
    outcome = await bench.outcome()
    assert isinstance(outcome, Chosen)
    assert (outcome.cluster, outcome.reason) == ("east", "VM vm-web exists there")
