"""least-loaded: the cluster with the most free capacity."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from virt_steward.controllers.placement.strategies.strategy import ClusterScore, PlacementStrategy
from virt_steward.objects.counts import count_of

if TYPE_CHECKING:
    from virt_steward.controllers.placement.observation import CapacityFree, MemberCluster
    from virt_steward.controllers.placement.options import PlacementRules


def rank(clusters: tuple[MemberCluster, ...], _: PlacementRules) -> tuple[ClusterScore, ...]:
    """By the scarcer of memory and CPU, where it is known for all clusters; else by the number of Machines."""
    known = {one.name: one.free for one in clusters if one.free}
    if len(known) < len(clusters):
        ranked = sorted(clusters, key=lambda one: (one.machines, one.name))
        return tuple(ClusterScore(one.name, count_of(one.machines, "machine")) for one in ranked)
    if any(free.cpu is None for free in known.values()):
        known = {name: replace(free, cpu=None) for name, free in known.items()}
    ranked = sorted(clusters, key=lambda one: (-_scarcer(known[one.name]), one.machines, one.name))
    return tuple(
        ClusterScore(one.name, f"{_describe(known[one.name])}, {count_of(one.machines, 'machine')}") for one in ranked
    )


def _scarcer(free: CapacityFree) -> float:
    return free.memory if free.cpu is None else min(free.memory, free.cpu)


def _describe(free: CapacityFree) -> str:
    memory = f"{max(free.memory, 0.0):.0%} of its memory"
    return f"{memory} is free" if free.cpu is None else f"{memory} and {max(free.cpu, 0.0):.0%} of its CPU are free"


LEAST_LOADED = PlacementStrategy("least-loaded", "the most free memory and CPU", rank, needs_capacity=True)
