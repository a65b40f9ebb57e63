"""The inbox of a whole cluster, read with the rights of one person: what waits, and what cannot be read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from virt_steward.catalog.load import load
from virt_steward.controllers.advisor.watches import CONFIGS as PROFILE_CONFIGS
from virt_steward.controllers.approver.observe import ApproverStores, observe
from virt_steward.controllers.approver.watches import APPROVERS, CSVS, NAMESPACES, PLANS, SUBSCRIPTIONS
from virt_steward.controllers.autopilot.overrides.scope import Idle
from virt_steward.controllers.autopilot.watches import Watchlist
from virt_steward.controllers.placement.watches import CONFIGS, MACHINES
from virt_steward.insight.activity import EventRecord
from virt_steward.insight.approvals import pending_install_plan
from virt_steward.insight.assets.explain import events_of_autopilot, list_events, reported_states
from virt_steward.insight.assets.survey import NoPlatform, survey
from virt_steward.insight.freeze import read_freeze
from virt_steward.insight.inbox import InboxItem, inbox, of_assets, of_clusters, of_machines, of_plans, of_profiles
from virt_steward.insight.reading import listed, listed_if_served
from virt_steward.kube.errors import Forbidden
from virt_steward.kube.events import EVENT
from virt_steward.platform.sources import POOLS

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable
    from datetime import datetime

    from virt_steward.controllers.approver.options import ApproverOptions
    from virt_steward.controllers.autopilot.options import AutopilotOptions
    from virt_steward.kube.client import Reader


@dataclass(frozen=True, slots=True)
class InboxOptions:
    """The settings of the controllers on which it depends what waits."""

    autopilot: AutopilotOptions
    approver: ApproverOptions


@dataclass(frozen=True, slots=True)
class WholeInbox:
    """What waits for a person."""

    items: tuple[InboxItem, ...]
    """The most urgent first."""
    unknown: tuple[str, ...]
    """What could not be read, and why."""


async def read_inbox(reader: Reader, options: InboxOptions, now: datetime) -> WholeInbox:
    """Ask for the objects of each controller. One that the user may not read does not hide the others."""
    found = {controller: await read_inbox_of(reader, controller, options, now) for controller in READERS}
    unknown = tuple(f"{controller}: {problem}" for controller, one in found.items() for problem in one.unknown)
    return WholeInbox(inbox(*(one.items for one in found.values())), unknown)


async def read_inbox_of(reader: Reader, controller: str, options: InboxOptions, now: datetime) -> WholeInbox:
    """Ask for the objects of one controller."""
    try:
        return WholeInbox(inbox(await READERS[controller](reader, options, now)), ())
    except Forbidden as error:
        return WholeInbox((), (str(error),))
    except _PartlyForbidden as partly:
        return WholeInbox(inbox(partly.items), (str(partly.problem),))


class _PartlyForbidden(Exception):
    """Some of what decides may not be read, so that there may be more items than these."""

    def __init__(self, items: tuple[InboxItem, ...], problem: Forbidden) -> None:
        super().__init__(str(problem))
        self.items = items
        self.problem = problem


async def _of_advisor(reader: Reader, _options: InboxOptions, _now: datetime) -> Iterable[InboxItem]:
    return tuple(of_profiles(await listed_if_served(reader, PROFILE_CONFIGS), await listed_if_served(reader, POOLS)))


async def _of_autopilot(reader: Reader, options: InboxOptions, now: datetime) -> Iterable[InboxItem]:
    """A survey goes on without the staged changes and the events if they are forbidden; the inbox says so."""
    try:
        found = await survey(reader, load(), options.autopilot, now)
    except NoPlatform:
        return ()
    if isinstance(found.seen.scope, Idle):
        return ()
    items = tuple(of_assets(reported_states(found, await list_events(reader, found))))
    staging = Watchlist(found.view.catalog, options.autopilot.hco).staging
    try:
        await listed(reader, staging, staging.selection)
        await reader.list(EVENT, events_of_autopilot(options.autopilot.hco.namespace), EventRecord)
    except Forbidden as problem:
        raise _PartlyForbidden(items, problem) from None
    return items


async def _of_approver(reader: Reader, options: InboxOptions, now: datetime) -> Iterable[InboxItem]:
    plans = await listed_if_served(reader, PLANS)
    if not any(plan.is_open for plan in plans):
        return ()
    stores = ApproverStores(
        plans,
        await listed_if_served(reader, SUBSCRIPTIONS),
        await listed_if_served(reader, CSVS),
        await listed_if_served(reader, NAMESPACES),
        await listed_if_served(reader, APPROVERS),
        policy_namespaces=options.approver.policy_namespaces,
        freezes=await read_freeze(reader, options.approver.namespace, "approver"),
        gates=options.approver.gates,
    )
    seen = (observe(stores, plan.metadata.key, now) for plan in plans if plan.is_open)
    pending = (pending_install_plan(one, now) for one in seen if one)
    return tuple(of_plans(one for one in pending if one))


async def _of_placement(reader: Reader, _options: InboxOptions, _now: datetime) -> Iterable[InboxItem]:
    machines = await listed_if_served(reader, MACHINES)
    clusters = await listed_if_served(reader, CONFIGS)
    return (*of_machines(one for one in machines if one.is_ours), *of_clusters(clusters))


READERS: dict[str, Callable[[Reader, InboxOptions, datetime], Awaitable[Iterable[InboxItem]]]] = {
    "advisor": _of_advisor,
    "autopilot": _of_autopilot,
    "approver": _of_approver,
    "placement": _of_placement,
}
