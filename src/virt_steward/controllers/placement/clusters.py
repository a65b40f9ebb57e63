"""Probes the clusters from time to time, and reports the result in the status of their KubevirtConfigs."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from virt_steward.controllers.placement.act import write_config_status
from virt_steward.controllers.placement.fleet import ClusterReached
from virt_steward.controllers.placement.observation import SecretNotReadYet, Unreachable, UnusableCluster
from virt_steward.controllers.placement.observe import free_capacity
from virt_steward.controllers.placement.report import config_status
from virt_steward.kube.errors import Conflict, NotFound
from virt_steward.objects.identity import Key
from virt_steward.runtime.outcomes import Done, RequeueAfter

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable
    from random import Random

    from virt_steward.controllers.placement.fleet import Fleet
    from virt_steward.controllers.placement.observe import PlacementClusterView
    from virt_steward.controllers.placement.pending import PendingMachines
    from virt_steward.controllers.placement.report import Answer
    from virt_steward.controllers.placement.reporter import PlacementReporter
    from virt_steward.kube.client import Client
    from virt_steward.runtime.clock import Clock
    from virt_steward.runtime.outcomes import Outcome

BETWEEN_STATUS_WRITES = 1.0
AT_ONCE = 5
"""So many clusters are probed at once: unreachable ones must not occupy all workers."""
JITTER = 0.1


@dataclass(frozen=True, slots=True)
class ClusterProbe:
    """The result of the last probe of a cluster."""

    edition: int
    answer: Answer
    has_failed: bool
    """Whether a backoff followed."""
    next_probe: float


@dataclass(slots=True)
class ClusterStatusWriter:
    """Probes a cluster and writes the status of its KubevirtConfig."""

    client: Client
    view: PlacementClusterView
    fleet: Fleet
    pending: PendingMachines
    reporter: PlacementReporter
    wake: Callable[[Hashable], None]
    interval: float
    clock: Clock
    rng: Random
    _probes: dict[str, ClusterProbe] = field(default_factory=dict)
    _written: dict[str, float] = field(default_factory=dict)
    _probing: set[str] = field(default_factory=set)

    async def report(self, name: str) -> Outcome:
        config = self.view.configs.get(Key("", name))
        if config is None:
            self.forget(name)
            return Done()
        probe = await self._last_probe(name)
        if probe is None:
            return RequeueAfter(0.2, "other clusters are probed first")
        self.reporter.cluster_probed(name, probe.answer)
        next_probe = RequeueAfter(max(probe.next_probe - self.clock.now(), 0.0), "until its next probe")
        machines, free = self.view.assignments.machines_on(name), free_capacity(self.view, name)
        status = config_status(config, probe.answer, machines, free, self.clock.utc())
        if not isinstance(probe.answer, SecretNotReadYet):
            self.reporter.cluster_reported(config, status)
        if status == config.status:
            return next_probe
        early = self._written.get(name, 0.0) + BETWEEN_STATUS_WRITES - self.clock.now()
        if early > 0:
            return RequeueAfter(early, "statuses are written at most once a second")
        self._written[name] = self.clock.now()
        with suppress(Conflict, NotFound):  # it was deleted or replaced meanwhile, which is an event of its own
            await write_config_status(self.client, config, status)
        return next_probe

    async def _last_probe(self, name: str) -> ClusterProbe | None:
        """The last one, if it is still valid; None if too many others are being probed."""
        known = self._probes.get(name)
        if known and self._is_valid(name, known):
            return known
        if len(self._probing) >= AT_ONCE:
            return None
        self._probing.add(name)
        try:
            edition = self.fleet.edition(name)
            answer = await self.fleet.probe(name)
        finally:
            self._probing.discard(name)
        next_probe = self.clock.now() + self._interval(name, answer)
        self._probes[name] = probe = ClusterProbe(edition, answer, self._has_failed(name), next_probe)
        if isinstance(answer, ClusterReached) and known and not isinstance(known.answer, ClusterReached):
            for machine in self.pending:  # it may be the cluster that they need
                self.pending.note_change(machine)
                self.wake(machine)
        return probe

    def _is_valid(self, name: str, probe: ClusterProbe) -> bool:
        """Until its time is over, the cluster is another one, or a search got another result.

        Whether a cluster can be asked at all is known without a request, so it is checked every time.
        """
        return (
            self.clock.now() < probe.next_probe
            and not isinstance(probe.answer, UnusableCluster)
            and self.fleet.edition(name) == probe.edition
            and self._has_failed(name) == probe.has_failed
        )

    def _has_failed(self, name: str) -> bool:
        return self.fleet.last_failure(name) is not None

    def _interval(self, name: str, answer: Answer) -> float:
        if isinstance(answer, Unreachable) and (retry := self.fleet.retry_in(name)):
            return retry
        return self.interval * self.rng.uniform(1 - JITTER, 1 + JITTER)

    def forget(self, name: str) -> None:
        """Its KubevirtConfig was deleted."""
        self._probes.pop(name, None)
        self._written.pop(name, None)
        self.reporter.cluster_deleted(name)
