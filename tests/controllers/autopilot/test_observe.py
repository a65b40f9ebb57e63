"""What is seen: a HyperConverged of any name, and what is not known is not taken for absent."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from virt_steward.apis.virtplatformconfig import VIRT_PLATFORM_CONFIG
from virt_steward.catalog.asset import Asset
from virt_steward.catalog.context import Context
from virt_steward.catalog.hco import HYPERCONVERGED
from virt_steward.catalog.load import Catalog
from virt_steward.catalog.render import Renderer
from virt_steward.catalog.sources import (
    INFRASTRUCTURES,
    KUBELET_CONFIGS,
    MACHINE_CONFIGS,
    NODES,
    POOLS,
    SCHEDULERS,
    STORAGE_PROFILES,
)
from virt_steward.catalog.storage import Storage
from virt_steward.catalog.topology import CLUSTER
from virt_steward.controllers.autopilot.decide import Wanted, decide
from virt_steward.controllers.autopilot.observe import Outlook, Stores
from virt_steward.controllers.autopilot.options import HCO, Options
from virt_steward.controllers.autopilot.seen import ServedKinds
from virt_steward.controllers.autopilot.watches import Watchlist
from virt_steward.objects.identity import Key, Ref, ref_of
from virt_steward.runtime.informer import Source
from virt_steward.runtime.store import Store


def an_hco(key: Key, annotations: Mapping[str, str] | None = None) -> dict[str, Any]:
    names = {"name": key.name, "namespace": key.namespace, "uid": "1", "resourceVersion": "1"}
    metadata = names | {"annotations": dict(annotations or {})}
    return {"apiVersion": "hco.kubevirt.io/v1", "kind": HYPERCONVERGED.name, "metadata": metadata}


class NoSchemas:
    def facts(self, _crd: str) -> None:
        return None


def an_outlook(
    catalog: Catalog, hco: Key = HCO, serves: tuple[str, str] = (HYPERCONVERGED.group, HYPERCONVERGED.plural)
) -> tuple[Outlook, dict[Source[Any], Store[Any]]]:
    """A cluster with nothing but a HyperConverged, and where it is kept."""
    obj = an_hco(hco)
    namespace = {"metadata": {"name": hco.namespace, "uid": "2", "resourceVersion": "1"}}
    kept: dict[Source[Any], Store[Any]] = {}
    watchlist = Watchlist(catalog, hco)
    stores = Stores.of(watchlist, lambda source: kept.setdefault(source, Store({})))
    stores.hco.put(watchlist.hco.decode(msgspec.json.encode(obj)))
    stores.namespaces[hco.namespace].put(watchlist.namespaces[hco.namespace].decode(msgspec.json.encode(namespace)))
    return Outlook(stores, NoSchemas(), ServedKinds(frozenset((serves,))), catalog, Options(hco)), kept


@pytest.mark.parametrize("source", [MACHINE_CONFIGS, POOLS, KUBELET_CONFIGS], ids=lambda source: source.kind.plural)
def test_nobody_can_tell_what_others_set_on_nodes_without_all_of_the(catalog: Catalog, source: Source[Any]) -> None:
    outlook, kept = an_outlook(catalog)
    assert known(outlook)
    kept[source].denied.add("")
    assert not known(outlook)
    kept[source].denied.clear()
    kept[source].put_unreadable(Key("", "odd"), "it makes no sense")
    assert not known(outlook)


def known(outlook: Outlook) -> bool:
    return seen_of(outlook).machine_configs is not None


def seen_of(outlook: Outlook) -> Context:
    outlook.stale()
    seen = outlook.seen()
    assert seen
    return seen.look.context


@pytest.mark.parametrize("source", [INFRASTRUCTURES, SCHEDULERS], ids=lambda source: source.kind.plural)
def test_a_platform_that_cannot_be_seen_is_not_taken_for_another_one_without(
    catalog: Catalog, source: Source[Any]
) -> None:
    outlook, kept = an_outlook(catalog)
    assert seen_of(outlook).topology
    assert outlook.undetected() == ""
    kept[source].denied.add("")
    assert seen_of(outlook).topology is None
    assert outlook.undetected() == f"the right to watch {source.kind.name}s is lacking"
    kept[source].denied.clear()
    kept[source].put_unreadable(CLUSTER, "it makes no sense")
    assert seen_of(outlook).topology is None
    assert outlook.undetected() == f"{source.kind.name} cluster: it makes no sense"


def test_hardware_is_not_known_without_nodes_and_one_that_makes_no_sense_is_said_to(catalog: Catalog) -> None:
    outlook, kept = an_outlook(catalog)
    assert seen_of(outlook).nodes
    kept[NODES].put_unreadable(Key("", "odd"), "it makes no sense")
    assert seen_of(outlook).hardware, "of all others"
    assert (seen_of(outlook).nodes, seen_of(outlook).topology) == (None, None), "which a node more may change"
    assert outlook.undetected() == "Node odd: it makes no sense"
    kept[NODES].denied.add("")
    assert seen_of(outlook).hardware is None
    assert "the right to watch Nodes is lacking" in outlook.undetected()


def test_storage_that_may_be_shared_is_not_known_without_every_profile(catalog: Catalog) -> None:
    outlook, kept = an_outlook(catalog)
    assert seen_of(outlook).storage == Storage()
    kept[STORAGE_PROFILES].put_unreadable(Key("", "odd"), "it makes no sense")
    assert seen_of(outlook).storage is None
    assert outlook.undetected() == "StorageProfile odd: it makes no sense"
    kept[STORAGE_PROFILES].remove(Key("", "odd"))
    kept[STORAGE_PROFILES].denied.add("")
    assert seen_of(outlook).storage is None
    assert outlook.undetected() == "the right to watch StorageProfiles is lacking"


def test_an_object_that_may_no_longer_be_watched_is_said_to_be_out_of_sight(catalog: Catalog) -> None:
    outlook, kept = an_outlook(catalog)
    first = catalog.assets[0]
    assert not outlook.unreadable(first.name)
    for store in kept.values():
        store.denied.add("")
    assert "lacks the right to watch it" in outlook.unreadable(first.name)


def test_what_plans_have_set_is_not_known_while_one_of_them_cannot_be_read(catalog: Catalog) -> None:
    outlook, kept = an_outlook(catalog)
    [configs] = [store for source, store in kept.items() if source.kind == VIRT_PLATFORM_CONFIG]
    assert outlook.unknown_claims() == ""
    configs.put_unreadable(Key("", "load-aware-rebalancing"), "it makes no sense")
    assert outlook.unknown_claims() == "VirtPlatformConfig load-aware-rebalancing: it makes no sense"
    configs.denied.add("")
    assert "right to watch VirtPlatformConfigs" in outlook.unknown_claims()


def test_a_definition_that_is_served_and_was_not_read_yet_is_not_taken_for_one_without_fields(catalog: Catalog) -> None:
    crd = "kubedeschedulers.operator.openshift.io"
    reader = next(asset for asset in catalog.assets if any(read.crd == crd for read in asset.reads.schemas.values()))
    outlook, _ = an_outlook(catalog)
    assert lacks(outlook, reader) == ()
    outlook, _ = an_outlook(catalog, serves=("operator.openshift.io", "kubedeschedulers"))
    assert lacks(outlook, reader) == (f"schema of {crd}",)


def lacks(outlook: Outlook, asset: Asset) -> tuple[str, ...]:
    seen = outlook.seen()
    assert seen
    return seen.look.context.lacks(asset)


def test_a_hyperconverged_may_have_any_name(catalog: Catalog) -> None:
    mine = Key("virtualization", "mine")
    outlook, _ = an_outlook(catalog, mine)
    first, seen = catalog.assets[0], outlook.seen()
    assert seen
    outcome = decide(first, seen, None, Renderer(catalog), datetime(2026, 1, 1, tzinfo=UTC)).outcome
    assert isinstance(outcome, Wanted)
    assert ref_of(outcome.intent) == outlook.ref(first) == Ref(HYPERCONVERGED, mine)
