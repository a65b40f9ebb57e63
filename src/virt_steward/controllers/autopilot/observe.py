"""Builds the observation of the platform from caches alone, and keeps it until something of it changes."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from itertools import chain
from typing import TYPE_CHECKING, Any, Protocol

from msgspec import to_builtins

from virt_steward.apis.virtplatformconfig import VIRT_PLATFORM_CONFIG
from virt_steward.catalog.context import AssetContext
from virt_steward.catalog.load import MANAGED_BY, MANAGER
from virt_steward.controllers.autopilot import annotation_keys
from virt_steward.controllers.autopilot.observation import AutopilotObservation, ServedKinds
from virt_steward.controllers.autopilot.overrides.governed import NOT_GOVERNED, GovernedFields
from virt_steward.controllers.autopilot.rollouts.policy import (
    REBOOTING,
    RolloutMode,
    Takeover,
    override_note,
    parse_releases,
)
from virt_steward.controllers.autopilot.rollouts.staged import data_key, ref_of_staging
from virt_steward.controllers.autopilot.rollouts.staging import RolloutHolds
from virt_steward.controllers.autopilot.signatures import is_of_another_instance
from virt_steward.controllers.autopilot.watches import ref_of_asset
from virt_steward.holds.installation import FreezeView
from virt_steward.objects.corekinds import NODE
from virt_steward.objects.identity import Key, Ref, Regarding, kind_of, ref_of
from virt_steward.platform.hco import Hco
from virt_steward.platform.machineconfigs import KUBELET_CONFIG, MACHINE_CONFIG, MachineConfigs
from virt_steward.platform.nodes import count_nodes, detect_hardware
from virt_steward.platform.sources import (
    INFRASTRUCTURES,
    KUBELET_CONFIGS,
    MACHINE_CONFIGS,
    NODES,
    POOLS,
    SCHEDULERS,
    STORAGE_CLASSES,
    STORAGE_PROFILES,
)
from virt_steward.platform.storage import STORAGE_CLASS, STORAGE_PROFILE, summarize_storage
from virt_steward.platform.topology import CLUSTER, INFRASTRUCTURE, SCHEDULER, detect_topology

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from datetime import datetime

    from virt_steward.catalog.asset import Asset
    from virt_steward.catalog.load import Catalog, Tombstone
    from virt_steward.controllers.autopilot.live_summary import LiveSummary
    from virt_steward.controllers.autopilot.observation import Served
    from virt_steward.controllers.autopilot.options import AutopilotOptions
    from virt_steward.controllers.autopilot.rollouts.policy import RolloutPolicy
    from virt_steward.controllers.autopilot.rollouts.staged import StagedChange, StagingRecord
    from virt_steward.controllers.autopilot.watches import GoverningConfig, HcoPart, Watchlist
    from virt_steward.holds.freezes import FreezeRecord, FreezeState
    from virt_steward.objects.identity import Kind
    from virt_steward.objects.meta import Existing
    from virt_steward.objects.schemafacts import SchemaFacts
    from virt_steward.platform.machineconfigs import KubeletConfigFacts, MachineConfigFacts
    from virt_steward.platform.nodes import NodeFacts
    from virt_steward.platform.pools import Pool
    from virt_steward.platform.storage import ProfileFacts, Storage, StorageClassFacts
    from virt_steward.platform.topology import Infrastructure, Scheduler, Topology
    from virt_steward.runtime.informer import Source
    from virt_steward.runtime.store import Store


@dataclass(frozen=True, slots=True)
class AutopilotStores:
    """All that the autopilot reads."""

    hco: Store[HcoPart]
    nodes: Store[NodeFacts]
    infrastructure: Store[Infrastructure]
    scheduler: Store[Scheduler]
    storage_classes: Store[StorageClassFacts]
    storage_profiles: Store[ProfileFacts]
    machine_configs: Store[MachineConfigFacts]
    pools: Store[Pool]
    kubelet_configs: Store[KubeletConfigFacts]
    configs: Store[GoverningConfig]
    staging: Store[StagingRecord]
    freezes: Store[FreezeRecord]
    objects: Mapping[Ref, Store[HcoPart]]
    namespaces: Mapping[str, Store[Existing]]
    managed: Mapping[str, Store[LiveSummary]]
    tombstoned: Mapping[Ref, Store[LiveSummary]]

    @classmethod
    def of(cls, watchlist: Watchlist, store: Callable[[Source[Any]], Store[Any]]) -> AutopilotStores:
        """Take the store of each source from `store`."""
        return cls(
            hco=store(watchlist.hco),
            nodes=store(NODES),
            infrastructure=store(INFRASTRUCTURES),
            scheduler=store(SCHEDULERS),
            storage_classes=store(STORAGE_CLASSES),
            storage_profiles=store(STORAGE_PROFILES),
            machine_configs=store(MACHINE_CONFIGS),
            pools=store(POOLS),
            kubelet_configs=store(KUBELET_CONFIGS),
            configs=store(watchlist.configs),
            staging=store(watchlist.staging),
            freezes=store(watchlist.freezes),
            objects={ref: store(source) for ref, source in watchlist.objects.items()},
            namespaces={name: store(source) for name, source in watchlist.namespaces.items()},
            managed={name: store(source) for name, source in watchlist.managed.items()},
            tombstoned={ref: store(source) for ref, source in watchlist.tombstoned.items()},
        )


@dataclass(frozen=True, slots=True)
class ObsoletePart:
    """An obsolete object, as far as it selects pools or pools select it."""

    object: dict[str, Any]
    tells_pools: bool = True
    """False: which pools it concerns is unknown."""


class SchemaSource(Protocol):
    """Knows the schemas that the catalog reads."""

    def facts(self, crd: str) -> SchemaFacts | None: ...

    async def refresh(self, crd: str) -> None:
        """Read this CRD now, and tell if its facts have changed."""


class AutopilotClusterView:
    """The autopilot's view of the cluster: one observation, rebuilt after something has changed."""

    def __init__(
        self,
        stores: AutopilotStores,
        schemas: SchemaSource,
        served: Served,
        catalog: Catalog,
        options: AutopilotOptions,
    ) -> None:
        self.catalog = catalog
        self.options = options
        self._stores = stores
        self._schemas = schemas
        self._server = served
        self._seen: AutopilotObservation | None = None
        self._freezes = FreezeView(stores.freezes, options.namespace, "autopilot")

    def stale(self) -> None:
        """Have the next `seen` build the observation again."""
        self._seen = None

    def seen(self) -> AutopilotObservation | None:
        """Return the observation; None if there is no HyperConverged."""
        if self._seen is None and (hco := self._stores.hco.get(self.options.hco)):
            self._seen = self._observe(hco)
        return self._seen

    def ref(self, asset: Asset) -> Ref:
        """Which object the asset is for."""
        return ref_of_asset(asset, self.options.hco)

    async def refresh_schemas(self, crds: Iterable[str]) -> None:
        """Read these CRDs now."""
        for crd in crds:
            await self._schemas.refresh(crd)

    def live_summary(self, asset: str) -> LiveSummary | None:
        """Return the asset's live object; None if it does not exist."""
        return next(iter(self._stores.managed[asset]), None)

    def unreadable(self, asset: str) -> str:
        """Why an object that exists cannot be read; empty if it can, or is not there."""
        store = self._stores.managed[asset]
        if store.denied:
            return "forbidden (403) to watch it"
        return next((store.unreadable(key) or "" for key in store.unreadables()), "")

    def pools(self) -> tuple[Pool, ...] | None:
        """Return the MachineConfigPools with the state of their rollouts; None if they cannot be read."""
        return tuple(self._stores.pools) if _are_known(self._stores.pools) else None

    def freeze(self, now: datetime) -> FreezeState:
        """Whether the installation is frozen."""
        return self._freezes.state(now)

    def rollout_holds(self, annotations: Mapping[str, str], now: datetime) -> RolloutHolds:
        """Return what holds back changes that reboot nodes; `annotations` are those of the HyperConverged."""
        return RolloutHolds(
            freeze=self.freeze(now),
            overrides=parse_releases(annotations.get(annotation_keys.OVERRIDE_FREEZE)),
            override_note=override_note(annotations),
            required_gates=self.options.gates.of("autopilot", ()),
            poll=timedelta(seconds=self.options.gates.poll_seconds),
        )

    def all_staged(self) -> dict[str, StagedChange]:
        """Return all staged changes as they are recorded, by the keys of their entries."""
        found = self._stores.staging.get(ref_of_staging(self.options.hco.namespace).key)
        return found.entries if found else {}

    def staged(self, ref: Ref) -> StagedChange | None:
        """Return the staged change of an object, as it is recorded."""
        return self.all_staged().get(data_key(ref))

    def not_in_catalog(self) -> Iterator[Ref]:
        """List what an autopilot has created and neither catalog nor tombstones of this release have.

        Only of kinds that are watched as a whole; of all others, only objects of the catalog may be read.
        """
        known = {*map(self.ref, self.catalog.assets), *(stone.ref for stone in self.catalog.tombstones)}
        stores: tuple[tuple[Kind, Store[Any]], ...] = (
            (MACHINE_CONFIG, self._stores.machine_configs),
            (KUBELET_CONFIG, self._stores.kubelet_configs),
        )
        for kind, store in stores:
            labelled = (one.metadata.key for one in store if one.metadata.labels.get(MANAGED_BY) == MANAGER)
            yield from (ref for key in sorted(labelled) if (ref := Ref(kind, key)) not in known)

    def has_predecessor(self) -> bool:
        """Whether objects exist that another instance of the autopilot has created."""
        assets = ((self.ref(asset), self.live_summary(asset.name)) for asset in self.catalog.assets)
        stones = ((stone.ref, self.tombstoned(stone.ref)) for stone in self.catalog.tombstones)
        return any(live is not None and is_of_another_instance(ref, live) for ref, live in chain(assets, stones))

    def may_wait(self, kind: Kind, live: LiveSummary | None, policy: RolloutPolicy) -> bool:
        """Whether a change of the object may have to wait: it reboots nodes, or the object is of another instance."""
        if kind in REBOOTING:
            return True
        is_ours = live is not None and live.is_signed
        is_staged = policy.takeover is Takeover.REVIEW and policy.mode is not RolloutMode.IMMEDIATE
        return not is_ours and is_staged and self.has_predecessor()

    def tombstoned(self, ref: Ref) -> LiveSummary | None:
        """Return the object of a tombstone; None if it does not exist."""
        return next(iter(self._stores.tombstoned[ref]), None)

    def obsolete_part(self, stone: Tombstone, found: LiveSummary) -> ObsoletePart:
        """Return what of an obsolete object tells whose nodes reboot without it."""
        key = stone.ref.key
        metadata = {"name": key.name, "labels": dict(found.labels)} | (
            {"namespace": key.namespace} if key.namespace else {}
        )
        obj = {"apiVersion": stone.api_version, "kind": stone.ref.kind.name, "metadata": metadata}
        if stone.ref.kind == MACHINE_CONFIG:
            return ObsoletePart(obj)
        facts = self._stores.kubelet_configs.get(stone.ref.key) if stone.ref.kind == KUBELET_CONFIG else None
        if facts is None:
            return ObsoletePart(obj, tells_pools=False)
        selector = to_builtins(facts.spec.machine_config_pool_selector)
        return ObsoletePart({**obj, "spec": {"machineConfigPoolSelector": selector}})

    def is_governed(self, asset: Asset) -> bool:
        """Whether the object carries the advisor's annotation; a person who removes it takes the fields back."""
        live_summary = self.live_summary(asset.name)
        return live_summary is not None and annotation_keys.GOVERNED_BY in live_summary.annotations

    def unknown_claims(self) -> str:
        """Why it is unknown what plans have set; empty if all VirtPlatformConfigs can be read."""
        return "; ".join(_unknown(VIRT_PLATFORM_CONFIG, self._stores.configs))

    def undetected(self) -> str:
        """Why hardware, topology or storage are not fully known; empty if all of that can be read."""
        stores = self._stores
        read: tuple[tuple[Kind, Store[Any]], ...] = (
            (NODE, stores.nodes),
            (INFRASTRUCTURE, stores.infrastructure),
            (SCHEDULER, stores.scheduler),
            (STORAGE_CLASS, stores.storage_classes),
            (STORAGE_PROFILE, stores.storage_profiles),
        )
        return "; ".join(problem for kind, store in read for problem in _unknown(kind, store))

    def governed(self, asset: Asset) -> GovernedFields:
        """Which fields plans of the advisor have set, and which VirtPlatformConfigs these plans belong to.

        If that config was deleted, the fields that the advisor owns of the object are taken instead.
        """
        live_summary, ref = self.live_summary(asset.name), self.ref(asset)
        if live_summary is None or not self.is_governed(asset):
            return NOT_GOVERNED
        claims = [
            (config.metadata.name, path)
            for config in self._stores.configs
            for item in config.status.claims
            if _names(item.target_ref, ref)
            for path in item.managed_fields
        ]
        if not claims:
            return GovernedFields(
                frozenset(live_summary.advised), frozenset((live_summary.annotations[annotation_keys.GOVERNED_BY],))
            )
        return GovernedFields(frozenset(path for _, path in claims), frozenset(name for name, _ in claims))

    def _observe(self, hco: HcoPart) -> AutopilotObservation:
        regarding = Regarding(ref_of(hco.content), hco.content["apiVersion"], hco.metadata.uid)
        there = frozenset(name for name, store in self._stores.namespaces.items() if len(store))
        context, activation = self._context(hco.content), self.options.activation
        return AutopilotObservation.of(regarding, context, self._served(), there, activation)

    def _context(self, hco: Mapping[str, Any]) -> AssetContext:
        stores = self._stores
        nodes = tuple(stores.nodes)
        return AssetContext(
            hco=Hco.of(hco),
            nodes=count_nodes(nodes) if _are_known(stores.nodes) else None,
            hardware=None if stores.nodes.denied else detect_hardware(nodes),
            topology=self._topology(nodes),
            storage=self._storage(),
            machine_configs=self._machine_configs(),
            images=self.options.images,
            objects={ref: _content(store) for ref, store in stores.objects.items() if not store.denied},
            schemas=dict(self._known_schemas()),
        )

    def _topology(self, nodes: tuple[NodeFacts, ...]) -> Topology | None:
        """None while a node or the platform cannot be read: the cluster would be taken for another kind of cluster."""
        stores = self._stores
        if not _are_known(stores.nodes, stores.infrastructure, stores.scheduler):
            return None
        return detect_topology(stores.infrastructure.get(CLUSTER), stores.scheduler.get(CLUSTER), nodes)

    def _storage(self) -> Storage | None:
        """None while a class or a profile cannot be read: another storage class would be chosen."""
        profiles, classes = self._stores.storage_profiles, self._stores.storage_classes
        return summarize_storage(profiles, classes) if _are_known(profiles, classes) else None

    def _known_schemas(self) -> Iterator[tuple[str, SchemaFacts | None]]:
        """Leave out a CRD that is served and was not read yet: its fields must not be guessed."""
        for crd in self.catalog.needs.schemas:
            facts = self._schemas.facts(crd)
            if facts is not None or not self._server.serves(*_resource(crd)):
                yield crd, facts

    def _machine_configs(self) -> MachineConfigs | None:
        """None while some cannot be read: what somebody else sets already would be set again."""
        stores, ours = self._stores, self.catalog.names_of(KUBELET_CONFIG)
        if not _are_known(stores.machine_configs, stores.pools, stores.kubelet_configs):
            return None
        return MachineConfigs(
            tuple(stores.machine_configs),
            tuple(stores.pools),
            self.catalog.names_of(MACHINE_CONFIG),
            tuple(one for one in stores.kubelet_configs if one.name not in ours),
        )

    def _served(self) -> ServedKinds:
        kinds = {(asset.object.kind.group, asset.object.kind.plural) for asset in self.catalog.assets}
        gates = {_resource(asset.gate_crd) for asset in self.catalog.assets if asset.gate_crd}
        return ServedKinds(frozenset(one for one in kinds | gates if self._server.serves(*one)))


def _are_known(*stores: Store[Any]) -> bool:
    """Whether all that exists can be read."""
    return not any(store.denied or store.unreadables() for store in stores)


def _unknown(kind: Kind, store: Store[Any]) -> Iterator[str]:
    """List what of a kind cannot be read, and why."""
    if store.denied:
        yield f"forbidden (403) to watch {kind}"
    yield from (f"{kind.name} {key}: {store.unreadable(key)}" for key in store.unreadables())


def _resource(crd: str) -> tuple[str, str]:
    plural, _, group = crd.partition(".")
    return group, plural


def _content(store: Store[HcoPart]) -> Mapping[str, Any] | None:
    """Return the one object that the store watches; None if it does not exist."""
    return next((one.content for one in store), None)


def _names(target: Any, ref: Ref) -> bool:
    kind = kind_of({"apiVersion": target.api_version, "kind": target.kind})
    return (kind, Key(target.namespace, target.name)) == (ref.kind, ref.key)
