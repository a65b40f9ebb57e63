"""Which cluster a machine goes to and why: what the placement would see now, and what each of its strategies says."""

from __future__ import annotations

import asyncio
import math
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Literal

from virt_steward.controllers.placement.assignments import Assignments
from virt_steward.controllers.placement.capacity import CapacityCache
from virt_steward.controllers.placement.decide import trace
from virt_steward.controllers.placement.definition import AGENT
from virt_steward.controllers.placement.evaluate import evaluate
from virt_steward.controllers.placement.fleet import LONGEST_ANSWER, Fleet
from virt_steward.controllers.placement.observation import KubeVirtMissing, Unreachable, VmAbsent, VmFound
from virt_steward.controllers.placement.observe import PlacementClusterView
from virt_steward.controllers.placement.report import recorded_reason
from virt_steward.controllers.placement.search import Search
from virt_steward.controllers.placement.secrets import Secrets
from virt_steward.controllers.placement.verdicts import Abstain, Blocked, Chosen, Narrowed
from virt_steward.controllers.placement.watches import CONFIGS, MACHINES
from virt_steward.insight.listing import listed, listed_if_served
from virt_steward.kube.connection import Connection, unobserved
from virt_steward.objects.errors import UserError
from virt_steward.runtime.clock import SystemClock

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from virt_steward.controllers.placement.decide import RuleResult
    from virt_steward.controllers.placement.evaluate import Evaluation
    from virt_steward.controllers.placement.observation import Finding, Machine, MemberCluster
    from virt_steward.controllers.placement.observe import KubevirtConfig
    from virt_steward.controllers.placement.options import PlacementOptions, PlacementRules
    from virt_steward.kube.client import Reader
    from virt_steward.objects.checks import CheckResult
    from virt_steward.objects.identity import Key
    from virt_steward.runtime.store import Store

Presence = Literal["there", "not there", "unknown"]


class NoMachine(UserError):
    """The machine in question is not there, or cannot be read: one line that says which."""


@dataclass(frozen=True, slots=True)
class PlacementCheck:
    """One strategy of the chain, and its verdict."""

    strategy: str
    verdict: Literal["chooses", "narrows", "abstains", "blocks"]
    because: str


@dataclass(frozen=True, slots=True)
class CandidateScore:
    """What speaks for a cluster, where several were compared."""

    cluster: str
    words: str


@dataclass(frozen=True, slots=True)
class Candidate:
    """A cluster as the placement sees it now."""

    name: str
    machines: int
    schedulable: bool
    trouble: str | None
    """Why it cannot be used, or does not answer."""
    vm: Presence | None
    """None: it was not asked."""


@dataclass(frozen=True, slots=True)
class PlacementExplanation:
    """The whole answer on one machine."""

    machine: str
    recorded: str | None
    """The cluster that stands on the machine already."""
    recorded_because: str | None
    """Why it was chosen then; None if that was not the controller's choice."""
    cluster: str | None
    """The one that is chosen now; None if nothing can be."""
    reason: str | None
    """Why not, for machines."""
    because: str
    assumed: PlacementRules
    """The settings by which this was asked: nobody can see those of the controller."""
    steps: tuple[PlacementCheck, ...] = ()
    """Every rule up to the one that decides."""
    checks: tuple[CheckResult, ...] = ()
    """The whole chain of rules, with those that were not reached."""
    scores: tuple[CandidateScore, ...] = ()
    clusters: tuple[Candidate, ...] = ()


async def why(reader: Reader, machine: Key, options: PlacementOptions) -> PlacementExplanation:
    """Ask for what the controller would see, and judge it as the controller would. Raises NoMachine."""
    async with _survey(reader, options) as survey:
        return await survey.explained(machine)


async def previewed(reader: Reader, options: PlacementOptions) -> tuple[PlacementExplanation, ...]:
    """What would come of every machine that has no cluster yet, one after the other."""
    async with _survey(reader, options) as survey:
        waiting = [one for one in survey.view.machines.by("config", "") if not one.is_deleting]
        return tuple([await survey.explained(one.metadata.key, assume=True) for one in waiting])


