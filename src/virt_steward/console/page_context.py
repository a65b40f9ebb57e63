"""One look of one viewer at one page: what they may see of the cache, and what they asked for."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from heapq import nsmallest
from typing import TYPE_CHECKING, Any

from virt_steward.apis.installplanapprover import INSTALL_PLAN_APPROVER
from virt_steward.apis.kubevirtconfig import KUBEVIRT_CONFIG
from virt_steward.apis.virtplatformconfig import VIRT_PLATFORM_CONFIG
from virt_steward.console.sources import EVENTS_OF_OLD
from virt_steward.controllers.approver.olm import INSTALL_PLAN, SUBSCRIPTION
from virt_steward.controllers.placement.observation import MACHINE
from virt_steward.insight.inbox import inbox, of_assets, of_clusters, of_machines, of_plans, of_profiles
from virt_steward.kube.events import EVENT
from virt_steward.objects.corekinds import NODE
from virt_steward.platform.hco import HYPERCONVERGED
from virt_steward.platform.machineconfigs import MACHINE_CONFIG_POOL

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from datetime import datetime

    from virt_steward.console.cache import Cache
    from virt_steward.console.hub import Topic
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
    from virt_steward.platform.pools import Pool
    from virt_steward.runtime.store import Store


@dataclass(frozen=True, slots=True)
class PageContent:
    """What is to be shown, before it is HTML."""

    template: str
    title: str
    values: Mapping[str, Any]
    topics: frozenset[Topic]
    """Whose changes it shows."""
    status: int = 200
    missing: tuple[Kind, ...] = ()
    """Kinds that it would show if the viewer might read all of them."""


UNTOLD = "Why it waits is told only to those who may list its InstallPlanApprover and its Subscriptions."


def not_there(what: str, kind: Kind) -> PageContent:
    """The same words for what is not there and for what may not be seen: the difference would tell too much."""
    values = {"what": what, "kind": f"{kind.plural}.{kind.group}" if kind.group else kind.plural}
    topics: frozenset[Topic] = frozenset({"profiles", "approvals", "placement", "autopilot"})
    return PageContent("not_there.html", "Not there", values, topics, status=404)


def holds(text: str, words: str) -> bool:
    """Tell whether all of the words are in the text."""
    return all(word in text.casefold() for word in words.casefold().split())


@dataclass(frozen=True)
class PageContext:
    """What is asked of the cache more than once is kept for as long as the visit takes."""

    user: str
    rights: Rights
    cache: Cache
    sight: VisibleScope
    now: datetime
    query: Mapping[str, str] = field(default_factory=dict)
    match: Mapping[str, str] = field(default_factory=dict)

    async def may(self, verb: str, kind: Kind, namespace: str = "") -> bool:
        return await self.rights.allow(verb, kind, namespace)

    @property
    def words(self) -> str:
        """What the filter of the page says."""
        return self.query.get("q", "")[:200]

    @property
    def configs(self) -> list[VirtPlatformConfig]:
        seen = list(self.cache.configs) if self.sight.sees(VIRT_PLATFORM_CONFIG) else []
        return sorted(seen, key=lambda one: str(one.metadata.name))

    @property
    def pools(self) -> list[Pool]:
        return list(self.cache.pools) if self.sight.sees(MACHINE_CONFIG_POOL) else []

    @property
    def plans(self) -> Iterator[InstallPlan]:
        return self._seen_of(INSTALL_PLAN, self.cache.plans.stores.plans)

    @cached_property
    def waiting(self) -> list[PendingInstallPlan]:
        places = self.sight.places(INSTALL_PLAN)
        return [one for one in self.cache.plans.waiting if places is None or one.key.namespace in places]

    @cached_property
    def held(self) -> list[PendingInstallPlan]:
        """Those that need a person."""
        return [one for one in self.waiting if one.needs_a_person]

    def is_told(self, one: PendingInstallPlan) -> bool:
        """Tell whether the viewer may know why it waits: what an approver says names its rules, pins and versions."""
        if one.approver is None:
            return True
        sees_rules = self.sight.sees(INSTALL_PLAN_APPROVER, one.approver.namespace)
        return sees_rules and self.sight.sees(SUBSCRIPTION, one.key.namespace)

    @property
    def approvers(self) -> Iterator[Approver]:
        return self._seen_of(INSTALL_PLAN_APPROVER, self.cache.plans.stores.approvers)

    @property
    def machines(self) -> Iterator[Machine]:
        return (one for one in self._seen_of(MACHINE, self.cache.machines) if one.is_ours)

    @property
    def clusters(self) -> list[Cluster]:
        seen = list(self.cache.clusters) if self.sight.sees(KUBEVIRT_CONFIG) else []
        return sorted(seen, key=lambda one: str(one.metadata.name))

    @property
    def sees_hco(self) -> bool:
        return self.sight.sees(HYPERCONVERGED, self.cache.assets.view.options.hco.namespace)

    @cached_property
    def assets(self) -> list[AssetState]:
        """In the order of the catalog. What is said of them follows from the HyperConverged: that must be seen, too."""
        if not self.sees_hco:
            return []
        states = self.cache.assets.states
        known = (states.get(asset.name) for asset in self.cache.assets.catalog.assets)
        return [one for one in known if one and self.sight.sees(one.ref.kind, one.ref.key.namespace)]

    @property
    def told(self) -> list[EventRecord]:
        return [one for one in self.cache.told if self._sees_event(one)]

    def told_of(self, subject: str) -> list[EventRecord]:
        found = (one for one in self.cache.told_of(subject) if self._sees_event(one))
        return sorted(found, key=lambda one: one.at, reverse=True)

    @cached_property
    def matters(self) -> tuple[InboxItem, ...]:
        """All that needs a person, but for plans: of those there may be thousands."""
        return inbox(
            of_profiles(self.configs, self.pools),
            of_machines(self.machines),
            of_clusters(self.clusters),
            of_assets(self.assets),
        )

    def inbox(self, most: int) -> tuple[InboxItem, ...]:
        """The most urgent ones."""
        plans = nsmallest(most, self.held, key=lambda one: one.key)
        hushed = (one if self.is_told(one) else replace(one, message=UNTOLD) for one in plans)
        return inbox(self.matters, of_plans(hushed))[:most]

    def _seen_of(self, kind: Kind, store: Store[Any]) -> Iterator[Any]:
        places = self.sight.places(kind)
        return (one for one in store if places is None or one.metadata.namespace in places)

    def _sees_event(self, told: EventRecord) -> bool:
        namespace = told.metadata.namespace
        return self.sight.sees(EVENT, namespace) or self.sight.sees(EVENTS_OF_OLD, namespace)


def wanted(cache: Cache, shown: frozenset[Kind], *, all_assets: bool) -> dict[Kind, Callable[[], Iterable[str]]]:
    """What to ask about: the kinds of the inbox, of which every page shows the number, and those that a page shows.

    Each with the namespaces in which there are any, in case the viewer may not see all of them.
    """
    kinds = {kind: namespaces for kind, namespaces in _places(cache).items() if kind in COUNTED | shown}
    places: dict[Kind, set[str]] = {}
    states = cache.assets.states
    for asset in cache.assets.catalog.assets:
        state = states.get(asset.name)
        if all_assets or (state and state.needs_a_person):
            ref = cache.assets.refs[asset.name]
            places.setdefault(ref.kind, set()).add(ref.key.namespace)
    if all_assets or places:
        places.setdefault(HYPERCONVERGED, set()).add(cache.assets.view.options.hco.namespace)
    return kinds | {kind: partial(tuple, names) for kind, names in places.items()}


COUNTED = frozenset({VIRT_PLATFORM_CONFIG, MACHINE_CONFIG_POOL, KUBEVIRT_CONFIG, INSTALL_PLAN, MACHINE})


def _places(cache: Cache) -> dict[Kind, Callable[[], Iterable[str]]]:
    stores = cache.plans.stores

    def of_events() -> Iterable[str]:
        return {one.metadata.namespace for one in cache.told}

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
        EVENTS_OF_OLD: of_events,
    }


def _namespaces(store: Store[Any]) -> set[str]:
    return {key.namespace for key in store.known()}
