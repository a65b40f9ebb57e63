"""What waits and who answers, as gauges: alerts ask how many, for which reason, and since when."""

from __future__ import annotations

from typing import TYPE_CHECKING

from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

if TYPE_CHECKING:
    from collections.abc import Iterator

    from prometheus_client import CollectorRegistry

    from virt_steward.objects.identity import Key


class PlacementMetrics(Collector):
    """Counted when somebody asks, so that what no longer holds has no series."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._waits: dict[Key, tuple[str, float]] = {}
        self._reachable: dict[str, bool] = {}
        registry.register(self)

    def waits(self, machine: Key, reason: str, since: float) -> None:
        """The machine has no usable cluster, for this reason, since then in Unix time."""
        self._waits[machine] = (reason, since)

    def waits_no_more(self, machine: Key) -> None:
        self._waits.pop(machine, None)

    def answers(self, cluster: str, *, reachable: bool) -> None:
        self._reachable[cluster] = reachable

    def gone(self, cluster: str) -> None:
        self._reachable.pop(cluster, None)

    def collect(self) -> Iterator[GaugeMetricFamily]:
        counts = GaugeMetricFamily(
            "virt_steward_placement_unplaced_machines", "Machines without a usable cluster.", labels=["reason"]
        )
        oldest = GaugeMetricFamily(
            "virt_steward_placement_oldest_unplaced_timestamp_seconds",
            "Since when the longest waiting machine waits for this reason, in Unix time.",
            labels=["reason"],
        )
        by_reason: dict[str, list[float]] = {}
        for reason, since in self._waits.values():
            by_reason.setdefault(reason, []).append(since)
        for reason, times in sorted(by_reason.items()):
            counts.add_metric([reason], len(times))
            oldest.add_metric([reason], min(times))
        reachable = GaugeMetricFamily(
            "virt_steward_placement_cluster_reachable", "1 while the cluster answers.", labels=["cluster"]
        )
        for cluster, answers in sorted(self._reachable.items()):
            reachable.add_metric([cluster], float(answers))
        yield from (counts, oldest, reachable)
