"""Ways to choose among clusters that would all do. Each ranks them, the best first, with its reason in words."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from virt_steward.controllers.placement.observation import CapacityFree, MemberCluster, PlacementRules

    Preference = Callable[[tuple[MemberCluster, ...], PlacementRules], tuple["ClusterScore", ...]]


@dataclass(frozen=True, slots=True)
class ClusterScore:
    cluster: str
    words: str


def round_robin(clusters: tuple[MemberCluster, ...], _: PlacementRules) -> tuple[ClusterScore, ...]:
    """One after the other. Whose turn it is follows from what each has: no memory is lost, and gaps are filled."""
    in_turn = sorted(clusters, key=lambda one: (one.machines, one.name))
    return tuple(ClusterScore(one.name, f"number {place} in turn") for place, one in enumerate(in_turn, 1))


def least_loaded(clusters: tuple[MemberCluster, ...], _: PlacementRules) -> tuple[ClusterScore, ...]:
    """By what is scarcer, memory or CPU, as far as all of them tell it; else by the number of machines."""
    told = {one.name: one.free for one in clusters if one.free}
    if len(told) < len(clusters):
        ranked = sorted(clusters, key=lambda one: (one.machines, one.name))
        return tuple(ClusterScore(one.name, f"{one.machines} machines") for one in ranked)
    if any(free.cpu is None for free in told.values()):
        told = {name: replace(free, cpu=None) for name, free in told.items()}
    ranked = sorted(clusters, key=lambda one: (-_scarcer(told[one.name]), one.machines, one.name))
    return tuple(ClusterScore(one.name, f"{_in_words(told[one.name])}, {one.machines} machines") for one in ranked)


def _scarcer(free: CapacityFree) -> float:
    return free.memory if free.cpu is None else min(free.memory, free.cpu)


def _in_words(free: CapacityFree) -> str:
    memory = f"{max(free.memory, 0.0):.0%} of its memory"
    return f"{memory} is free" if free.cpu is None else f"{memory} and {max(free.cpu, 0.0):.0%} of its CPU are free"


def spread(clusters: tuple[MemberCluster, ...], rules: PlacementRules) -> tuple[ClusterScore, ...]:
    """Evenly over the values of a label, such as regions, and within each by the number of machines."""
    value_of = {one.name: (one.labels or {}).get(rules.spread_label, "") for one in clusters}
    in_value: dict[str, int] = {}
    for one in clusters:
        in_value[value_of[one.name]] = in_value.get(value_of[one.name], 0) + one.machines
    ranked = sorted(clusters, key=lambda one: (in_value[value_of[one.name]], one.machines, one.name))
    return tuple(
        ClusterScore(
            one.name,
            f"{rules.spread_label}={value_of[one.name] or 'none'} has {in_value[value_of[one.name]]} machines, "
            f"{one.machines} of them here",
        )
        for one in ranked
    )


def weight(clusters: tuple[MemberCluster, ...], _: PlacementRules) -> tuple[ClusterScore, ...]:
    """The heaviest first; among equals, the one with fewer machines."""
    ranked = sorted(clusters, key=lambda one: (-one.weight, one.machines, one.name))
    return tuple(ClusterScore(one.name, f"weight {one.weight}, {one.machines} machines") for one in ranked)


BY_CAPACITY = "least-loaded"

STRATEGIES: dict[str, Preference] = {
    "round-robin": round_robin,
    BY_CAPACITY: least_loaded,
    "spread": spread,
    "weight": weight,
}
