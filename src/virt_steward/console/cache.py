"""What the console knows of the cluster, from the informers that it shares with the controllers of its process."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from random import Random
from typing import TYPE_CHECKING, Any

import msgspec

from virt_steward.apis.virtplatformconfig import VirtPlatformConfigSpec
from virt_steward.catalog.load import Catalog, load
from virt_steward.catalog.render import Renderer
from virt_steward.console.access import EVENTS
from virt_steward.console.derived_cache import DerivedCache
from virt_steward.console.freeze_notices import FreezeNotices
from virt_steward.console.lease_holders import LeaseHolders, leases_of_controllers, leases_of_go_operators
from virt_steward.console.node_board import NodeBoard
from virt_steward.controllers.advisor.integrity import unauthenticated
from virt_steward.controllers.advisor.observation import VirtPlatformConfig, VirtPlatformConfigMeta
from virt_steward.controllers.advisor.observe import AdvisorClusterView, OwnWrites
from virt_steward.controllers.advisor.options import AdvisorOptions
from virt_steward.controllers.advisor.profiles import profiles, schemas_of
from virt_steward.controllers.advisor.watches import CONFIGS, TargetSources
from virt_steward.controllers.approver.observe import ApproverStores, observe
from virt_steward.controllers.approver.options import ApproverOptions
from virt_steward.controllers.approver.prepare import prepare_decision
from virt_steward.controllers.approver.watches import (
    APPROVERS,
    CSVS,
    NAMESPACES,
    PLANS,
    SUBSCRIPTIONS,
    ApproverEventHandlers,
)
from virt_steward.controllers.autopilot.decide import decide
from virt_steward.controllers.autopilot.observe import AutopilotClusterView, AutopilotStores
from virt_steward.controllers.autopilot.options import AutopilotOptions
from virt_steward.controllers.autopilot.overrides.scope import Idle
from virt_steward.controllers.autopilot.watches import AssetKey, Watchlist
from virt_steward.controllers.placement.watches import CONFIGS as CLUSTERS
from virt_steward.controllers.placement.watches import MACHINES
from virt_steward.holds.installation import FreezeView, freezes_in
from virt_steward.insight.activity import is_recorded_there
from virt_steward.insight.approvals import pending_install_plan
from virt_steward.insight.assets.staged import staged_wait
from virt_steward.insight.assets.state import state_of
from virt_steward.kube.backoff import RetryBackoff
from virt_steward.objects.identity import Key
from virt_steward.platform.sources import MACHINE_CONFIGS, NODES, POOLS
from virt_steward.runtime.access import NAMESPACE
from virt_steward.runtime.informer import InformerState
from virt_steward.runtime.informers import InformerView
from virt_steward.runtime.kinds import DEFINITIONS
from virt_steward.runtime.schemas import Schemas

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from datetime import datetime

    from virt_steward.console.live import Broadcaster, Topic
    from virt_steward.controllers.advisor.observation import AdvisorObservation
    from virt_steward.controllers.advisor.profiles.profile import Profile
    from virt_steward.controllers.advisor.watches import WatchedTarget
    from virt_steward.insight.activity import EventRecord
    from virt_steward.insight.approvals import PendingInstallPlan
    from virt_steward.insight.assets.state import AssetState
    from virt_steward.kube.client import Reader
    from virt_steward.objects.identity import Kind, Ref
    from virt_steward.runtime.clock import Clock
    from virt_steward.runtime.controller import Trigger
    from virt_steward.runtime.informer import Informer, Source
    from virt_steward.runtime.informers import Informers, SharedInformer
    from virt_steward.runtime.store import Store


@dataclass(frozen=True, slots=True)
class PlatformOptions:
    """The options of the controllers whose rules the console shows."""

    autopilot: AutopilotOptions = field(default_factory=AutopilotOptions)
    catalog: Catalog = field(default_factory=load)
    advisor: AdvisorOptions = field(default_factory=AdvisorOptions)
    approver: ApproverOptions = field(default_factory=ApproverOptions)
    namespace: str = NAMESPACE
    """Where the controllers run."""


class Cache:
    """Filled by the informers of the process.

    A page view asks the API server for nothing but rights, for the running VMs where it shows a staged change, and for
    the managedFields of the object of an asset.
    """

    def __init__(
        self, informers: Informers, reader: Reader, changes: Broadcaster, clock: Clock, platform: PlatformOptions
    ) -> None:
        self.informers = InformerView(informers)
        self._sources: list[Source[Any]] = []
        self._changes = changes
        self._hco = platform.autopilot.hco
        self.configs = self._store_of(CONFIGS, "profiles")
        self.pools = self.store(POOLS)
        self.nodes = self.store(NODES)
        self.board = NodeBoard(self, clock)
        self.profiles = ProfileCache(self, reader, clock, platform.advisor)
        self.machines = self._store_of(MACHINES, "placement")
        self.clusters = self._store_of(CLUSTERS, "placement")
        self.plans = InstallPlanCache(self, clock, platform.approver)
        self.assets = AssetCache(self, reader, clock, platform)
        self.standby = LeaseHolders(self, clock, leases_of_go_operators())
        self.leaders = LeaseHolders(self, clock, leases_of_controllers(platform.namespace))
        self.freezes = FreezeNotices(self, clock, platform.autopilot.namespace, self._handle_freeze)
        self._events = tuple(self._store_of(source, "activity", self.assets.handle_event) for source in EVENTS)

    @property
    def events(self) -> Iterator[EventRecord]:
        return (event for store in self._events for event in store if is_recorded_there(event, self._hco))

    def events_about(self, subject: str) -> list[EventRecord]:
        """Events about one object, as its reference is written."""
        found = (event for store in self._events for event in store.by("about", subject))
        return [event for event in found if is_recorded_there(event, self._hco)]

    def trouble(self) -> str:
        """Why what is shown may be out of date; empty if it is not."""
        broken = {
            f"{informer.source.kind}: {informer.trouble}" if informer.trouble else str(informer.source.kind)
            for informer in self._used_informers()
            if (informer.state is InformerState.BROKEN or informer.trouble) and not informer.is_denied
        }
        return "; ".join(sorted(broken)[:3]) + (" and more" if len(broken) > 3 else "")

    def still_reading(self) -> list[str]:
        """Kinds that have not been read once yet."""
        starting = {
            informer.source.kind.name
            for informer in self._used_informers()
            if informer.state is InformerState.STARTING and not informer.is_denied
        }
        return sorted(starting)

    def denied(self) -> dict[Kind, frozenset[str]]:
        """Kinds that the console itself may not read, with the namespaces; an empty set means all of them."""
        found: dict[Kind, set[str]] = {}
        for informer in self._used_informers():
            if informer.is_denied:
                found.setdefault(informer.source.kind, set()).add(informer.source.selection.namespace)
        return {kind: frozenset() if "" in places else frozenset(places) for kind, places in found.items()}

    async def run(self) -> None:
        """Beside the informers, for as long as the console is open; ends only by cancellation."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self.profiles.run())
            group.create_task(self.plans.pending.run())
            group.create_task(self.assets.run())
            group.create_task(self.standby.run())
            group.create_task(self.leaders.run())
            group.create_task(self.freezes.run())

    def _handle_freeze(self) -> None:
        """Decide again on all that a freeze may hold back or release."""
        self.plans.touch_open()
        self.assets.touch_all()
        self.publish("profiles")
        self.publish("activity")

    def informer(self, source: Source[Any]) -> SharedInformer[Any]:
        if source not in self._sources:
            self._sources.append(source)
        return self.informers.of(source)

    def store(self, source: Source[Any]) -> Store[Any]:
        """What is known of a source, as controllers ask for it."""
        return self.informer(source).store

    def follow(self, source: Source[Any], handler: Callable[[Key, Any, Any], None]) -> None:
        self.informer(source).tell(handler)

    def follow_triggers(self, triggers: Iterable[Trigger[Any]], touch: Callable[[Any], None]) -> None:
        """Call `touch` with each key that the event handlers of a controller would put into its queue."""

        def follow_one(trigger: Trigger[Any]) -> None:
            def handle(key: Key, before: Any, after: Any) -> None:
                for touched in trigger.handler(key, before, after):
                    touch(touched)

            self.follow(trigger.source, handle)

        for trigger in triggers:
            follow_one(trigger)

    def publish(self, topic: Topic) -> None:
        self._changes.publish(topic)

    def _used_informers(self) -> Iterator[Informer[Any]]:
        return (informer for source in self._sources for informer in self.informers.of(source).informers)

    def _store_of(self, source: Source[Any], topic: Topic, handler: Callable[[Any], None] | None = None) -> Store[Any]:
        def handle(_key: Key, before: Any, after: Any) -> None:
            known = after or before
            if handler and known:
                handler(known)
            self.publish(topic)

        self.follow(source, handle)
        return self.store(source)


