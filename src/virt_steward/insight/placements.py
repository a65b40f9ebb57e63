"""Which cluster a Machine goes to and why: observed as the placement would, with the result of each of its rules."""

from __future__ import annotations

import asyncio
import math
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from virt_steward.controllers.placement.assignments import Assignments
from virt_steward.controllers.placement.capacity import CapacityCache
from virt_steward.controllers.placement.decide import trace
from virt_steward.controllers.placement.definition import AGENT
from virt_steward.controllers.placement.evaluate import evaluate
from virt_steward.controllers.placement.fleet import Fleet, connections_to_members
from virt_steward.controllers.placement.observation import KubeVirtMissing, Unreachable, VmAbsent, VmFound
from virt_steward.controllers.placement.observe import PlacementClusterView
from virt_steward.controllers.placement.report import recorded_reason
from virt_steward.controllers.placement.search import Search
from virt_steward.controllers.placement.secrets import Secrets
from virt_steward.controllers.placement.verdicts import Blocked, Chosen
from virt_steward.controllers.placement.watches import CONFIGS, MACHINES
from virt_steward.insight.freeze import read_freeze
from virt_steward.insight.reading import listed, listed_if_served
from virt_steward.objects.checks import CheckResult
from virt_steward.objects.decision_record import DecisionRecord
from virt_steward.objects.document import JsonDocument
from virt_steward.objects.errors import UserError
from virt_steward.runtime.clock import SystemClock

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Mapping

    from virt_steward.controllers.placement.evaluate import Evaluation
    from virt_steward.controllers.placement.observation import Finding, Machine, MemberCluster
    from virt_steward.controllers.placement.observe import KubevirtConfig
    from virt_steward.controllers.placement.options import PlacementOptions, PlacementRules
    from virt_steward.kube.client import Reader
    from virt_steward.objects.identity import Key
    from virt_steward.runtime.store import Store

Presence = Literal["there", "not there", "unknown"]


class NoMachine(UserError):
    """The Machine does not exist or cannot be read; the text says which."""


class CandidateScore(JsonDocument, frozen=True):
    """What speaks for a cluster, where several were compared."""

    cluster: str
    words: str


class Candidate(JsonDocument, frozen=True):
    """A cluster as the placement sees it now."""

    name: str
    machines: int
    schedulable: bool
    trouble: str | None
    """Why it cannot be used, or does not answer."""
    vm: Presence | None
    """None: it was not asked."""


class AssumedRules(JsonDocument, frozen=True):
    """The settings that an answer assumes: those of the controller cannot be read from the cluster."""

    default_config: str
    strategy: str
    strict_search: bool
    spread_label: str
    vm_names: tuple[str, ...]

    @classmethod
    def of(cls, rules: PlacementRules) -> AssumedRules:
        return cls(rules.default_config, rules.strategy, rules.strict_search, rules.spread_label, rules.vm_names)


class PlacementExplanation(JsonDocument, frozen=True):
    """The whole answer on one machine."""

    machine: str
    recorded: str | None
    """The cluster in the Machine's annotation."""
    recorded_because: str | None
    """Why the controller chose it; None if it did not."""
    cluster: str | None
    """The cluster that is chosen now; None if none can be."""
    reason: str | None
    """Why not, for machines."""
    because: str
    decision: DecisionRecord | None
    """The person who chose the recorded cluster; None if nobody did, or has signed it."""
    assumed: AssumedRules
    checks: tuple[CheckResult, ...] = ()
    """The whole chain of rules, with those that were not reached."""
    scores: tuple[CandidateScore, ...] = ()
    clusters: tuple[Candidate, ...] = ()


async def explain_placement(reader: Reader, machine: Key, options: PlacementOptions) -> PlacementExplanation:
    """Read what the placement reads, and decide as it would. Raises NoMachine."""
    async with _survey(reader, options) as survey:
        return await survey.explained(machine)


async def preview_placements(reader: Reader, options: PlacementOptions) -> tuple[PlacementExplanation, ...]:
    """Preview the placement of every Machine that has no cluster yet, one after the other."""
    async with _survey(reader, options) as survey:
        waiting = [one for one in survey.view.machines.by("config", "") if not one.is_deleting]
        return tuple([await survey.explained(one.metadata.key, assume=True) for one in waiting])


@dataclass(frozen=True, slots=True)
class VmWhereabouts:
    """Under which of the searched names a Machine's VM exists, by cluster."""

    machine: Key
    found: Mapping[str, str]
    unknown: Mapping[str, str]
    """Why other clusters could not be searched."""


async def find_vms(
    reader: Reader, options: PlacementOptions, names: Callable[[Machine], tuple[str, ...]]
) -> tuple[VmWhereabouts, ...]:
    """Search all clusters for the VMs of all Machines of ours; the names come in the order of preference."""
    async with _survey(reader, options) as survey:
        configs = sorted(config.metadata.name for config in survey.view.configs)
        found = []
        for machine in sorted(survey.view.machines, key=lambda one: one.metadata.key):
            if machine.is_ours and not machine.is_deleting:
                key = machine.metadata.key
                findings = await survey.search.find(key.namespace, names(machine), configs, since=survey.began)
                found.append(_whereabouts(key, findings))
        return tuple(found)


def _whereabouts(machine: Key, findings: Mapping[str, Finding]) -> VmWhereabouts:
    return VmWhereabouts(
        machine,
        {config: one.vm for config, one in findings.items() if isinstance(one, VmFound)},
        {config: one.message for config, one in findings.items() if isinstance(one, Unreachable)},
    )


