"""Reports decisions of the placement: log, events on Machines and KubevirtConfigs, metrics."""

from __future__ import annotations

from contextlib import suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import structlog
from prometheus_client import Counter, Histogram
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from virt_steward.apis.kubevirtconfig import KUBEVIRT_CONFIG
from virt_steward.controllers.placement.fleet import ClusterReached, ClusterRejected
from virt_steward.controllers.placement.notifications import cluster_reason
from virt_steward.controllers.placement.observation import MACHINE, MACHINE_API
from virt_steward.controllers.placement.report import PLACED, placed_condition, recorded_reason
from virt_steward.kube.events import Occurrence
from virt_steward.objects.identity import Ref, Regarding
from virt_steward.runtime.decision_events import report_decision

if TYPE_CHECKING:
    from collections.abc import Iterator

    from prometheus_client import CollectorRegistry

    from virt_steward.controllers.placement.observation import Machine
    from virt_steward.controllers.placement.observe import KubevirtConfig, KubevirtConfigReport
    from virt_steward.controllers.placement.report import Answer
    from virt_steward.controllers.placement.rules.rule import PlacementRule
    from virt_steward.controllers.placement.verdicts import Blocked, Chosen
    from virt_steward.kube.events import Recorder
    from virt_steward.objects.identity import Key
    from virt_steward.runtime.clock import Clock

log = structlog.get_logger()

SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)
RECENT = 600.0
"""Seconds; less than servers keep events, so that an event that exists is not created twice."""


class PlacementReporter:
    """Reports each decision once, when it is new."""

    def __init__(self, recorder: Recorder, clock: Clock, registry: CollectorRegistry) -> None:
        self._recorder = recorder
        self._clock = clock
        self._gauges = PlacementMetrics(registry)
        self._decisions = Counter(
            "virt_steward_placement_decisions",
            "Decisions on Machines, by the rule that decided.",
            ["strategy", "outcome"],
            registry=registry,
        )
        self._searches = Histogram(
            "virt_steward_placement_search_seconds",
            "Seconds that it took to ask the clusters for a VM.",
            buckets=SECONDS,
            registry=registry,
        )
        self._requests = Histogram(
            "virt_steward_placement_cluster_seconds",
            "Seconds until a cluster answered, or the request failed.",
            ["cluster", "answered"],
            buckets=SECONDS,
            registry=registry,
        )

    def placed(self, machine: Machine, chosen: Chosen, rule: PlacementRule, taken_from: tuple[str, ...]) -> None:
        reason = chosen.reason
        if taken_from:
            reason += f" (the empty annotation was taken from {', '.join(taken_from)})"
        key = str(machine.metadata.key)
        log.info("machine placed", machine=key, cluster=chosen.cluster, rule=rule.name, reason=reason)
        self._decisions.labels(rule.name, PLACED).inc()
        self._record_placed(machine, chosen.cluster, reason)

    def already_placed(self, machine: Machine) -> None:
        """If the choice was recorded recently, the process that recorded it may have ended before its event."""
        now = self._clock.utc().timestamp()
        is_recent = any(abs(now - _unix(write.time, 0.0)) < RECENT for write in machine.metadata.managed_fields)
        reason = recorded_reason(machine)
        if is_recent and reason:
            self._record_placed(machine, machine.request.config, reason)
        else:
            self._recorder.tell(_placed(machine, machine.request.config, reason or "somebody chose it"))

    def decided(self, machine: Machine) -> None:
        """Report who chose the cluster, if a person did."""
        report_decision(self._recorder, machine.request.last_decision, _regarding(machine), self._clock.utc())

    def _record_placed(self, machine: Machine, cluster: str, reason: str) -> None:
        self._recorder.once(_placed(machine, cluster, reason))

    def blocked(self, machine: Machine, blocked: Blocked, rule: PlacementRule) -> None:
        """The error of a Machine is new."""
        log.info(
            "machine not placed",
            machine=str(machine.metadata.key),
            rule=rule.name,
            reason=blocked.reason,
            message=blocked.message,
        )
        self._decisions.labels(rule.name, blocked.reason).inc()
        self._recorder.once(
            Occurrence(_regarding(machine), "Warning", blocked.reason, "Place", blocked.message, blocked.message)
        )

    def pending(self, machine: Machine, blocked: Blocked, seconds: float) -> None:
        """Count it among the unplaced Machines: since its condition says so, or for so many seconds."""
        since = self._clock.utc().timestamp() - seconds
        condition = placed_condition(machine)
        if condition and condition.status == "False":
            since = min(since, _unix(condition.last_transition_time, since))
        self._gauges.set_pending(machine.metadata.key, blocked.reason, since)

    def not_pending(self, machine: Key) -> None:
        self._gauges.remove_pending(machine)

    def search_ended(self, seconds: float) -> None:
        self._searches.observe(seconds)

    def request_ended(self, cluster: str, seconds: float, *, answered: bool) -> None:
        self._requests.labels(cluster, str(answered).lower()).observe(seconds)

    def cluster_probed(self, name: str, answer: Answer) -> None:
        self._gauges.set_reachable(name, reachable=isinstance(answer, ClusterReached | ClusterRejected))

    def cluster_reported(self, config: KubevirtConfig, status: KubevirtConfigReport) -> None:
        """An event when its phase is new; the notifications hear it every time."""
        ready = status.phase == "Ready"
        reason = next((one.message for one in status.conditions if one.status != "True" and one.message), "")
        note = f"cluster {config.metadata.name} " + ("answers" if ready else f"is {status.phase}: {reason}")
        regarding = Regarding(Ref(KUBEVIRT_CONFIG, config.metadata.key), MACHINE_API, config.metadata.uid)
        occurrence = Occurrence(
            regarding, "Normal" if ready else "Warning", cluster_reason(status.phase), "Probe", note
        )
        if config.status.phase == status.phase or (ready and not config.status.phase):
            self._recorder.tell(occurrence)
        else:
            self._recorder.again(occurrence)

    def cluster_deleted(self, cluster: str) -> None:
        """Remove its series."""
        self._gauges.remove_cluster(cluster)
        for answered in ("true", "false"):
            with suppress(KeyError):  # it may never have been asked
                self._requests.remove(cluster, answered)


