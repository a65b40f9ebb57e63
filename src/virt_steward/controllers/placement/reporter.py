"""Tells people and machines what was decided: log, events on the machine, metrics."""

from __future__ import annotations

from contextlib import suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import structlog
from prometheus_client import Counter, Histogram

from virt_steward.controllers.placement.condition import said_of
from virt_steward.controllers.placement.fleet import ClusterReached, ClusterRejected
from virt_steward.controllers.placement.metrics import PlacementMetrics
from virt_steward.controllers.placement.observation import MACHINE, MACHINE_API
from virt_steward.controllers.placement.reason_annotation import reason_on
from virt_steward.kube.events import Occurrence
from virt_steward.objects.identity import Ref, Regarding

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry

    from virt_steward.controllers.placement.observation import Machine
    from virt_steward.controllers.placement.report import Answer
    from virt_steward.controllers.placement.verdicts import Blocked, Chosen
    from virt_steward.kube.events import Recorder
    from virt_steward.objects.identity import Key
    from virt_steward.runtime.clock import Clock

log = structlog.get_logger()

SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)
PLACED = "Placed"
LATELY = 600.0
"""Seconds; shorter than servers keep events, so that none is told twice."""


class PlacementReporter:
    """Each decision is told once, when it is new."""

    def __init__(self, recorder: Recorder, clock: Clock, registry: CollectorRegistry) -> None:
        self._recorder = recorder
        self._clock = clock
        self._gauges = PlacementMetrics(registry)
        self._decisions = Counter(
            "virt_steward_placement_decisions",
            "Decisions on machines, by the strategy whose word counted.",
            ["strategy", "outcome"],
            registry=registry,
        )
        self._searches = Histogram(
            "virt_steward_placement_search_seconds",
            "Seconds that it took to ask the clusters for a VM.",
            buckets=SECONDS,
            registry=registry,
        )
        self._questions = Histogram(
            "virt_steward_placement_cluster_seconds",
            "Seconds until a cluster answered, or was given up.",
            ["cluster", "answered"],
            buckets=SECONDS,
            registry=registry,
        )

    def placed(self, machine: Machine, chosen: Chosen, strategy: str, taken_from: tuple[str, ...]) -> None:
        key = machine.metadata.key
        because = chosen.because
        if taken_from:
            because += f" (the empty annotation was taken from {', '.join(taken_from)})"
        log.info("placed machine", machine=str(key), cluster=chosen.cluster, strategy=strategy, because=because)
        self._decisions.labels(strategy, PLACED).inc()
        self._tell_placed(machine, chosen.cluster, because)

    def was_placed(self, machine: Machine) -> None:
        """The choice is recorded. If that was of late, whoever did so may have ended before it told of it."""
        now = self._clock.utc().timestamp()
        of_late = any(abs(now - _unix(write.time, 0.0)) < LATELY for write in machine.metadata.managed_fields)
        if of_late and (because := reason_on(machine)):
            self._tell_placed(machine, machine.wishes.config, because)

    def _tell_placed(self, machine: Machine, cluster: str, because: str) -> None:
        note = f"placed on cluster {cluster}: {because}"
        self._recorder.once(Occurrence(_regarding(machine), "Normal", PLACED, "Place", note, cluster))

    def blocked(self, machine: Machine, blocked: Blocked, strategy: str) -> None:
        """Said when a machine begins to wait, or waits for something else than before."""
        log.info(
            "machine not placed",
            machine=str(machine.metadata.key),
            strategy=strategy,
            reason=blocked.reason,
            why=blocked.because,
        )
        self._decisions.labels(strategy, blocked.reason).inc()
        self._recorder.once(
            Occurrence(_regarding(machine), "Warning", blocked.reason, "Place", blocked.because, blocked.because)
        )

    def waits(self, machine: Machine, blocked: Blocked, waited: float) -> None:
        """Show it among the machines without a cluster: since its condition says so, or for so many seconds."""
        since = self._clock.utc().timestamp() - waited
        said = said_of(machine)
        if said and said.status == "False":
            since = min(since, _unix(said.last_transition_time, since))
        self._gauges.waits(machine.metadata.key, blocked.reason, since)

    def waits_no_more(self, machine: Key) -> None:
        self._gauges.waits_no_more(machine)

    def searched(self, seconds: float) -> None:
        self._searches.observe(seconds)

    def asked(self, cluster: str, seconds: float, *, answered: bool) -> None:
        self._questions.labels(cluster, str(answered).lower()).observe(seconds)

    def cluster(self, name: str, answer: Answer) -> None:
        self._gauges.answers(name, reachable=isinstance(answer, ClusterReached | ClusterRejected))

    def gone(self, cluster: str) -> None:
        """The cluster's config was deleted: its series must not go on."""
        self._gauges.gone(cluster)
        for answered in ("true", "false"):
            with suppress(KeyError):  # it may never have been asked
                self._questions.remove(cluster, answered)


def _unix(text: str, otherwise: float) -> float:
    try:
        return datetime.fromisoformat(text).astimezone(UTC).timestamp()
    except ValueError:  # somebody edited the condition
        return otherwise


def _regarding(machine: Machine) -> Regarding:
    return Regarding(Ref(MACHINE, machine.metadata.key), MACHINE_API, machine.metadata.uid)
