"""What is seen: a HyperConverged of any name, and what is not known is not taken for absent."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from virt_steward.apis.virtplatformconfig import VIRT_PLATFORM_CONFIG
from virt_steward.catalog.asset import Asset
from virt_steward.catalog.context import AssetContext
from virt_steward.catalog.load import Catalog
from virt_steward.catalog.render import Renderer
from virt_steward.controllers.autopilot.decide import Wanted, decide
from virt_steward.controllers.autopilot.observation import ServedKinds
from virt_steward.controllers.autopilot.observe import AutopilotClusterView, AutopilotStores
from virt_steward.controllers.autopilot.options import HCO, AutopilotOptions
from virt_steward.controllers.autopilot.watches import Watchlist
from virt_steward.objects.identity import Key, Ref, ref_of
from virt_steward.platform.hco import HYPERCONVERGED
from virt_steward.platform.sources import (
    INFRASTRUCTURES,
    KUBELET_CONFIGS,
    MACHINE_CONFIGS,
    NODES,
    POOLS,
    SCHEDULERS,
    STORAGE_PROFILES,
)
from virt_steward.platform.storage import Storage
from virt_steward.platform.topology import CLUSTER
from virt_steward.runtime.informer import Source
from virt_steward.runtime.store import Store


def an_hco(key: Key, annotations: Mapping[str, str] | None = None) -> dict[str, Any]:
    names = {"name": key.name, "namespace": key.namespace, "uid": "1", "resourceVersion": "1"}
    metadata = names | {"annotations": dict(annotations or {})}
    return {"apiVersion": "hco.kubevirt.io/v1", "kind": HYPERCONVERGED.name, "metadata": metadata}


class NoSchemas:
    def facts(self, _crd: str) -> None:
        return None

    async def refresh(self, _crd: str) -> None:
        """There are none to read."""


def an_view(
    catalog: Catalog, hco: Key = HCO, serves: tuple[str, str] = (HYPERCONVERGED.group, HYPERCONVERGED.plural)
) -> tuple[AutopilotClusterView, dict[Source[Any], Store[Any]]]:
    """A cluster with nothing but a HyperConverged, and where it is kept."""
    obj = an_hco(hco)
    namespace = {"metadata": {"name": hco.namespace, "uid": "2", "resourceVersion": "1"}}
    kept: dict[Source[Any], Store[Any]] = {}
    watchlist = Watchlist(catalog, hco)
    stores = AutopilotStores.of(watchlist, lambda source: kept.setdefault(source, Store({})))
    stores.hco.put(watchlist.hco.decode(msgspec.json.encode(obj)))
    stores.namespaces[hco.namespace].put(watchlist.namespaces[hco.namespace].decode(msgspec.json.encode(namespace)))
    return AutopilotClusterView(
        stores, NoSchemas(), ServedKinds(frozenset((serves,))), catalog, AutopilotOptions(hco)
    ), kept


@pytest.mark.parametrize("source", [MACHINE_CONFIGS, POOLS, KUBELET_CONFIGS], ids=lambda source: source.kind.plural)
def test_machine_configs_are_unknown_unless_all_are_readable(catalog: Catalog, source: Source[Any]) -> None:
    view, kept = an_view(catalog)
    assert known(view)
    kept[source].denied.add("")
    assert not known(view)
    kept[source].denied.clear()
    kept[source].put_unreadable(Key("", "odd"), "it makes no sense")
    assert not known(view)


def known(view: AutopilotClusterView) -> bool:
    return seen_of(view).machine_configs is not None


def seen_of(view: AutopilotClusterView) -> AssetContext:
    view.stale()
    seen = view.seen()
    assert seen
    return seen.context


@pytest.mark.parametrize("source", [INFRASTRUCTURES, SCHEDULERS], ids=lambda source: source.kind.plural)
def test_topology_is_unknown_without_infrastructure_and_scheduler(catalog: Catalog, source: Source[Any]) -> None:
    view, kept = an_view(catalog)
    assert seen_of(view).topology
    assert view.undetected() == ""
    kept[source].denied.add("")
    assert seen_of(view).topology is None
    assert view.undetected() == f"forbidden (403) to watch {source.kind}"
    kept[source].denied.clear()
    kept[source].put_unreadable(CLUSTER, "it makes no sense")
    assert seen_of(view).topology is None
    assert view.undetected() == f"{source.kind.name} cluster: it makes no sense"


def test_hardware_is_unknown_without_nodes(catalog: Catalog) -> None:
    view, kept = an_view(catalog)
    assert seen_of(view).nodes
    kept[NODES].put_unreadable(Key("", "odd"), "it makes no sense")
    assert seen_of(view).hardware, "of all others"
    assert (seen_of(view).nodes, seen_of(view).topology) == (None, None), "which a node more may change"
    assert view.undetected() == "Node odd: it makes no sense"
    kept[NODES].denied.add("")
    assert seen_of(view).hardware is None
    assert "forbidden (403) to watch Node" in view.undetected()


def test_storage_is_unknown_unless_all_profiles_are_readable(catalog: Catalog) -> None:
    view, kept = an_view(catalog)
    assert seen_of(view).storage == Storage()
    kept[STORAGE_PROFILES].put_unreadable(Key("", "odd"), "it makes no sense")
    assert seen_of(view).storage is None
    assert view.undetected() == "StorageProfile odd: it makes no sense"
    kept[STORAGE_PROFILES].remove(Key("", "odd"))
    kept[STORAGE_PROFILES].denied.add("")
    assert seen_of(view).storage is None
    assert view.undetected() == "forbidden (403) to watch StorageProfile.cdi.kubevirt.io"


def test_unwatchable_object_is_unreadable(catalog: Catalog) -> None:
    view, kept = an_view(catalog)
    first = catalog.assets[0]
    assert not view.unreadable(first.name)
    for store in kept.values():
        store.denied.add("")
    assert "forbidden (403) to watch it" in view.unreadable(first.name)


def test_claims_are_unknown_with_an_unreadable_config(catalog: Catalog) -> None:
    view, kept = an_view(catalog)
    [configs] = [store for source, store in kept.items() if source.kind == VIRT_PLATFORM_CONFIG]
    assert view.unknown_claims() == ""
    configs.put_unreadable(Key("", "load-aware-rebalancing"), "it makes no sense")
    assert view.unknown_claims() == "VirtPlatformConfig load-aware-rebalancing: it makes no sense"
    configs.denied.add("")
    assert "forbidden (403) to watch VirtPlatformConfig" in view.unknown_claims()


def test_unread_schema_is_unknown(catalog: Catalog) -> None:
    crd = "kubedeschedulers.operator.openshift.io"
    reader = next(asset for asset in catalog.assets if any(read.crd == crd for read in asset.reads.schemas.values()))
    view, _ = an_view(catalog)
    assert lacks(view, reader) == ()
    view, _ = an_view(catalog, serves=("operator.openshift.io", "kubedeschedulers"))
    assert lacks(view, reader) == (f"schema of {crd}",)


def lacks(view: AutopilotClusterView, asset: Asset) -> tuple[str, ...]:
    seen = view.seen()
    assert seen
    return seen.context.lacks(asset)


def test_hyperconverged_may_have_any_name(catalog: Catalog) -> None:
    mine = Key("virtualization", "mine")
    view, _ = an_view(catalog, mine)
    first, seen = catalog.assets[0], view.seen()
    assert seen
    outcome = decide(first, seen, None, Renderer(catalog), datetime(2026, 1, 1, tzinfo=UTC)).outcome
    assert isinstance(outcome, Wanted)
    assert ref_of(outcome.intent) == view.ref(first) == Ref(HYPERCONVERGED, mine)
