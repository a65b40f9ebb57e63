"""round-robin: one cluster after the other."""

from __future__ import annotations

from typing import TYPE_CHECKING

from virt_steward.controllers.placement.strategies.strategy import ClusterScore, PlacementStrategy

if TYPE_CHECKING:
    from virt_steward.controllers.placement.observation import MemberCluster
    from virt_steward.controllers.placement.options import PlacementRules


def rank(clusters: tuple[MemberCluster, ...], _: PlacementRules) -> tuple[ClusterScore, ...]:
    """The turn follows from the number of Machines on each cluster: there is no state to lose, and gaps are filled."""
    in_turn = sorted(clusters, key=lambda one: (one.machines, one.name))
    return tuple(ClusterScore(one.name, f"number {place} in turn") for place, one in enumerate(in_turn, 1))


ROUND_ROBIN = PlacementStrategy("round-robin", "one cluster after the other", rank)
