"""What the autopilot watches, as the catalog declares it, and which keys a change is mapped to."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

import msgspec

from virt_steward.apis.virtplatformconfig import VIRT_PLATFORM_CONFIG
from virt_steward.catalog.reads import HCO_NAMESPACE
from virt_steward.controllers.autopilot.annotation_keys import select_steering
from virt_steward.controllers.autopilot.live_summary import LiveSummary, decode_summary
from virt_steward.controllers.autopilot.rollouts.staged import StagingRecord, ref_of_staging
from virt_steward.holds.installation import freezes_in
from virt_steward.kube.client import Selection
from virt_steward.kube.watch import projection
from virt_steward.objects.corekinds import NAMESPACE
from virt_steward.objects.identity import Key, Ref
from virt_steward.objects.meta import Existing, Meta
from virt_steward.platform.hco import HYPERCONVERGED
from virt_steward.platform.nodes import NodeFacts
from virt_steward.platform.pools import Pool
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
from virt_steward.runtime.access import NAMESPACE as NAMESPACE_OF_CONTROLLERS
from virt_steward.runtime.controller import Trigger
from virt_steward.runtime.informer import Source

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from virt_steward.catalog.asset import Asset
    from virt_steward.catalog.load import Catalog
    from virt_steward.catalog.reads import ObjectRead
    from virt_steward.runtime.clock import Clock
    from virt_steward.runtime.informers import SharedInformer


@dataclass(frozen=True, slots=True, order=True)
class PlatformKey:
    """The key of a pass over everything."""

    def __str__(self) -> str:
        return "platform"


@dataclass(frozen=True, slots=True, order=True)
class AssetKey:
    """The key of one asset."""

    asset: str

    def __str__(self) -> str:
        return self.asset


PLATFORM = PlatformKey()
SCHEMA_SETTLES = 3.0
"""Seconds after which a server surely uses a CRD as it was written."""


@dataclass(frozen=True, slots=True)
class HcoPart:
    """The parts of an object that assets read."""

    metadata: Meta
    content: dict[str, Any]


class GoverningTarget(msgspec.Struct, frozen=True, rename="camel"):
    api_version: str = ""
    kind: str = ""
    name: str = ""
    namespace: str = ""


class GoverningItem(msgspec.Struct, frozen=True, rename="camel"):
    """What the advisor's plans have set of one object."""

    target_ref: GoverningTarget = GoverningTarget()
    managed_fields: tuple[str, ...] = ()


class GoverningStatus(msgspec.Struct, frozen=True):
    phase: str = ""
    items: tuple[GoverningItem, ...] = ()
    governed: tuple[GoverningItem, ...] = ()

    @property
    def claims(self) -> tuple[GoverningItem, ...]:
        """What was applied, and what a running plan may just have applied: the status records that only afterwards."""
        return (*self.governed, *self.items) if self.phase == "InProgress" else self.governed


class GoverningConfig(msgspec.Struct, frozen=True):
    metadata: Meta
    status: GoverningStatus = GoverningStatus()


GOVERNING_CONFIGS = Source(VIRT_PLATFORM_CONFIG, projection(GoverningConfig))


class Watchlist:
    """All sources, each declared once: informers and rights follow from them."""

    def __init__(self, catalog: Catalog, hco: Key, namespace: str = NAMESPACE_OF_CONTROLLERS) -> None:
        self.freezes = freezes_in(namespace)
        self.hco = _hco_source(hco)
        self.configs = GOVERNING_CONFIGS
        self.staging = _staging_source(hco.namespace)
        self.managed = {asset.name: _summaries(ref_of_asset(asset, hco)) for asset in catalog.assets}
        self.tombstoned = {stone.ref: _summaries(stone.ref) for stone in catalog.tombstones}
        self.objects = {read.ref: _parts(read, read.key_in(hco.namespace, namespace)) for read in catalog.needs.objects}
        namespaces = sorted({source.selection.namespace for source in self.managed.values()} - {""})
        self.namespaces = {name: _namespace_source(name) for name in namespaces}

    @property
    def around(self) -> tuple[Source[Any], ...]:
        """All but the objects of the assets themselves."""
        return (
            self.hco,
            NODES,
            INFRASTRUCTURES,
            SCHEDULERS,
            STORAGE_CLASSES,
            STORAGE_PROFILES,
            MACHINE_CONFIGS,
            POOLS,
            KUBELET_CONFIGS,
            self.configs,
            self.staging,
            self.freezes,
            *self.objects.values(),
            *self.namespaces.values(),
            *self.tombstoned.values(),
        )

    def triggers(self, stale: Callable[[], None]) -> tuple[Trigger[Any], ...]:
        """`stale` is called when the observation made of these is out of date."""
        everything = _full_pass(stale)
        return (
            *(Trigger(source, everything) for source in self.around),
            *(Trigger(source, _one_asset(name)) for name, source in self.managed.items()),
        )