class PlacementMetrics(Collector):
    """Gauges for alerts: how many Machines are unplaced, for which reason and since when, and which clusters answer.

    They are computed when they are scraped, so that what no longer applies has no series.
    """

    def __init__(self, registry: CollectorRegistry) -> None:
        self._pending: dict[Key, tuple[str, float]] = {}
        self._reachable: dict[str, bool] = {}
        registry.register(self)

    def set_pending(self, machine: Key, reason: str, since: float) -> None:
        """The Machine has no usable cluster, for this reason, since this Unix time."""
        self._pending[machine] = (reason, since)

    def remove_pending(self, machine: Key) -> None:
        self._pending.pop(machine, None)

    def set_reachable(self, cluster: str, *, reachable: bool) -> None:
        self._reachable[cluster] = reachable

    def remove_cluster(self, cluster: str) -> None:
        self._reachable.pop(cluster, None)

    def collect(self) -> Iterator[GaugeMetricFamily]:
        counts = GaugeMetricFamily(
            "virt_steward_placement_unplaced_machines", "Machines without a usable cluster.", labels=["reason"]
        )
        oldest = GaugeMetricFamily(
            "virt_steward_placement_oldest_unplaced_timestamp_seconds",
            "Since when the longest pending Machine is pending for this reason, in Unix time.",
            labels=["reason"],
        )
        by_reason: dict[str, list[float]] = {}
        for reason, since in self._pending.values():
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


def _unix(text: str, otherwise: float) -> float:
    try:
        return datetime.fromisoformat(text).astimezone(UTC).timestamp()
    except ValueError:  # somebody edited the condition
        return otherwise


def _placed(machine: Machine, cluster: str, reason: str) -> Occurrence:
    return Occurrence(_regarding(machine), "Normal", PLACED, "Place", f"placed on cluster {cluster}: {reason}", cluster)


def _regarding(machine: Machine) -> Regarding:
    return Regarding(Ref(MACHINE, machine.metadata.key), MACHINE_API, machine.metadata.uid)
