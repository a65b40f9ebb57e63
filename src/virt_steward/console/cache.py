"""All that the console knows of the cluster: one set of watches for all viewers, and what follows from it."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from random import Random
from typing import TYPE_CHECKING, Any

from virt_steward.catalog.load import Catalog, load
from virt_steward.catalog.render import Renderer
from virt_steward.console.derived_cache import DerivedCache
from virt_steward.console.sources import EVENTS
from virt_steward.controllers.advisor.options import AdvisorOptions
from virt_steward.controllers.advisor.profiles import profiles
from virt_steward.controllers.advisor.watches import CONFIGS, TargetSources
from virt_steward.controllers.approver.observe import ApproverStores, observe
from virt_steward.controllers.approver.watches import APPROVERS, CSVS, NAMESPACES, PLANS, SUBSCRIPTIONS
from virt_steward.controllers.approver.watches import ApproverEventHandlers as PlanWakes
from virt_steward.controllers.autopilot.decide import decide
from virt_steward.controllers.autopilot.observe import AutopilotClusterView
from virt_steward.controllers.autopilot.observe import AutopilotStores as AssetStores
from virt_steward.controllers.autopilot.options import AutopilotOptions
from virt_steward.controllers.autopilot.overrides.scope import Idle
from virt_steward.controllers.autopilot.watches import AssetKey, Watchlist
from virt_steward.controllers.placement.watches import CONFIGS as CLUSTERS
from virt_steward.controllers.placement.watches import MACHINES
from virt_steward.insight.assets.state import state_of
from virt_steward.insight.waiting import waiting
from virt_steward.kube.backoff import RetryBackoff
from virt_steward.objects.identity import Key
from virt_steward.platform.sources import NODES, POOLS
from virt_steward.runtime.informer import InformerState
from virt_steward.runtime.informers import InformerView
from virt_steward.runtime.kinds import DEFINITIONS
from virt_steward.runtime.schemas import Schemas

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from datetime import datetime

    from virt_steward.console.hub import Hub, Topic
    from virt_steward.controllers.advisor.watches import WatchedTarget
    from virt_steward.insight.activity import EventRecord
    from virt_steward.insight.assets.state import AssetState
    from virt_steward.insight.waiting import PendingInstallPlan
    from virt_steward.kube.client import Reader
    from virt_steward.objects.identity import Kind, Ref
    from virt_steward.runtime.clock import Clock
    from virt_steward.runtime.informer import Informer, Source
    from virt_steward.runtime.informers import Informers, SharedInformer
    from virt_steward.runtime.store import Store


@dataclass(frozen=True, slots=True)
class PlatformOptions:
    """What the autopilot looks after."""

    options: AutopilotOptions = field(default_factory=AutopilotOptions)
    catalog: Catalog = field(default_factory=load)


class Cache:
    """Filled by the informers of the process; nothing here asks the server because somebody looks."""

    def __init__(self, informers: Informers, reader: Reader, hub: Hub, clock: Clock, platform: PlatformOptions) -> None:
        self._borrowed = InformerView(informers)
        self._sources: list[Source[Any]] = []
        self._hub = hub
        self.configs = self._kept(CONFIGS, "profiles")
        self.pools = self._kept(POOLS, "rollout")
        self.nodes = self._kept(NODES, "rollout")
        self.targets = Targets(self, platform.options.hco)
        self.machines = self._kept(MACHINES, "placement")
        self.clusters = self._kept(CLUSTERS, "placement")
        self.plans = Plans(self, clock)
        self.assets = Assets(self, reader, clock, platform)
        self._told = tuple(self._kept(source, "activity", self.assets.told) for source in EVENTS)

    @property
    def told(self) -> Iterator[EventRecord]:
        return (one for store in self._told for one in store)

    def told_of(self, subject: str) -> list[EventRecord]:
        """Events about one object, as its reference is written."""
        return [one for store in self._told for one in store.by("about", subject)]

    def trouble(self) -> str:
        """Why what is shown may be out of date; empty if it is not."""
        broken = {
            f"{informer.source.kind}: {informer.trouble}" if informer.trouble else str(informer.source.kind)
            for informer in self._informers()
            if (informer.state is InformerState.BROKEN or informer.trouble) and not informer.is_denied
        }
        return "; ".join(sorted(broken)[:3]) + (" and more" if len(broken) > 3 else "")

    def still_reading(self) -> list[str]:
        """Kinds that have not been read once yet."""
        waiting_for = {
            informer.source.kind.name
            for informer in self._informers()
            if informer.state is InformerState.STARTING and not informer.is_denied
        }
        return sorted(waiting_for)

    def denied(self) -> dict[Kind, frozenset[str]]:
        """Kinds that the console itself may not read, with the namespaces; none stands for all of them."""
        found: dict[Kind, set[str]] = {}
        for informer in self._informers():
            if informer.is_denied:
                found.setdefault(informer.source.kind, set()).add(informer.source.selection.namespace)
        return {kind: frozenset() if "" in places else frozenset(places) for kind, places in found.items()}

    async def run(self) -> None:
        """Beside the informers, for as long as the console is open; ends only by cancellation."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self.plans.waiting.run())
            group.create_task(self.assets.run())

    def watched(self, source: Source[Any]) -> SharedInformer[Any]:
        if source not in self._sources:
            self._sources.append(source)
        return self._borrowed.of(source)

    def store(self, source: Source[Any]) -> Store[Any]:
        """What is known of a source, as controllers ask for it."""
        return self.watched(source).store

    def follow(self, source: Source[Any], handler: Callable[[Key, Any, Any], None]) -> None:
        self.watched(source).tell(handler)

    def changed(self, topic: Topic) -> None:
        self._hub.changed(topic)

    def _informers(self) -> Iterator[Informer[Any]]:
        return (informer for source in self._sources for informer in self._borrowed.of(source).informers)

    def _kept(self, source: Source[Any], topic: Topic, handler: Callable[[Any], None] | None = None) -> Store[Any]:
        def handle(_key: Key, before: Any, after: Any) -> None:
            known = after or before
            if handler and known:
                handler(known)
            self._hub.changed(topic)

        self.follow(source, handle)
        return self.store(source)


