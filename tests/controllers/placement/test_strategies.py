"""The placement strategies: which of several suitable clusters is chosen."""

from pathlib import Path

import pytest

from tests.controllers.placement.builders import a_cluster, a_machine, a_view
from virt_steward.controllers.placement.decide import decide
from virt_steward.controllers.placement.observation import CapacityFree, KubeVirtMissing, MemberCluster, VmAbsent
from virt_steward.controllers.placement.strategies import STRATEGIES, STRATEGY_HELP, STRATEGY_NAMES
from virt_steward.controllers.placement.strategies.strategy import ClusterScore
from virt_steward.controllers.placement.verdicts import Abstain, Chosen

EAST, WEST = a_cluster("east"), a_cluster("west")


@pytest.mark.parametrize(
    ("strategy", "clusters", "chosen"),
    [
        pytest.param("round-robin", (EAST, WEST), "east", id="round-robin begins with the first"),
        pytest.param("round-robin", (a_cluster("east", machines=1), WEST), "west", id="round-robin goes on"),
        pytest.param("least-loaded", (a_cluster("east", machines=3), WEST), "west", id="fewest machines"),
        pytest.param(
            "least-loaded",
            (a_cluster("east", machines=3, free=CapacityFree(0.7)), a_cluster("west", free=CapacityFree(0.2))),
            "east",
            id="most free memory, where all tell it",
        ),
        pytest.param(
            "least-loaded",
            (a_cluster("east", free=CapacityFree(0.9, 0.1)), a_cluster("west", free=CapacityFree(0.3, 0.4))),
            "west",
            id="most of what is scarcer",
        ),
        pytest.param(
            "least-loaded",
            (a_cluster("east", free=CapacityFree(0.9, 0.1)), a_cluster("west", free=CapacityFree(0.3))),
            "east",
            id="by memory alone if one does not tell its CPU",
        ),
        pytest.param(
            "least-loaded",
            (a_cluster("east", machines=1, free=CapacityFree(0.9)), WEST),
            "west",
            id="fewest machines if one tells nothing",
        ),
        pytest.param(
            "spread",
            (
                a_cluster("a", labels={"topology.kubernetes.io/region": "x"}, machines=1),
                a_cluster("b", labels={"topology.kubernetes.io/region": "x"}, machines=0),
                a_cluster("c", labels={"topology.kubernetes.io/region": "y"}, machines=0),
            ),
            "c",
            id="the emptier region",
        ),
        pytest.param("weight", (EAST, a_cluster("west", weight=200)), "west", id="the heaviest"),
        pytest.param(
            "weight",
            (a_cluster("east", machines=2), a_cluster("west", machines=1)),
            "west",
            id="of equal weight, the emptier",
        ),
        pytest.param(
            "round-robin", (a_cluster("east", schedulable=False), WEST), "west", id="not one that takes no new ones"
        ),
    ],
)
def test_strategy_chooses_cluster(strategy: str, clusters: tuple[MemberCluster, ...], chosen: str) -> None:
    findings = {one.name: VmAbsent() for one in clusters}
    by_rule = decide(a_view(a_machine(), *clusters, findings=findings, strategy=strategy)).outcome
    by_machine = decide(a_view(a_machine(strategy=strategy), *clusters, findings=findings)).outcome
    assert isinstance(by_rule, Chosen)
    assert by_rule.cluster == chosen
    assert by_machine == by_rule
    assert by_rule.scores[0].cluster == chosen


def test_round_robin_keeps_replaced_machines_spread() -> None:
    counts = {"a": 2, "b": 2, "c": 2}
    for goes in ("a", "b", "c") * 20:
        counts[goes] -= 1
        clusters = [a_cluster(name, machines=number) for name, number in counts.items()]
        findings = {name: VmAbsent() for name in counts}
        outcome = decide(a_view(a_machine(), *clusters, findings=findings, strategy="round-robin")).outcome
        assert isinstance(outcome, Chosen)
        counts[outcome.cluster] += 1
    assert counts == {"a": 2, "b": 2, "c": 2}


def test_round_robin_spreads_evenly() -> None:
    counts = dict.fromkeys("abcde", 0)
    for _ in range(1_003):
        clusters = [a_cluster(name, machines=number) for name, number in counts.items()]
        findings = {name: VmAbsent() for name in counts}
        outcome = decide(a_view(a_machine(), *clusters, findings=findings, strategy="round-robin")).outcome
        assert isinstance(outcome, Chosen)
        counts[outcome.cluster] += 1
    assert max(counts.values()) - min(counts.values()) <= 1


def test_strategy_skips_cluster_without_kubevirt() -> None:
    findings = {"east": KubeVirtMissing(), "west": VmAbsent()}
    decision = decide(a_view(a_machine(), EAST, WEST, findings=findings, strategy="round-robin"))
    assert decision.outcome == Chosen(
        "west", "round-robin: number 1 in turn", (ClusterScore("west", "number 1 in turn"),)
    )
    verdicts = {step.rule.name: step.verdict for step in decision.steps}
    assert verdicts["existing_vm"] == Abstain(
        "VM vm-my-vm does not exist in east, west; KubeVirt is not installed in east"
    )


def test_every_strategy_is_tested_and_documented() -> None:
    [table] = [mark for mark in test_strategy_chooses_cluster.pytestmark if mark.name == "parametrize"]
    page = (Path(__file__).parents[3] / "docs" / "howto" / "place-a-machine.md").read_text()
    assert {row.values[0] for row in table.args[1]} >= set(STRATEGIES)
    assert [name for name in STRATEGIES if f"`{name}`" not in page] == []


def test_registry_lists_every_strategy_with_its_help() -> None:
    assert STRATEGY_NAMES[0] == "none"
    assert set(STRATEGY_NAMES) >= {"round-robin", "least-loaded", "spread", "weight"}
    assert all(f"{name}: {STRATEGIES[name].help}" in STRATEGY_HELP for name in STRATEGY_NAMES[1:])
