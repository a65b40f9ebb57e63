"""Every state of one Machine and two clusters, as far as the model goes."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import pytest

from tests.controllers.placement.builders import a_cluster, a_machine, a_view
from tests.exploration.explorer import Model, explore
from virt_steward.controllers.placement.decide import PlacementDecision, decide
from virt_steward.controllers.placement.observation import Finding, Unreachable, VmAbsent, VmFound
from virt_steward.controllers.placement.verdicts import Ask, Chosen

NAMES = ("east", "west")
NEED_NO_ANSWER = ("explicit_annotation", "cluster_selector", "environment_default", "default_flag", "the_only_one")
"""The rules that choose a cluster without asking where the VM is: a person has named it, or there is no other."""


@dataclass(frozen=True)
class Fleet:
    """The clusters, what runs on them, and the annotation of the Machine."""

    present: frozenset[str] = frozenset(NAMES)
    silent: frozenset[str] = frozenset()
    default: frozenset[str] = frozenset()
    cordoned: frozenset[str] = frozenset()
    holders: frozenset[str] = frozenset()
    """Clusters that have the VM, whether they answer or not."""
    chosen: str = ""
    """The annotation on the Machine."""


def toggled(names: frozenset[str], name: str) -> frozenset[str]:
    return names ^ {name}


def answer(fleet: Fleet, name: str) -> Finding:
    if name in fleet.silent:
        return Unreachable("timed out after 5 s")
    return VmFound() if name in fleet.holders else VmAbsent()


def decided(fleet: Fleet, strategy: str) -> PlacementDecision:
    """The decision, after all clusters were asked that it wants to hear from."""
    clusters = [
        a_cluster(
            name,
            default=name in fleet.default,
            schedulable=name not in fleet.cordoned,
            unreachable="timed out after 5 s" if name in fleet.silent else "",
        )
        for name in sorted(fleet.present)
    ]
    findings: dict[str, Finding] = {}
    while True:
        machine = a_machine(config=fleet.chosen)
        decision = decide(a_view(machine, *clusters, findings=findings, strategy=strategy))
        if not isinstance(decision.outcome, Ask):
            return decision
        assert not set(decision.outcome.clusters) & set(findings), "asks again what it knows"
        findings |= {name: answer(fleet, name) for name in decision.outcome.clusters}


def moves(fleet: Fleet) -> Iterator[tuple[str, Fleet]]:
    for name in NAMES:
        yield f"{name} comes or goes", replace(fleet, present=toggled(fleet.present, name))
        yield f"{name} falls silent or answers", replace(fleet, silent=toggled(fleet.silent, name))
        yield f"{name} is the default or not", replace(fleet, default=toggled(fleet.default, name))
        yield f"{name} is cordoned or not", replace(fleet, cordoned=toggled(fleet.cordoned, name))
        yield f"somebody makes or deletes the VM on {name}", replace(fleet, holders=toggled(fleet.holders, name))
        yield f"somebody chooses {name}", replace(fleet, chosen=name)
    yield "somebody removes the annotation", replace(fleet, chosen="")


@pytest.mark.parametrize("strategy", ["none", "least-loaded"])
def test_every_reachable_machine_is_placed_by_the_rules_only(strategy: str) -> None:
    def step(fleet: Fleet) -> Fleet:
        outcome = decided(fleet, strategy).outcome
        return replace(fleet, chosen=outcome.cluster) if isinstance(outcome, Chosen) else fleet

    def check(before: Fleet, after: Fleet) -> None:
        if before == after:
            return
        rule, name = decided(before, strategy).rule.name, after.chosen
        assert not before.chosen, "a choice was changed"
        assert name in before.present, "placed on a cluster that is gone"
        if rule in NEED_NO_ANSWER:
            return
        known = before.holders & before.present - before.silent
        assert known <= {name}, "placed where the VM is not, though a cluster has it"
        if name not in known:
            assert not before.silent & before.present, "placed while a cluster that may have the VM is unreachable"
            assert name not in before.cordoned, "placed on a cordoned cluster"

    found = explore(Model(Fleet(), moves, step, check), most_states=20_000)
    print(f"\nplacement, {strategy}: {found.states} states, {found.steps} placements, complete: {found.is_complete}")
    assert found.is_complete
    assert found.steps > 100
