"""The inbox of a whole cluster, read with the rights of one person: what waits, and what cannot be read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from virt_steward.catalog.load import load
from virt_steward.controllers.advisor.watches import CONFIGS as PROFILE_CONFIGS
from virt_steward.controllers.approver.observe import ApproverStores, observe
from virt_steward.controllers.approver.watches import APPROVERS, CSVS, NAMESPACES, PLANS, SUBSCRIPTIONS
from virt_steward.controllers.autopilot.overrides.scope import Idle
from virt_steward.controllers.placement.watches import CONFIGS, MACHINES
from virt_steward.insight.approvals import pending_install_plan
from virt_steward.insight.assets.explain import list_events, reported_states
from virt_steward.insight.assets.survey import NoPlatform, survey
from virt_steward.insight.inbox import InboxItem, inbox, of_assets, of_clusters, of_machines, of_plans, of_profiles
from virt_steward.insight.reading import listed_if_served
from virt_steward.kube.errors import Forbidden
from virt_steward.kube.watch import Projected
from virt_steward.objects.errors import UserError
from virt_steward.platform.sources import POOLS

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable
    from datetime import datetime

    from virt_steward.controllers.approver.options import ApproverOptions
    from virt_steward.controllers.autopilot.options import AutopilotOptions
    from virt_steward.kube.client import Reader
    from virt_steward.runtime.informer import Source
    from virt_steward.runtime.store import Store

T = TypeVar("T", bound=Projected)


class HiddenKind(UserError):
    """The user may not list a kind, so what waits of it is unknown."""


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
    """Which controllers' objects could not be read, and why."""


async def read_inbox(reader: Reader, options: InboxOptions, now: datetime) -> WholeInbox:
    """Ask for the objects of each controller. One that the user may not read does not hide the others."""
    found: list[Iterable[InboxItem]] = []
    unknown: list[str] = []
    for controller, read in READERS.items():
        try:
            found.append(await read(reader, options, now))
        except (Forbidden, HiddenKind) as error:
            unknown.append(f"{controller}: {error}")
    return WholeInbox(inbox(*found), tuple(unknown))


async def _listed(reader: Reader, source: Source[T]) -> Store[T]:
    """All objects of a kind; none if it is not served. A kind of which only a part may be listed raises HiddenKind."""
    found = await listed_if_served(reader, source)
    if found.denied:
        raise HiddenKind(f"forbidden (403) to list {source.kind.plural}.{source.kind.group}")
    return found


async def _of_advisor(reader: Reader, _options: InboxOptions, _now: datetime) -> Iterable[InboxItem]:
    return tuple(of_profiles(await listed_if_served(reader, PROFILE_CONFIGS), await listed_if_served(reader, POOLS)))


async def _of_autopilot(reader: Reader, options: InboxOptions, now: datetime) -> Iterable[InboxItem]:
    try:
        found = await survey(reader, load(), options.autopilot, now)
    except NoPlatform:
        return ()
    if isinstance(found.seen.scope, Idle):
        return ()
    return tuple(of_assets(reported_states(found, await list_events(reader, found))))


async def _of_approver(reader: Reader, options: InboxOptions, now: datetime) -> Iterable[InboxItem]:
    plans = await _listed(reader, PLANS)
    if not any(plan.is_open for plan in plans):
        return ()
    stores = ApproverStores(
        plans,
        await listed_if_served(reader, SUBSCRIPTIONS),
        await listed_if_served(reader, CSVS),
        await listed_if_served(reader, NAMESPACES),
        await listed_if_served(reader, APPROVERS),
        policy_namespaces=options.approver.policy_namespaces,
    )
    seen = (observe(stores, plan.metadata.key) for plan in plans if plan.is_open)
    pending = (pending_install_plan(one, now) for one in seen if one)
    return tuple(of_plans(one for one in pending if one))


async def _of_placement(reader: Reader, _options: InboxOptions, _now: datetime) -> Iterable[InboxItem]:
    machines = await _listed(reader, MACHINES)
    clusters = await listed_if_served(reader, CONFIGS)
    return (*of_machines(one for one in machines if one.is_ours), *of_clusters(clusters))


READERS: dict[str, Callable[[Reader, InboxOptions, datetime], Awaitable[Iterable[InboxItem]]]] = {
    "advisor": _of_advisor,
    "autopilot": _of_autopilot,
    "approver": _of_approver,
    "placement": _of_placement,
}