@dataclass(frozen=True, slots=True)
class KnownTarget:
    """What is known of an object that profiles write."""

    kind: Kind
    """With the plural, which the reference to a target does not have."""
    object: dict[str, Any] | None
    """None: it does not exist."""


class ProfileCache:
    """Profiles as the advisor sees them, with the whole objects that they write: a handful, to show drift."""

    def __init__(self, cache: Cache, reader: Reader, clock: Clock, options: AdvisorOptions) -> None:
        self.all = profiles(options)
        self._shown = [one for one in self.all if one.about.is_advertised]
        sources = TargetSources(self._shown, options.hco)
        self._informers = {ref: cache.informer(source) for ref, source in sources.by_ref.items()}
        for informer in self._informers.values():
            informer.tell(lambda *_: cache.publish("profiles"))
        cache.informer(MACHINE_CONFIGS)
        cache.informer(freezes_in(options.namespace))
        backoff = RetryBackoff(Random())  # noqa: S311 - jitter
        self._schemas = Schemas(reader, cache.informer(DEFINITIONS), schemas_of(self._shown), backoff)
        self._view = AdvisorClusterView(
            cache.informers, sources, self._schemas, reader.discovery, OwnWrites(clock), options
        )

    async def run(self) -> None:
        await self._schemas.run()

    def named(self, name: str) -> Profile | None:
        return next((one for one in self.all if one.name == name), None)

    def observe(self, config: VirtPlatformConfig, profile: Profile, now: datetime) -> AdvisorObservation | None:
        """What the advisor would decide about; None for a profile that is not shown, whose targets are not watched."""
        return self._view.observe(unauthenticated(config), profile, now) if profile in self._shown else None

    def missing_prerequisites(
        self, config: VirtPlatformConfig | None, profile: Profile, now: datetime
    ) -> tuple[str, ...] | None:
        """What a plan would lack if it were asked for now; None if that is not known yet."""
        spec = config.spec if config else msgspec.convert({"profile": profile.name}, VirtPlatformConfigSpec)
        asked = msgspec.structs.replace(spec, action="DryRun")
        observation = self.observe(VirtPlatformConfig(VirtPlatformConfigMeta(profile.name), asked), profile, now)
        return observation.missing if observation and not observation.unsettled else None

    def target(self, ref: Ref) -> KnownTarget | None:
        """None: it has not been read."""
        informer = self._informers.get(ref)
        if informer is None or any(one.state is not InformerState.SYNCED for one in informer.informers):
            return None
        found: WatchedTarget | None = informer.store.get(ref.key)
        return KnownTarget(informer.informers[0].source.kind, found.object if found else None)


