"""Looks at clusters now and then, and reports what it finds in the status of their KubevirtConfigs."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from virt_steward.controllers.placement.act import report
from virt_steward.controllers.placement.fleet import ClusterReached
from virt_steward.controllers.placement.observation import Unreachable, UnusableCluster
from virt_steward.controllers.placement.report import status_of
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
"""So many clusters are looked at together: those that do not answer must not keep all workers."""
JITTER = 0.1


@dataclass(frozen=True, slots=True)
class Pulse:
    """What a cluster said when it was last looked at."""

    edition: int
    answer: Answer
    is_silent: bool
    """Whether it was left in peace after that. One that answers, if with nonsense, is not."""
    next_look: float


@dataclass(slots=True)
class ClusterStatusWriter:
    """Joins looking, reporting and telling for clusters."""

    client: Client
    view: PlacementClusterView
    fleet: Fleet
    waiting: PendingMachines
    reporter: PlacementReporter
    wake: Callable[[Hashable], None]
    interval: float
    clock: Clock
    rng: Random
    _pulses: dict[str, Pulse] = field(default_factory=dict)
    _written: dict[str, float] = field(default_factory=dict)
    _looking: set[str] = field(default_factory=set)

    async def report(self, name: str) -> Outcome:
        config = self.view.configs.get(Key("", name))
        if config is None:
            self.forget(name)
            return Done()
        pulse = await self._pulse(name)
        if pulse is None:
            return RequeueAfter(0.2, "other clusters are looked at first")
        self.reporter.cluster(name, pulse.answer)
        next_look = RequeueAfter(max(pulse.next_look - self.clock.now(), 0.0), "it is looked at now and then")
        status = status_of(config, pulse.answer, self.view.ledger.machines_on(name), self.clock.utc())
        if status == config.status:
            return next_look
        early = self._written.get(name, 0.0) + BETWEEN_STATUS_WRITES - self.clock.now()
        if early > 0:
            return RequeueAfter(early, "more may come")
        self._written[name] = self.clock.now()
        with suppress(Conflict, NotFound):  # the config has gone meanwhile, which is news of its own
            await report(self.client, config, status)
        return next_look

    async def _pulse(self, name: str) -> Pulse | None:
        """The last one, if it still holds; None if too many others are looked at."""
        known = self._pulses.get(name)
        if known and self._holds(name, known):
            return known
        if len(self._looking) >= AT_ONCE:
            return None
        self._looking.add(name)
        try:
            edition = self.fleet.edition(name)
            answer = await self.fleet.probe(name)
        finally:
            self._looking.discard(name)
        next_look = self.clock.now() + self._pause(name, answer)
        self._pulses[name] = pulse = Pulse(edition, answer, self._is_silent(name), next_look)
        if isinstance(answer, ClusterReached) and known and not isinstance(known.answer, ClusterReached):
            for machine in self.waiting:  # it may be the one that they wait for
                self.waiting.woken(machine)
                self.wake(machine)
        return pulse

    def _holds(self, name: str, pulse: Pulse) -> bool:
        """Until its time is over, the cluster is another, or a search fared otherwise.

        That nobody can be asked is seen without asking, and may have another reason by now.
        """
        return (
            self.clock.now() < pulse.next_look
            and not isinstance(pulse.answer, UnusableCluster)
            and self.fleet.edition(name) == pulse.edition
            and self._is_silent(name) == pulse.is_silent
        )

    def _is_silent(self, name: str) -> bool:
        return self.fleet.silence(name) is not None

    def _pause(self, name: str, answer: Answer) -> float:
        if isinstance(answer, Unreachable) and (retry := self.fleet.retry_in(name)):
            return retry
        return self.interval * self.rng.uniform(1 - JITTER, 1 + JITTER)

    def forget(self, name: str) -> None:
        """Its config is gone."""
        self._pulses.pop(name, None)
        self._written.pop(name, None)
        self.reporter.gone(name)
