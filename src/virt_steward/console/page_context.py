"""One view of a page: who looks at it, what they may see of the cache, and what they asked for."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from heapq import nsmallest
from typing import TYPE_CHECKING, Any

from virt_steward.apis.installplanapprover import INSTALL_PLAN_APPROVER
from virt_steward.apis.kubevirtconfig import KUBEVIRT_CONFIG
from virt_steward.apis.virtplatformconfig import VIRT_PLATFORM_CONFIG
from virt_steward.console.access import CORE_EVENT
from virt_steward.controllers.approver.olm import INSTALL_PLAN, SUBSCRIPTION
from virt_steward.controllers.placement.observation import MACHINE
from virt_steward.insight.inbox import inbox, of_assets, of_clusters, of_machines, of_plans, of_profiles
from virt_steward.kube.events import EVENT
from virt_steward.objects.corekinds import NODE
from virt_steward.platform.hco import HYPERCONVERGED
from virt_steward.platform.machineconfigs import MACHINE_CONFIG_POOL
from virt_steward.runtime.access import LEASE
from virt_steward.runtime.admission import APPROVE_VERB

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from datetime import datetime

    from virt_steward.console.cache import Cache
    from virt_steward.console.live import Topic
    from virt_steward.console.rights import Rights, VisibleScope
    from virt_steward.controllers.advisor.observation import VirtPlatformConfig
    from virt_steward.controllers.approver.observation import Approver
    from virt_steward.controllers.approver.olm import InstallPlan
    from virt_steward.controllers.placement.observation import Machine
    from virt_steward.controllers.placement.observe import KubevirtConfig as Cluster
    from virt_steward.insight.activity import EventRecord
    from virt_steward.insight.approvals import PendingInstallPlan
    from virt_steward.insight.assets.state import AssetState
    from virt_steward.insight.inbox import InboxItem
    from virt_steward.objects.identity import Kind
    from virt_steward.plans.blast_radius import VmiFacts
    from virt_steward.platform.pools import Pool
    from virt_steward.runtime.store import Store


@dataclass(frozen=True, slots=True)
class PageContent:
    """What a page shows, before it is HTML."""

    template: str
    title: str
    values: Mapping[str, Any]
    topics: frozenset[Topic]
    """Whose changes it shows."""
    status: int = 200
    kinds: tuple[Kind, ...] = ()
    """The kinds that it shows; it says so where the viewer may not list them."""


REASON_HIDDEN = "Reason hidden: you may not list the InstallPlanApprover or the Subscriptions that decide it."
HIDDEN = "standing by: another operator does its work. You may not list Leases, so it is not named"


def not_found(what: str, kind: Kind) -> PageContent:
    """The same page whether the object is missing or hidden: the difference would reveal that it exists."""
    values = {"what": what, "kind": f"{kind.plural}.{kind.group}" if kind.group else kind.plural}
    topics: frozenset[Topic] = frozenset({"profiles", "approvals", "placement", "autopilot"})
    return PageContent("not_found.html", "Not found", values, topics, status=404)


def matches(text: str, search: str) -> bool:
    """Whether the text contains all words of the search."""
    return all(word in text.casefold() for word in search.casefold().split())


@dataclass(frozen=True)
class PageContext:
    """Gives pages only what the viewer may see. Lists that are used more than once are kept for one view."""

    user: str
    rights: Rights
    cache: Cache
    scope: VisibleScope
    now: datetime
    query: Mapping[str, str] = field(default_factory=dict)
    match: Mapping[str, str] = field(default_factory=dict)
    """The variable parts of the path."""

    async def may(self, verb: str, kind: Kind, namespace: str = "") -> bool:
        return await self.rights.allow(verb, kind, namespace)

    async def may_approve(self) -> bool:
        """Whether the viewer may decide about plans, as the admission policy of VirtPlatformConfigs checks it."""
        if not await self.may("patch", VIRT_PLATFORM_CONFIG):
            return False
        verbs = (APPROVE_VERB, "update")
        return any([await self.may(verb, VIRT_PLATFORM_CONFIG) for verb in verbs])

    async def running_vms(self) -> tuple[VmiFacts, ...] | None:
        """None: the viewer may not list them."""
        return await self.rights.running_vms()

    @property
    def search(self) -> str:
        """The text in the page's filter."""
        return self.query.get("q", "")[:200]

    @property
    def configs(self) -> list[VirtPlatformConfig]:
        visible = list(self.cache.configs) if self.scope.sees(VIRT_PLATFORM_CONFIG) else []
        return sorted(visible, key=lambda one: str(one.metadata.name))

    @property
    def pools(self) -> list[Pool]:
        return list(self.cache.pools) if self.scope.sees(MACHINE_CONFIG_POOL) else []

    @property
    def plans(self) -> Iterator[InstallPlan]:
        return self._visible(INSTALL_PLAN, self.cache.plans.stores.plans)

    @cached_property
    def pending_plans(self) -> list[PendingInstallPlan]:
        namespaces = self.scope.namespaces(INSTALL_PLAN)
        return [one for one in self.cache.plans.pending if namespaces is None or one.key.namespace in namespaces]

    @cached_property
    def held_plans(self) -> list[PendingInstallPlan]:
        """Pending plans that need a person."""
        return [one for one in self.pending_plans if one.needs_a_person]

    def sees_reason(self, plan: PendingInstallPlan) -> bool:
        """Whether the viewer may know why it is pending: the reason names the approver's rules, pins and versions."""
        if plan.approver is None:
            return True
        sees_approver = self.scope.sees(INSTALL_PLAN_APPROVER, plan.approver.namespace)
        return sees_approver and self.scope.sees(SUBSCRIPTION, plan.key.namespace)

    @property
    def approvers(self) -> Iterator[Approver]:
        return self._visible(INSTALL_PLAN_APPROVER, self.cache.plans.stores.approvers)

    @property
    def machines(self) -> Iterator[Machine]:
        return (one for one in self._visible(MACHINE, self.cache.machines) if one.is_ours)

    @property
    def clusters(self) -> list[Cluster]:
        visible = list(self.cache.clusters) if self.scope.sees(KUBEVIRT_CONFIG) else []
        return sorted(visible, key=lambda one: str(one.metadata.name))

    @property
    def standing_by(self) -> list[tuple[str, str]]:
        """The controllers that stand by, each with why and what to do; Leases are named to those who may list them."""
        rivals = sorted(self.cache.standby.holders.items())
        return [(name, one.message if self.scope.sees(LEASE, one.lease.namespace) else HIDDEN) for name, one in rivals]

    @property
    def freezes(self) -> list[tuple[str, str]]:
        """The controllers that begin nothing now, each with why: the statuses that everybody sees say the same."""
        return self.cache.freezes.notices

    @property
    def sees_hco(self) -> bool:
        return self.scope.sees(HYPERCONVERGED, self.cache.assets.view.options.hco.namespace)

    @cached_property
    def assets(self) -> list[AssetState]:
        """In the order of the catalog. Their states follow from the HyperConverged, so that must be visible, too."""
        if not self.sees_hco:
            return []
        states = self.cache.assets.states
        known = (states.get(asset.name) for asset in self.cache.assets.catalog.assets)
        return [one for one in known if one and self.scope.sees(one.ref.kind, one.ref.key.namespace)]

    @property
    def events(self) -> list[EventRecord]:
        return [event for event in self.cache.events if self._sees_event(event)]

    def events_about(self, subject: str) -> list[EventRecord]:
        """The newest first."""
        found = (event for event in self.cache.events_about(subject) if self._sees_event(event))
        return sorted(found, key=lambda event: event.at, reverse=True)

    @cached_property
    def inbox_items(self) -> tuple[InboxItem, ...]:
        """All that needs a person, except InstallPlans, of which there may be thousands."""
        return inbox(
            of_profiles(self.configs, self.pools),
            of_machines(self.machines),
            of_clusters(self.clusters),
            of_assets(self.assets),
        )

    def inbox(self, limit: int) -> tuple[InboxItem, ...]:
        """The most urgent items, with InstallPlans."""
        plans = nsmallest(limit, self.held_plans, key=lambda one: one.key)
        shown = (one if self.sees_reason(one) else replace(one, message=REASON_HIDDEN) for one in plans)
        return inbox(self.inbox_items, of_plans(shown))[:limit]

    def _visible(self, kind: Kind, store: Store[Any]) -> Iterator[Any]:
        namespaces = self.scope.namespaces(kind)
        return (one for one in store if namespaces is None or one.metadata.namespace in namespaces)

    def _sees_event(self, event: EventRecord) -> bool:
        namespace = event.metadata.namespace
        return self.scope.sees(EVENT, namespace) or self.scope.sees(CORE_EVENT, namespace)