@dataclass(frozen=True, slots=True)
class _Survey:
    """The stores of the controller, filled once, and its way to the clusters; nothing here can write."""

    view: PlacementClusterView
    search: Search
    began: float
    """Later answers of clusters count for all machines."""

    async def explained(self, key: Key, *, assume: bool = False) -> PlacementExplanation:
        """Let a foretold choice count for those that follow, if they are to `assume` it."""
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
async def _survey(reader: Reader, options: PlacementOptions) -> AsyncIterator[_Survey]:
    machines = await listed(reader, MACHINES, MACHINES.selection)  # first and alone: without them there is no question
    configs = await listed_if_served(reader, CONFIGS)
    ledger = Assignments()
    for machine in machines:
        ledger.take(machine.metadata.key, None, machine)
    clock = SystemClock()
    fleet = Fleet(
        Secrets(reader, _nobody_waits),
        limits=options.limits,
        clock=clock,
        connect=partial(Connection, user_agent=AGENT, observe=unobserved, longest_answer=LONGEST_ANSWER),
        observe=_uncounted,
    )
    async with _at_work(fleet, configs, options.limits.timeout):
        rooms = CapacityCache(fleet, configs, ledger, clock, lasting=math.inf)
        view = PlacementClusterView(machines, configs, fleet, ledger, options.rules, rooms)
        yield _Survey(view, Search(fleet, options.timeouts, clock), clock.now())


@asynccontextmanager
async def _at_work(fleet: Fleet, configs: Store[KubevirtConfig], patience: float) -> AsyncIterator[None]:
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


def _nobody_waits(_config: str) -> None:
    """Secrets are read once here; a later change concerns nobody."""


def _uncounted(config: str, seconds: float, *, answered: bool) -> None:
    """A command has no metrics."""


def _found(machines: Store[Machine], key: Key) -> Machine:
    if problem := machines.unreadable(key):
        raise NoMachine(f"Machine {key} cannot be read, so nobody places it: {problem}")
    machine = machines.get(key)
    if machine is None:
        here = sorted(one.name for one in machines.known() if one.namespace == key.namespace)
        there = ", ".join(here) or "none"
        raise NoMachine(f"there is no Machine {key}; in that namespace there are: {there}")
    return machine


def _left_alone(machine: Machine, rules: PlacementRules) -> PlacementExplanation | None:
    if not machine.is_ours:
        because = "it is of another provider, and left alone"
    elif machine.is_deleting:
        because = "it is being deleted, and left alone"
    else:
        return None
    return PlacementExplanation(
        machine=str(machine.metadata.key),
        recorded=machine.request.config or None,
        recorded_because=recorded_reason(machine) or None,
        cluster=None,
        reason="LeftAlone",
        because=because,
        assumed=rules,
    )


def _explained(judgement: Evaluation) -> PlacementExplanation:
    seen, decision = judgement.observation, judgement.decision
    outcome = decision.outcome
    chosen = outcome if isinstance(outcome, Chosen) else None
    steps = tuple(_step(said) for said in decision.steps)
    return PlacementExplanation(
        machine=str(seen.machine.metadata.key),
        recorded=seen.machine.request.config or None,
        recorded_because=recorded_reason(seen.machine) or None,
        cluster=chosen.cluster if chosen else None,
        reason=str(outcome.reason) if isinstance(outcome, Blocked) else None,
        because=steps[-1].because,
        assumed=seen.rules,
        steps=steps,
        checks=trace(decision),
        scores=tuple(CandidateScore(one.cluster, one.words) for one in chosen.scores) if chosen else (),
        clusters=tuple(_candidate(one, seen.findings.get(one.name)) for one in seen.clusters),
    )


def _step(said: RuleResult) -> PlacementCheck:
    name = said.rule.title
    match said.verdict:
        case Chosen(reason=because):
            return PlacementCheck(name, "chooses", because)
        case Narrowed(reason=because):
            return PlacementCheck(name, "narrows", because)
        case Abstain(because):
            return PlacementCheck(name, "abstains", because)
        case Blocked(message=because):
            return PlacementCheck(name, "blocks", because)
    raise AssertionError(said)  # clusters that were to be asked have been


def _candidate(cluster: MemberCluster, finding: Finding | None) -> Candidate:
    trouble = cluster.unusable.message if cluster.unusable else cluster.unreachable
    if isinstance(finding, Unreachable):  # one that answers may still not let us look
        trouble = trouble or finding.message
    elif isinstance(finding, KubeVirtMissing):
        trouble = trouble or "it has no KubeVirt: install it there before machines go there"
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