@dataclass(frozen=True, slots=True)
class _PlacementSurvey:
    """The controller's stores, filled once, and its connections to the clusters; nothing here can write."""

    view: PlacementClusterView
    search: Search
    began: float
    """Answers of clusters after this moment count for all Machines."""

    async def explained(self, key: Key, *, assume: bool = False) -> PlacementExplanation:
        """Explain one Machine. With `assume`, its previewed cluster counts as taken for the Machines after it."""
        machine = _found(self.view.machines, key)
        if untouched := _left_alone(machine, self.view.rules):
            return untouched
        judgement = await evaluate(self.view, self.search, key, since=self.began)
        if judgement is None:
            raise AssertionError(key)  # nobody takes it out of the store
        outcome = judgement.decision.outcome
        if assume and isinstance(outcome, Chosen):
            self.view.assignments.assume(machine, outcome.cluster)
        return _explained(judgement)


@asynccontextmanager
async def _survey(reader: Reader, options: PlacementOptions) -> AsyncIterator[_PlacementSurvey]:
    machines = await listed(reader, MACHINES, MACHINES.selection)  # first and alone: without them there is no question
    configs = await listed_if_served(reader, CONFIGS)
    assignments = Assignments()
    for machine in machines:
        assignments.take(machine.metadata.key, None, machine)
    clock = SystemClock()
    fleet = Fleet(
        Secrets(reader, _ignore_change),
        limits=options.limits,
        clock=clock,
        connect=connections_to_members(AGENT),
        observe=_count_nothing,
    )
    async with _running(fleet, configs, options.limits.timeout):
        capacity = CapacityCache(fleet, configs, assignments, clock, lasting=math.inf)
        freezes = await read_freeze(reader, options.namespace, "placement")
        view = PlacementClusterView(
            machines, configs, fleet, assignments, options.rules, capacity, lambda: freezes.state(clock.utc())
        )
        yield _PlacementSurvey(view, Search(fleet, options.timeouts, clock), clock.now())


@asynccontextmanager
async def _running(fleet: Fleet, configs: Store[KubevirtConfig], patience: float) -> AsyncIterator[None]:
    for config in configs:
        fleet.follow(config.metadata.name, config.spec)
    running = asyncio.create_task(fleet.run())
    try:
        with suppress(TimeoutError):
            async with asyncio.timeout(patience):
                await fleet.settled()
        yield
    finally:
        running.cancel()
        await asyncio.wait((running,))


def _ignore_change(_config: str) -> None:
    """Secrets are read once here, so later changes do not matter."""


def _count_nothing(config: str, seconds: float, *, answered: bool) -> None:
    """A command has no metrics."""


def _found(machines: Store[Machine], key: Key) -> Machine:
    if problem := machines.unreadable(key):
        raise NoMachine(f"Machine {key} cannot be decoded, so it is not placed: {problem}")
    machine = machines.get(key)
    if machine is None:
        here = sorted(one.name for one in machines.known() if one.namespace == key.namespace)
        there = ", ".join(here) or "none"
        raise NoMachine(f"Machine {key} not found; existing in that namespace: {there}")
    return machine


def _left_alone(machine: Machine, rules: PlacementRules) -> PlacementExplanation | None:
    if not machine.is_ours:
        because = "it has another provider, so virt-steward does not place it"
    elif machine.is_deleting:
        because = "it is being deleted, so it is not placed"
    else:
        return None
    return PlacementExplanation(
        machine=str(machine.metadata.key),
        recorded=machine.request.config or None,
        recorded_because=recorded_reason(machine) or None,
        cluster=None,
        reason="LeftAlone",
        because=because,
        decision=machine.request.last_decision,
        assumed=AssumedRules.of(rules),
    )


def _explained(judgement: Evaluation) -> PlacementExplanation:
    seen, decision = judgement.observation, judgement.decision
    outcome = decision.outcome
    chosen = outcome if isinstance(outcome, Chosen) else None
    checks = trace(decision)
    return PlacementExplanation(
        machine=str(seen.machine.metadata.key),
        recorded=seen.machine.request.config or None,
        recorded_because=recorded_reason(seen.machine) or None,
        cluster=chosen.cluster if chosen else None,
        reason=str(outcome.reason) if isinstance(outcome, Blocked) else None,
        because=next(one.reason for one in checks if one.decided),
        decision=seen.machine.request.last_decision,
        assumed=AssumedRules.of(seen.rules),
        checks=checks,
        scores=tuple(CandidateScore(one.cluster, one.words) for one in chosen.scores) if chosen else (),
        clusters=tuple(_candidate(one, seen.findings.get(one.name)) for one in seen.clusters),
    )


def _candidate(cluster: MemberCluster, finding: Finding | None) -> Candidate:
    trouble = cluster.unusable.message if cluster.unusable else cluster.unreachable
    if isinstance(finding, Unreachable):  # a reachable cluster may still forbid the read
        trouble = trouble or finding.message
    elif isinstance(finding, KubeVirtMissing):
        trouble = trouble or "KubeVirt is not installed there"
    return Candidate(cluster.name, cluster.machines, cluster.schedulable, trouble or None, _presence(finding))


def _presence(finding: Finding | None) -> Presence | None:
    match finding:
        case None:
            return None
        case VmFound():
            return "there"
        case VmAbsent() | KubeVirtMissing():
            return "not there"
        case Unreachable():
            return "unknown"
