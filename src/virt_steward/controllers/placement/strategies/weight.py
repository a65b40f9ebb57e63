"""weight: the cluster whose KubevirtConfig has the highest spec.weight."""

from __future__ import annotations

from typing import TYPE_CHECKING

from virt_steward.controllers.placement.strategies.strategy import ClusterScore, PlacementStrategy
from virt_steward.objects.counts import count_of

if TYPE_CHECKING:
    from virt_steward.controllers.placement.observation import MemberCluster
    from virt_steward.controllers.placement.options import PlacementRules


def rank(clusters: tuple[MemberCluster, ...], _: PlacementRules) -> tuple[ClusterScore, ...]:
    """The highest weight first; among equals, the one with fewer Machines."""
    ranked = sorted(clusters, key=lambda one: (-one.weight, one.machines, one.name))
    return tuple(ClusterScore(one.name, f"weight {one.weight}, {count_of(one.machines, 'machine')}") for one in ranked)


WEIGHT = PlacementStrategy("weight", "the highest spec.weight of its KubevirtConfig", rank)
