"""spread: evenly over the values of a label of the KubevirtConfigs, such as regions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from virt_steward.controllers.placement.strategies.strategy import ClusterScore, PlacementStrategy
from virt_steward.objects.counts import count_of

if TYPE_CHECKING:
    from virt_steward.controllers.placement.observation import MemberCluster
    from virt_steward.controllers.placement.options import PlacementRules


def rank(clusters: tuple[MemberCluster, ...], rules: PlacementRules) -> tuple[ClusterScore, ...]:
    """By the number of Machines under the same value of the label, then by that of each cluster."""
    value_of = {one.name: (one.labels or {}).get(rules.spread_label, "") for one in clusters}
    in_value: dict[str, int] = {}
    for one in clusters:
        in_value[value_of[one.name]] = in_value.get(value_of[one.name], 0) + one.machines
    ranked = sorted(clusters, key=lambda one: (in_value[value_of[one.name]], one.machines, one.name))
    return tuple(
        ClusterScore(
            one.name,
            f"{rules.spread_label}={value_of[one.name] or 'none'} has "
            f"{count_of(in_value[value_of[one.name]], 'machine')}, {one.machines} of them here",
        )
        for one in ranked
    )


SPREAD = PlacementStrategy("spread", "evenly over the values of --spread-label", rank)
