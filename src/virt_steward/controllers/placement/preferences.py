"""Ways to choose among clusters that would all do. Each ranks them, the best first, with its reason in words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from virt_steward.controllers.placement.seen import Cluster, Rules

    Preference = Callable[[tuple[Cluster, ...], Rules], tuple["Score", ...]]


@dataclass(frozen=True, slots=True)
class Score:
    cluster: str
    words: str


def round_robin(clusters: tuple[Cluster, ...], _: Rules) -> tuple[Score, ...]:
    """One after the other: who is next follows from how many were placed, so it needs no memory of its own."""
    turn = sum(one.machines for one in clusters) % len(clusters)
    in_turn = clusters[turn:] + clusters[:turn]
    return tuple(Score(one.name, f"number {place} in turn") for place, one in enumerate(in_turn, 1))


def least_loaded(clusters: tuple[Cluster, ...], _: Rules) -> tuple[Score, ...]:
    """By free memory where all of them tell it, else by the number of machines."""
    if all(one.free_memory is not None for one in clusters):
        ranked = sorted(clusters, key=lambda one: (-(one.free_memory or 0.0), one.machines, one.name))
        return tuple(Score(one.name, f"{one.free_memory or 0.0:.0%} of its memory is free") for one in ranked)
    ranked = sorted(clusters, key=lambda one: (one.machines, one.name))
    return tuple(Score(one.name, f"{one.machines} machines") for one in ranked)


def spread(clusters: tuple[Cluster, ...], rules: Rules) -> tuple[Score, ...]:
    """Evenly over the values of a label, such as regions, and within each by the number of machines."""
    value_of = {one.name: one.labels.get(rules.spread_label, "") for one in clusters}
    in_value: dict[str, int] = {}
    for one in clusters:
        in_value[value_of[one.name]] = in_value.get(value_of[one.name], 0) + one.machines
    ranked = sorted(clusters, key=lambda one: (in_value[value_of[one.name]], one.machines, one.name))
    return tuple(
        Score(
            one.name,
            f"{rules.spread_label}={value_of[one.name] or 'none'} has {in_value[value_of[one.name]]} machines, "
            f"{one.machines} of them here",
        )
        for one in ranked
    )


def weight(clusters: tuple[Cluster, ...], _: Rules) -> tuple[Score, ...]:
    """The heaviest first; among equals, the one with fewer machines."""
    ranked = sorted(clusters, key=lambda one: (-one.weight, one.machines, one.name))
    return tuple(Score(one.name, f"weight {one.weight}, {one.machines} machines") for one in ranked)


PREFERENCES: dict[str, Preference] = {
    "round-robin": round_robin,
    "least-loaded": least_loaded,
    "spread": spread,
    "weight": weight,
}