class InstallPlanCache:
    """InstallPlans, and what the approver decides about those that are pending."""

    def __init__(self, cache: Cache, clock: Clock, options: ApproverOptions) -> None:
        self._clock = clock
        self.stores = ApproverStores(
            cache.store(PLANS),
            cache.store(SUBSCRIPTIONS),
            cache.store(CSVS),
            cache.store(NAMESPACES),
            cache.store(APPROVERS),
            policy_namespaces=options.policy_namespaces,
            freezes=FreezeView(cache.store(freezes_in(options.namespace)), options.namespace, "approver"),
            gates=options.gates,
        )
        self.pending: DerivedCache[Key, PendingInstallPlan] = DerivedCache(
            self, clock, lambda: cache.publish("approvals")
        )
        cache.follow_triggers(ApproverEventHandlers(self.stores).triggers, self._touch)
        cache.follow(PLANS, lambda key, _before, _after: cache.publish("approvals") if key.name else None)
        cache.follow(APPROVERS, lambda *_: cache.publish("approvals"))

    async def prepare(self, key: Key) -> None:
        await prepare_decision(self.stores, key.namespace, self._clock.utc())

    def derive(self, key: Key) -> PendingInstallPlan | None:
        now = self._clock.utc()
        observation = observe(self.stores, key, now)
        return pending_install_plan(observation, now) if observation else None

    def expires(self, value: PendingInstallPlan) -> datetime | None:
        return value.until

    def touch_open(self) -> None:
        """Derive again what the approver decides about all plans that are open."""
        for plan in self.stores.plans:
            if plan.is_open:
                self.pending.touch(plan.metadata.key)

    def _touch(self, key: Any) -> None:
        if isinstance(key, Key):
            self.pending.touch(key)