COUNTED = frozenset({VIRT_PLATFORM_CONFIG, MACHINE_CONFIG_POOL, KUBEVIRT_CONFIG, INSTALL_PLAN, MACHINE})
"""The kinds of the inbox, whose counts are in the navigation of every page."""


def kinds_to_check(
    cache: Cache, shown: frozenset[Kind], *, all_assets: bool
) -> dict[Kind, Callable[[], Iterable[str]]]:
    """The kinds whose visibility a page needs to know: those that it counts, and those that it shows.

    Each has a function for the namespaces with such objects, which is called if the viewer may not list all of them.
    """
    kinds = {kind: namespaces for kind, namespaces in _namespaces_by_kind(cache).items() if kind in COUNTED | shown}
    asset_kinds: dict[Kind, set[str]] = {}
    states = cache.assets.states
    for asset in cache.assets.catalog.assets:
        state = states.get(asset.name)
        if all_assets or (state and state.needs_a_person):
            ref = cache.assets.refs[asset.name]
            asset_kinds.setdefault(ref.kind, set()).add(ref.key.namespace)
    if all_assets or asset_kinds:
        asset_kinds.setdefault(HYPERCONVERGED, set()).add(cache.assets.view.options.hco.namespace)
    if cache.standby.holders or LEASE in shown:
        kinds[LEASE] = partial(_namespaces_of_leases, cache)
    return kinds | {kind: partial(tuple, names) for kind, names in asset_kinds.items()}


def _namespaces_by_kind(cache: Cache) -> dict[Kind, Callable[[], Iterable[str]]]:
    stores = cache.plans.stores

    def of_events() -> Iterable[str]:
        return {event.metadata.namespace for event in cache.events}

    return {
        VIRT_PLATFORM_CONFIG: tuple,
        MACHINE_CONFIG_POOL: tuple,
        NODE: tuple,
        KUBEVIRT_CONFIG: tuple,
        INSTALL_PLAN: partial(_namespaces, stores.plans),
        INSTALL_PLAN_APPROVER: partial(_namespaces, stores.approvers),
        SUBSCRIPTION: partial(_namespaces, stores.subscriptions),
        MACHINE: partial(_namespaces, cache.machines),
        EVENT: of_events,
        CORE_EVENT: of_events,
    }


def _namespaces_of_leases(cache: Cache) -> set[str]:
    return {one.lease.namespace for observed in (cache.standby, cache.leaders) for one in observed.holders.values()}


def _namespaces(store: Store[Any]) -> set[str]:
    return {key.namespace for key in store.known()}
