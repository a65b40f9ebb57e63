"""The placement: machines are judged one by one; a cluster is looked at, and its status written, in between."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from virt_steward.controllers.placement.act import record, say
from virt_steward.controllers.placement.condition import to_say_of
from virt_steward.controllers.placement.evaluate import evaluate
from virt_steward.controllers.placement.reason_annotation import reason_on
from virt_steward.controllers.placement.verdicts import Blocked, Chosen
from virt_steward.controllers.placement.watches import ClusterKey
from virt_steward.kube.errors import Conflict, Invalid, NotFound
from virt_steward.runtime.outcomes import Done, RequeueAfter

if TYPE_CHECKING:
    from virt_steward.controllers.placement.clusters import ClusterStatusWriter
    from virt_steward.controllers.placement.evaluate import Evaluation
    from virt_steward.controllers.placement.fleet import Fleet
    from virt_steward.controllers.placement.observation import Machine
    from virt_steward.controllers.placement.observe import PlacementClusterView
    from virt_steward.controllers.placement.options import PlacementOptions
    from virt_steward.controllers.placement.pending import PendingMachines
    from virt_steward.controllers.placement.reporter import PlacementReporter
    from virt_steward.controllers.placement.schema import MachineSchema
    from virt_steward.controllers.placement.search import Search
    from virt_steward.controllers.placement.watches import PlacementEventHandlers
    from virt_steward.kube.client import Client
    from virt_steward.objects.identity import Key
    from virt_steward.runtime.clock import Clock
    from virt_steward.runtime.controller import Trigger
    from virt_steward.runtime.outcomes import Outcome

LOOK_AGAIN = 300.0
"""Seconds until a machine that waits for a person is judged anew though nothing happened."""
STALE = RequeueAfter(1.0, "the machine has changed meanwhile")


class PlacementController:
    """Machines and clusters, by their keys."""

    def __init__(self, handlers: PlacementEventHandlers, placer: Placer, reporter: ClusterStatusWriter) -> None:
        self._handlers = handlers
        self._placer = placer
        self._reporter = reporter

    @property
    def triggers(self) -> tuple[Trigger[Any], ...]:
        return self._handlers.triggers

    async def reconcile(self, key: Key | ClusterKey) -> Outcome:
        if isinstance(key, ClusterKey):
            return await self._reporter.report(key.config)
        return await self._placer.place(key)


@dataclass(frozen=True, slots=True)
class Placer:
    """Joins seeing, deciding, acting and telling for machines."""

    client: Client
    view: PlacementClusterView
    fleet: Fleet
    search: Search
    waiting: PendingMachines
    schema: MachineSchema
    reporter: PlacementReporter
    clock: Clock
    options: PlacementOptions

    async def place(self, key: Key) -> Outcome:
        judgement = await self._judged(key)
        if judgement is None:
            self.waits_no_more(key)
            return Done()
        machine, decision = judgement.seen.machine, judgement.decision
        match decision.outcome:
            case Chosen() if machine.wishes.config:
                return await self._confirm(machine, decision.outcome)
            case Chosen():
                return await self._choose(machine, decision.outcome, decision.strategy)
            case Blocked():
                return await self._block(judgement, decision.outcome)
        raise AssertionError(decision)  # clusters that were to be asked have been

    async def _judged(self, key: Key) -> Evaluation | None:
        """None: there is nothing to do for this machine, or it is done already."""
        since = self.waiting.begin(key)
        if not self._concerns_us(self.view.machines.get(key)):
            return None
        with suppress(TimeoutError):  # a Secret that is about to be read is not one that cannot be
            async with asyncio.timeout(self.options.limits.timeout):
                await self.fleet.settled()
        judgement = await evaluate(self.view, self.search, key, since, self.waiting.reported(key))
        return judgement if judgement and self._concerns_us(judgement.seen.machine) else None

    def _concerns_us(self, machine: Machine | None) -> bool:
        if machine is None or machine.is_going or not machine.is_ours:
            return False
        return not self.view.ledger.awaits(machine)  # else our own choice has not come back yet

    async def _confirm(self, machine: Machine, chosen: Chosen) -> Outcome:
        """The choice is recorded, and its cluster can be used: say so only where something else was said."""
        self.waits_no_more(machine.metadata.key)
        self.reporter.was_placed(machine)
        told = replace(chosen, because=reason_on(machine) or chosen.because)
        return await self._say(machine, told) or Done()

    async def _choose(self, machine: Machine, chosen: Chosen, strategy: str) -> Outcome:
        """Nothing may come between the decision and its entry in the ledger: the next decision relies on it."""
        try:
            with self.view.ledger.assuming(machine, chosen.cluster):
                taken_from = await record(self.client, machine, chosen)
        except Conflict:
            return STALE
        self.waits_no_more(machine.metadata.key)
        self.reporter.placed(machine, chosen, strategy, taken_from)
        return Done()

    async def _block(self, judgement: Evaluation, blocked: Blocked) -> Outcome:
        machine, key = judgement.seen.machine, judgement.seen.machine.metadata.key
        if self.waiting.block(key, blocked):
            self.reporter.blocked(machine, blocked, judgement.decision.strategy)
        waited = self.waiting.waited(key)
        self.reporter.waits(machine, blocked, waited)
        if stale := await self._say(machine, blocked):
            return stale
        if not judgement.seen.findings:  # an event tells when this changes
            return RequeueAfter(LOOK_AGAIN, blocked.because)
        seconds = min(max(waited, self.options.patience.memory), self.options.limits.longest_retry)
        return RequeueAfter(seconds, blocked.because)

    async def _say(self, machine: Machine, outcome: Chosen | Blocked) -> RequeueAfter | None:
        """Write the condition, if there is one to write; on a machine that has changed, that is for the next time."""
        condition = to_say_of(machine, outcome, self.clock.utc())
        if not condition or not await self.schema.keeps_conditions():
            return None
        try:
            await say(self.client, machine, condition)
        except (Invalid, NotFound):
            if self.view.machines.get(machine.metadata.key) == machine:  # then something else is wrong
                raise
            return STALE
        return None

    def waits_no_more(self, machine: Key) -> None:
        """It has a cluster, or is none of our business."""
        self.waiting.end(machine)
        self.reporter.waits_no_more(machine)