@dataclass(frozen=True, slots=True)
class Known:
    """What is known of an object that profiles write."""

    kind: Kind
    """With the plural, which the reference to a target does not tell."""
    object: dict[str, Any] | None
    """None: it is not there."""


class Targets:
    """The objects that profiles write, whole: a handful, to show what others have changed of them."""

    def __init__(self, cache: Cache, hco: Key) -> None:
        offered = [one for one in profiles(AdvisorOptions(hco=hco)) if one.about.is_advertised]
        self._watched = {ref: cache.watched(source) for ref, source in TargetSources(offered, hco).by_ref.items()}
        for watched in self._watched.values():
            watched.tell(lambda *_: cache.changed("profiles"))

    def get(self, ref: Ref) -> Known | None:
        """None: it has not been read."""
        watched = self._watched.get(ref)
        if watched is None or any(informer.state is not InformerState.SYNCED for informer in watched.informers):
            return None
        found: WatchedTarget | None = watched.store.get(ref.key)
        return Known(watched.informers[0].source.kind, found.object if found else None)


class Plans:
    """InstallPlans, and what the approver makes of those that wait."""

    def __init__(self, cache: Cache, clock: Clock) -> None:
        self._clock = clock
        self.stores = ApproverStores(
            cache.store(PLANS),
            cache.store(SUBSCRIPTIONS),
            cache.store(CSVS),
            cache.store(NAMESPACES),
            cache.store(APPROVERS),
        )
        self.waiting: DerivedCache[Key, PendingInstallPlan] = DerivedCache(
            self, clock, lambda: cache.changed("approvals")
        )
        for trigger in PlanWakes(self.stores).triggers:
            cache.follow(trigger.source, self._touching(trigger.handler))
        cache.follow(PLANS, lambda key, _before, _after: cache.changed("approvals") if key.name else None)
        cache.follow(APPROVERS, lambda *_: cache.changed("approvals"))

    def work_out(self, key: Key) -> PendingInstallPlan | None:
        seen = observe(self.stores, key)
        return waiting(seen, self._clock.utc()) if seen else None

    def until(self, value: PendingInstallPlan) -> datetime | None:
        return value.until

    def _touching(self, handler: Callable[[Key, Any, Any], Iterable[Any]]) -> Callable[[Key, Any, Any], None]:
        def touch(key: Key, before: Any, after: Any) -> None:
            for woken in handler(key, before, after):
                if isinstance(woken, Key):
                    self.waiting.touch(woken)

        return touch


class Assets:
    """The assets of the autopilot, each as its own rules see it."""

    def __init__(self, cache: Cache, reader: Reader, clock: Clock, platform: PlatformOptions) -> None:
        self.catalog, options = platform.catalog, platform.options
        self._cache = cache
        self._clock = clock
        self._renderer = Renderer(self.catalog)
        self._watchlist = Watchlist(self.catalog, options.hco)
        definitions = cache.watched(DEFINITIONS)
        backoff = RetryBackoff(Random())  # noqa: S311 - jitter
        self._schemas = Schemas(reader, definitions, self.catalog.needs.schemas, backoff)
        stores = AssetStores.of(self._watchlist, cache.store)
        self.view = AutopilotClusterView(stores, self._schemas, reader.discovery, self.catalog, options)
        self.states: DerivedCache[str, AssetState] = DerivedCache(self, clock, lambda: cache.changed("autopilot"))
        self.refs = {asset.name: self.view.ref(asset) for asset in self.catalog.assets}
        self._by_object = {str(ref): name for name, ref in self.refs.items()}
        for trigger in self._watchlist.triggers(self.view.stale):
            cache.follow(trigger.source, self._touching(trigger.handler))
        self._discovery = reader.discovery
        self._schemas.tell(lambda _crd: self._all_changed())

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(self._schemas.run())
            group.create_task(self.states.run())
            group.create_task(self._follow_kinds())

    def told(self, told: EventRecord) -> None:
        if name := self._by_object.get(str(told.about)):
            self.states.touch(name)

    def work_out(self, key: str) -> AssetState | None:
        asset, seen = self.catalog.find(key), self.view.seen()
        if asset is None or seen is None or isinstance(seen.scope, Idle):
            return None
        if self._cache.store(self._watchlist.managed[key]).denied:  # what may not be read is not absent
            return None
        ref, sighted = self.refs[key], self.view.sighted(key)
        decision = decide(asset, seen, sighted, self._renderer, self._clock.utc())
        return state_of(asset, ref, decision, sighted, self._cache.told_of(str(ref)))

    def until(self, value: AssetState) -> datetime | None:
        return value.decision.until

    async def _follow_kinds(self) -> None:
        while True:
            await self._discovery.changed()
            self._all_changed()

    def _all_changed(self) -> None:
        self.view.stale()
        for asset in self.catalog.assets:
            self.states.touch(asset.name)

    def _touching(self, handler: Callable[[Key, Any, Any], Iterable[Any]]) -> Callable[[Key, Any, Any], None]:
        def touch(key: Key, before: Any, after: Any) -> None:
            for woken in handler(key, before, after):
                if isinstance(woken, AssetKey):
                    self.states.touch(woken.asset)
                else:
                    self._all_changed()

        return touch