def ref_of_asset(asset: Asset, hco: Key) -> Ref:
    """Which object the asset is for. Name and namespace of the HyperConverged are settings of the installation."""
    target = asset.object
    if target.kind == HYPERCONVERGED:
        return Ref(target.kind, hco)
    namespace = hco.namespace if target.namespace == HCO_NAMESPACE else target.namespace
    return Ref(target.kind, Key(namespace, target.name))


def _full_pass(stale: Callable[[], None]) -> Callable[[Key, Any, Any], Iterable[PlatformKey]]:
    def handler(_key: Key, before: Any, after: Any) -> Iterable[PlatformKey]:
        if before is not None and after is not None and relevant_part(before) == relevant_part(after):
            return ()
        stale()
        return (PLATFORM,)

    return handler


def _one_asset(asset: str) -> Callable[[Key, LiveSummary | None, LiveSummary | None], Iterable[AssetKey]]:
    def handler(_key: Key, before: LiveSummary | None, after: LiveSummary | None) -> Iterable[AssetKey]:
        return () if before and after and before.is_same(after) else (AssetKey(asset),)

    return handler


def relevant_part(obj: Any) -> Any:
    """Return what assets depend on. An update that leaves it as it was needs no pass over all assets.

    The resourceVersion changes with every heartbeat of a node. Nodes and pools are shared with controllers that follow
    rollouts, so their records also hold how far a rollout is, which changes all the time while nodes reboot.
    """
    if isinstance(obj, LiveSummary):
        return obj.sighting, obj.labels
    if isinstance(obj, HcoPart):
        return obj.metadata.uid, obj.content
    if isinstance(obj, NodeFacts):
        return obj.master, obj.worker, obj.hardware
    if isinstance(obj, Pool):
        selector, paused = obj.spec.machine_config_selector, obj.spec.paused
        return obj.metadata.uid, obj.metadata.labels, selector, paused, obj.is_updating, obj.is_render_degraded
    if isinstance(obj, StagingRecord):
        return obj.data
    metadata = msgspec.structs.replace(obj.metadata, resource_version="")
    return msgspec.structs.replace(obj, metadata=metadata)


# Each of these gives one source per object, so that the console shares the watches of the autopilot in its process.


@cache
def _hco_source(hco: Key) -> Source[HcoPart]:
    return Source(HYPERCONVERGED, _hco_parts, Selection.one(hco))


@cache
def _staging_source(namespace: str) -> Source[StagingRecord]:
    ref = ref_of_staging(namespace)
    return Source(ref.kind, projection(StagingRecord), Selection.one(ref.key), may_be_denied=True)


@cache
def _namespace_source(name: str) -> Source[Existing]:
    return Source(NAMESPACE, projection(Existing), Selection.one(Key("", name), metadata_only=True))


@cache
def _summaries(ref: Ref) -> Source[LiveSummary]:
    return Source(ref.kind, decode_summary, Selection.one(ref.key), may_be_denied=True)


@cache
def _parts(read: ObjectRead, key: Key) -> Source[HcoPart]:
    def part(raw: bytes) -> HcoPart:
        obj = msgspec.json.decode(raw)
        return HcoPart(msgspec.convert(obj["metadata"], Meta), read.select(obj))

    return Source(read.kind, part, Selection.one(key), may_be_denied=True)


def _hco_parts(raw: bytes) -> HcoPart:
    """Keep of the HyperConverged what any asset may read: its spec, and the annotations that steer us."""
    obj = msgspec.json.decode(raw)
    metadata = obj["metadata"]
    kept = {name: metadata[name] for name in ("name", "namespace", "uid") if name in metadata}
    content = {
        "apiVersion": obj["apiVersion"],
        "kind": obj["kind"],
        "metadata": {**kept, "annotations": select_steering(metadata.get("annotations"))},
        "spec": obj.get("spec") or {},
    }
    return HcoPart(msgspec.convert(metadata, Meta), content)


class SchemaChanges:
    """A background task: tells the controller that the schema of a served kind has changed.

    `runtime.kinds.CrdChanges` tells that kinds come and go, which discovery shows. An update of a CRD that is served
    before and after does not show there, but the server may keep a field now that it dropped before, or the reverse.
    """

    def __init__(self, definitions: SharedInformer[Existing], clock: Clock, handler: Callable[[str], None]) -> None:
        self._clock = clock
        self._handler = handler
        self._changed: set[str] = set()
        self._wakeup = asyncio.Event()
        definitions.tell(self._handle)

    def _handle(self, key: Key, before: Existing | None, after: Existing | None) -> None:
        if before is not None and after is not None:
            self._changed.add(key.name)
            self._wakeup.set()

    async def run(self) -> None:
        while True:
            await self._wakeup.wait()
            self._wakeup.clear()
            await self._clock.sleep(SCHEMA_SETTLES)
            changed, self._changed = self._changed, set()
            for crd in sorted(changed):
                self._handler(crd)

    async def settled(self) -> None:
        """There is nothing to wait for: what was found before a change needs no correction."""
