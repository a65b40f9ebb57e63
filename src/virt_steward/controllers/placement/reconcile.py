"""The placement controller: places Machines one by one, and reports on clusters."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from virt_steward.controllers.placement.act import record, write_condition
from virt_steward.controllers.placement.evaluate import evaluate
from virt_steward.controllers.placement.report import new_condition, recorded_reason
from virt_steward.controllers.placement.verdicts import Blocked, Chosen
from virt_steward.controllers.placement.watches import ClusterKey
from virt_steward.kube.errors import Conflict, Invalid, NotFound
from virt_steward.runtime.outcomes import Done, RequeueAfter

if TYPE_CHECKING:
    from virt_steward.controllers.placement.act import MachineSchema
    from virt_steward.controllers.placement.clusters import ClusterStatusWriter
    from virt_steward.controllers.placement.evaluate import Evaluation
    from virt_steward.controllers.placement.fleet import Fleet
    from virt_steward.controllers.placement.observation import Machine
    from virt_steward.controllers.placement.observe import PlacementClusterView
    from virt_steward.controllers.placement.options import PlacementOptions
    from virt_steward.controllers.placement.pending import PendingMachines
    from virt_steward.controllers.placement.reporter import PlacementReporter
    from virt_steward.controllers.placement.rules.rule import PlacementRule
    from virt_steward.controllers.placement.search import Search
    from virt_steward.controllers.placement.watches import PlacementEventHandlers
    from virt_steward.kube.client import Client
    from virt_steward.objects.identity import Key
    from virt_steward.runtime.clock import Clock
    from virt_steward.runtime.controller import Trigger
    from virt_steward.runtime.outcomes import Outcome

RECHECK = 300.0
"""Seconds until a Machine that needs a person is evaluated again though nothing changed."""
STALE = RequeueAfter(1.0, "the Machine has changed meanwhile")


class PlacementController:
    """Machines and clusters, by their keys."""

    def __init__(self, handlers: PlacementEventHandlers, placer: Placer, status_writer: ClusterStatusWriter) -> None:
        self._handlers = handlers
        self._placer = placer
        self._status_writer = status_writer

    @property
    def triggers(self) -> tuple[Trigger[Any], ...]:
        return self._handlers.triggers

    async def reconcile(self, key: Key | ClusterKey) -> Outcome:
        if isinstance(key, ClusterKey):
            return await self._status_writer.report(key.config)
        return await self._placer.place(key)


@dataclass(frozen=True, slots=True)
class Placer:
    """Observes a Machine, decides on its cluster, records the choice and reports it."""

    client: Client
    view: PlacementClusterView
    fleet: Fleet
    search: Search
    pending: PendingMachines
    schema: MachineSchema
    reporter: PlacementReporter
    clock: Clock
    options: PlacementOptions

    async def place(self, key: Key) -> Outcome:
        evaluation = await self._evaluate(key)
        if evaluation is None:
            self.forget(key)
            return Done()
        machine, decision = evaluation.observation.machine, evaluation.decision
        match decision.outcome:
            case Chosen() if machine.request.config:
                return await self._confirm(machine, decision.outcome)
            case Chosen():
                return await self._choose(machine, decision.outcome, decision.rule)
            case Blocked():
                return await self._block(evaluation, decision.outcome)
        raise AssertionError(decision)  # `evaluate` has asked the clusters

    async def _evaluate(self, key: Key) -> Evaluation | None:
        """None: there is nothing to do for this Machine, or it is done already."""
        since = self.pending.begin(key)
        if not self._needs_evaluation(self.view.machines.get(key)):
            return None
        with suppress(TimeoutError):  # a Secret that is being read is not one that cannot be read
            async with asyncio.timeout(self.options.limits.timeout):
                await self.fleet.settled()
        evaluation = await evaluate(self.view, self.search, key, since, self.pending.reported(key))
        return evaluation if evaluation and self._needs_evaluation(evaluation.observation.machine) else None

    def _needs_evaluation(self, machine: Machine | None) -> bool:
        if machine is None or machine.is_deleting or not machine.is_ours:
            return False
        return not self.view.assignments.awaits(machine)  # else the watch does not show our own choice yet

    async def _confirm(self, machine: Machine, chosen: Chosen) -> Outcome:
        """The choice is recorded, and its cluster is usable: update the condition if there is one."""
        self.forget(machine.metadata.key)
        self.reporter.already_placed(machine)
        self.reporter.decided(machine)
        explained = replace(chosen, reason=recorded_reason(machine) or chosen.reason)
        return await self._write_condition(machine, explained) or Done()

    async def _choose(self, machine: Machine, chosen: Chosen, rule: PlacementRule) -> Outcome:
        """There must be no await between the decision and the assignment: the next decision relies on it."""
        try:
            with self.view.assignments.assuming(machine, chosen.cluster):
                taken_from = await record(self.client, machine, chosen)
        except Conflict:
            return STALE
        self.forget(machine.metadata.key)
        self.reporter.placed(machine, chosen, rule, taken_from)
        return Done()

    async def _block(self, evaluation: Evaluation, blocked: Blocked) -> Outcome:
        machine, key = evaluation.observation.machine, evaluation.observation.machine.metadata.key
        if self.pending.block(key, blocked):
            self.reporter.blocked(machine, blocked, evaluation.decision.rule)
        pending_for = self.pending.seconds(key)
        self.reporter.pending(machine, blocked, pending_for)
        if stale := await self._write_condition(machine, blocked):
            return stale
        if not evaluation.observation.findings:  # an event comes when this changes
            return RequeueAfter(RECHECK, blocked.message)
        seconds = min(max(pending_for, self.options.timeouts.memory), self.options.limits.longest_retry)
        return RequeueAfter(seconds, blocked.message)

    async def _write_condition(self, machine: Machine, outcome: Chosen | Blocked) -> RequeueAfter | None:
        """Write the condition if it has changed; if the Machine has changed meanwhile, try again later."""
        condition = new_condition(machine, outcome, self.clock.utc())
        if not condition or not await self.schema.has_conditions():
            return None
        try:
            await write_condition(self.client, machine, condition)
        except (Invalid, NotFound):
            if self.view.machines.get(machine.metadata.key) == machine:  # then the cause is another
                raise
            return STALE
        return None

    def forget(self, machine: Key) -> None:
        """The Machine is placed, deleted, or not ours: it is not pending."""
        self.pending.end(machine)
        self.reporter.not_pending(machine)
