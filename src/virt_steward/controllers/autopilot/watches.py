"""What the autopilot watches, as the catalog declares it, and what a change of it may concern."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

import msgspec

from virt_steward.apis.virtplatformconfig import VIRT_PLATFORM_CONFIG
from virt_steward.catalog.asset import HCO_NAMESPACE
from virt_steward.controllers.autopilot.annotation_keys import ours
from virt_steward.controllers.autopilot.live_summary import LiveSummary, decode_summary
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
    STORAGE_PROFILES,
)
from virt_steward.runtime.controller import Trigger
from virt_steward.runtime.informer import Source

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from virt_steward.catalog.asset import Asset
    from virt_steward.catalog.load import Catalog
    from virt_steward.catalog.reads import ObjectRead


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


@dataclass(frozen=True, slots=True)
class HcoPart:
    """What is kept of an object: the parts of it that somebody reads."""

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
        """What was applied, and what a plan that runs may just have applied: that is noted only afterwards."""
        return (*self.governed, *self.items) if self.phase == "InProgress" else self.governed


class GoverningConfig(msgspec.Struct, frozen=True):
    metadata: Meta
    status: GoverningStatus = GoverningStatus()


GOVERNING_CONFIGS = Source(VIRT_PLATFORM_CONFIG, projection(GoverningConfig))


class Watchlist:
    """All sources, each declared once: informers and rights follow from them."""

    def __init__(self, catalog: Catalog, hco: Key) -> None:
        self.hco = _hco_source(hco)
        self.configs = GOVERNING_CONFIGS
        self.managed = {asset.name: _sighting(ref_of_asset(asset, hco)) for asset in catalog.assets}
        self.buried = {stone.ref: _sighting(stone.ref) for stone in catalog.tombstones}
        self.objects = {read.ref: _reading(read) for read in catalog.needs.objects}
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
            STORAGE_PROFILES,
            MACHINE_CONFIGS,
            POOLS,
            KUBELET_CONFIGS,
            self.configs,
            *self.objects.values(),
            *self.namespaces.values(),
            *self.buried.values(),
        )

    def triggers(self, stale: Callable[[], None]) -> tuple[Trigger[Any], ...]:
        """`stale` is called when what was made of these is out of date."""
        everything = _everything(stale)
        return (
            *(Trigger(source, everything) for source in self.around),
            *(Trigger(source, _only(name)) for name, source in self.managed.items()),
        )


def ref_of_asset(asset: Asset, hco: Key) -> Ref:
    """Which object the asset stands for: an installation says where the HCO is, and what it is called."""
    target = asset.object
    if target.kind == HYPERCONVERGED:
        return Ref(target.kind, hco)
    namespace = hco.namespace if target.namespace == HCO_NAMESPACE else target.namespace
    return Ref(target.kind, Key(namespace, target.name))


def _everything(stale: Callable[[], None]) -> Callable[[Key, Any, Any], Iterable[PlatformKey]]:
    def handler(_key: Key, before: Any, after: Any) -> Iterable[PlatformKey]:
        if before is not None and after is not None and _substance(before) == _substance(after):
            return ()
        stale()
        return (PLATFORM,)

    return handler


def _only(asset: str) -> Callable[[Key, LiveSummary | None, LiveSummary | None], Iterable[AssetKey]]:
    def handler(_key: Key, before: LiveSummary | None, after: LiveSummary | None) -> Iterable[AssetKey]:
        return () if before and after and before.is_as(after) else (AssetKey(asset),)

    return handler


def _substance(obj: Any) -> Any:
    """Return the object without its resourceVersion, which changes with every heartbeat of a node."""
    if isinstance(obj, LiveSummary):
        return obj.sighting, obj.labels
    if isinstance(obj, HcoPart):
        return obj.metadata.uid, obj.content
    if isinstance(obj, NodeFacts):  # assets do not ask how far a rollout is
        return obj.master, obj.worker, obj.hardware
    if isinstance(obj, Pool):
        return obj.metadata.uid, obj.metadata.labels, obj.spec.machine_config_selector
    metadata = msgspec.structs.replace(obj.metadata, resource_version="")
    return msgspec.structs.replace(obj, metadata=metadata)


# Each of these gives one source per object, so that the console shares the watches of the autopilot in its process.


@cache
def _hco_source(hco: Key) -> Source[HcoPart]:
    return Source(HYPERCONVERGED, _hco_parts, Selection.one(hco))


@cache
def _namespace_source(name: str) -> Source[Existing]:
    return Source(NAMESPACE, projection(Existing), Selection.one(Key("", name), metadata_only=True))


@cache
def _sighting(ref: Ref) -> Source[LiveSummary]:
    return Source(ref.kind, decode_summary, Selection.one(ref.key), may_be_denied=True)


@cache
def _reading(read: ObjectRead) -> Source[HcoPart]:
    def part(raw: bytes) -> HcoPart:
        obj = msgspec.json.decode(raw)
        return HcoPart(msgspec.convert(obj["metadata"], Meta), read.seen(obj))

    return Source(read.kind, part, Selection.one(read.ref.key), may_be_denied=True)


def _hco_parts(raw: bytes) -> HcoPart:
    """Keep of the HCO what any asset may ask for: its spec, and the annotations that steer us."""
    obj = msgspec.json.decode(raw)
    metadata = obj["metadata"]
    kept = {name: metadata[name] for name in ("name", "namespace", "uid") if name in metadata}
    content = {
        "apiVersion": obj["apiVersion"],
        "kind": obj["kind"],
        "metadata": {**kept, "annotations": ours(metadata.get("annotations"))},
        "spec": obj.get("spec") or {},
    }
    return HcoPart(msgspec.convert(metadata, Meta), content)
