"""Why a plan is approved or not: what the approver would see now, and what each of its checks says."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, TypeVar

from virt_steward.controllers.approver.checks import Case
from virt_steward.controllers.approver.decide import decide, trace
from virt_steward.controllers.approver.observe import Stores, observe
from virt_steward.controllers.approver.seen import items_of
from virt_steward.controllers.approver.verdicts import Approve, Leave, Wait
from virt_steward.controllers.approver.watches import APPROVERS, CSVS, NAMESPACES, PLANS, SUBSCRIPTIONS
from virt_steward.kube.client import Selection
from virt_steward.kube.errors import NotServed
from virt_steward.kube.watch import Projected, Put, Unreadable, projected
from virt_steward.objects.complaints import Complaint
from virt_steward.objects.identity import Key
from virt_steward.objects.wallclock import rfc3339
from virt_steward.runtime.store import Store

if TYPE_CHECKING:
    from datetime import datetime

    from virt_steward.controllers.approver.decide import Opinion
    from virt_steward.controllers.approver.seen import Item, Seen
    from virt_steward.kube.client import Reader
    from virt_steward.runtime.informer import Source

T = TypeVar("T", bound=Projected)


class NoAnswer(Complaint):
    """The plan in question is not there, or cannot be read: one line that says which."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """What a check objects to."""

    reason: str
    message: str
    until: str | None
    """When time alone removes the objection, if it does."""


@dataclass(frozen=True, slots=True)
class Step:
    """One check, in words, and its objection if it has one."""

    check: str
    refusal: Refusal | None


@dataclass(frozen=True, slots=True)
class Chain:
    """What one approver makes of the plan."""

    approver: str
    verdict: Literal["approves", "waits", "leaves it alone"]
    because: str
    steps: tuple[Step, ...]
    """Every check up to the one that decides."""


@dataclass(frozen=True, slots=True)
class Csv:
    """One operator version that the plan installs."""

    name: str
    package: str | None
    pin: str | None
    installed: str | None
    is_new_dependency: bool


@dataclass(frozen=True, slots=True)
class Why:
    """The whole answer."""

    plan: str
    phase: str
    approval: str
    approved: bool
    approved_because: str | None
    """As the approver that did it put it."""
    csvs: tuple[Csv, ...]
    approvers: tuple[Chain, ...]
    """The oldest first: of those that approve, it acts."""


async def why(reader: Reader, plan: Key, now: datetime) -> Why:
    """Ask the server for what the controller would see, and judge it as the controller would. Raises NoAnswer."""
    stores = await _stores(reader, plan.namespace)
    if problem := stores.plans.unreadable(plan):
        raise NoAnswer(f"InstallPlan {plan} cannot be read, so nobody approves it: {problem}")
    seen = observe(stores, plan)
    if seen is None:
        there = ", ".join(sorted(one.metadata.name for one in stores.plans)) or "none"
        raise NoAnswer(f"there is no InstallPlan {plan}; in that namespace there are: {there}")
    return _explained(seen, now)


def _explained(seen: Seen, now: datetime) -> Why:
    plan, items = seen.plan, items_of(seen)
    return Why(
        plan=str(plan.metadata.key),
        phase=plan.phase,
        approval=plan.approval,
        approved=plan.approved,
        approved_because=plan.stamp.because or None,
        csvs=tuple(_csv(item) for item in items),
        approvers=tuple(
            _chain(opinion, Case(seen, items, opinion.approver, now)) for opinion in decide(seen, now).opinions
        ),
    )


def _csv(item: Item) -> Csv:
    return Csv(item.csv, item.package, item.pin or None, item.installed or None, item.is_new_dependency)


def _chain(opinion: Opinion, case: Case) -> Chain:
    verdict, approver = opinion.verdict, str(opinion.approver.metadata.key)
    steps = tuple(Step(check.__name__.replace("_", " "), _refusal(answer)) for check, answer in trace(case))
    match verdict:
        case Approve(because):
            return Chain(approver, "approves", because, steps)
        case Wait(message=message):
            return Chain(approver, "waits", message, steps)
        case Leave(message=message):
            return Chain(approver, "leaves it alone", message, steps)


def _refusal(answer: Leave | Wait | None) -> Refusal | None:
    if answer is None:
        return None
    until = answer.until if isinstance(answer, Wait) else None
    return Refusal(answer.reason, answer.message, rfc3339(until) if until else None)


async def _stores(reader: Reader, namespace: str) -> Stores:
    """Fill what the approver reads, as far as it bears on one namespace."""
    here = Selection(namespace)
    plans = await _listed(reader, PLANS, here)  # first and alone: without OLM there is nothing else to ask
    subscriptions, csvs, namespaces, approvers = await asyncio.gather(
        _listed(reader, SUBSCRIPTIONS, here),
        _listed(reader, CSVS, replace(CSVS.selection, namespace=namespace)),
        _listed(reader, NAMESPACES, Selection.one(Key("", namespace), metadata_only=True)),
        _listed_if_served(reader, APPROVERS),
    )
    return Stores(plans, subscriptions, csvs, namespaces, approvers)


async def _listed(reader: Reader, source: Source[T], selection: Selection) -> Store[T]:
    store: Store[T] = Store(source.indexes or {})
    async for page in reader.pages(source.kind, selection):
        for item in page.items:
            match projected(source.decode, bytes(item)):
                case Put(obj):
                    store.put(obj)
                case Unreadable(metadata, problem):
                    store.put_unreadable(metadata.key, problem)
    return store


async def _listed_if_served(reader: Reader, source: Source[T]) -> Store[T]:
    try:
        return await _listed(reader, source, source.selection)
    except NotServed:  # our own kind is not installed, so nobody approves
        return Store(source.indexes or {})