class AssetCache:
    """The assets of the autopilot, each with what the autopilot decides about it."""

    def __init__(self, cache: Cache, reader: Reader, clock: Clock, platform: PlatformOptions) -> None:
        self.catalog, options = platform.catalog, platform.autopilot
        self._cache = cache
        self._clock = clock
        self._renderer = Renderer(self.catalog)
        self._watchlist = Watchlist(self.catalog, options.hco, options.namespace)
        backoff = RetryBackoff(Random())  # noqa: S311 - jitter
        self._schemas = Schemas(reader, cache.informer(DEFINITIONS), self.catalog.needs.schemas, backoff)
        stores = AutopilotStores.of(self._watchlist, cache.store)
        self.view = AutopilotClusterView(stores, self._schemas, reader.discovery, self.catalog, options)
        self.states: DerivedCache[str, AssetState] = DerivedCache(self, clock, lambda: cache.publish("autopilot"))
        self.refs = {asset.name: self.view.ref(asset) for asset in self.catalog.assets}
        self._by_object = {str(ref): name for name, ref in self.refs.items()}
        cache.follow_triggers(self._watchlist.triggers(self.view.stale), self._touch)
        self._discovery = reader.discovery
        self._schemas.tell(lambda _crd: self.touch_all())

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(self._schemas.run())
            group.create_task(self.states.run())
            group.create_task(self._follow_kinds())

    def handle_event(self, event: EventRecord) -> None:
        if name := self._by_object.get(str(event.about)):
            self.states.touch(name)

    async def prepare(self, key: str) -> None:
        """Nothing to prepare."""

    def derive(self, key: str) -> AssetState | None:
        asset, observation = self.catalog.find(key), self.view.seen()
        if asset is None or observation is None or isinstance(observation.scope, Idle):
            return None
        if self._cache.store(self._watchlist.managed[key]).denied:  # an object that may not be read is not absent
            return None
        ref, live, now = self.refs[key], self.view.live_summary(key), self._clock.utc()
        decision = decide(asset, observation, live, self._renderer, now)
        staged = staged_wait(self.view, asset, decision, now)
        return state_of(asset, ref, decision, live, self._cache.events_about(str(ref)), staged)

    def expires(self, value: AssetState) -> datetime | None:
        return value.decision.until

    async def _follow_kinds(self) -> None:
        while True:
            await self._discovery.changed()
            self.touch_all()

    def _touch(self, key: Any) -> None:
        if isinstance(key, AssetKey):
            self.states.touch(key.asset)
        else:
            self.touch_all()

    def touch_all(self) -> None:
        """Derive again what the autopilot decides about all assets."""
        self.view.stale()
        for asset in self.catalog.assets:
            self.states.touch(asset.name)
