"""Which keys a change of Machines and KubevirtConfigs maps to."""

from typing import Any

import msgspec
import pytest

from tests.controllers.placement.builders import a_machine
from virt_steward.apis.kubevirtconfig import KubevirtConfigSpec
from virt_steward.controllers.placement.observe import (
    KubevirtConfig,
    KubevirtConfigMeta,
    KubevirtConfigNotes,
    KubevirtConfigReport,
)
from virt_steward.controllers.placement.watches import CONFIGS, MACHINES, ClusterKey, PlacementEventHandlers
from virt_steward.objects.identity import Key
from virt_steward.runtime.store import Store

EAST = KubevirtConfig(KubevirtConfigMeta(name="east", uid="1"))
WEB, DB, CLOUD = (Key("default", name) for name in ("web", "db", "cloud"))


class Watched:
    """An unplaced Machine, one on east, and one of another provider."""

    def __init__(self) -> None:
        store = Store(MACHINES.indexes or {})
        for machine in (a_machine("web"), a_machine("db", config="east"), a_machine("cloud", provider="aws")):
            store.put(machine)
        self._handlers = {one.source: one.handler for one in PlacementEventHandlers(store).triggers}

    def by_config(self, before: KubevirtConfig | None, after: KubevirtConfig | None, name: str = "east") -> set[Any]:
        return set(self._handlers[CONFIGS](Key("", name), before, after))

    def by_machine(self, key: Key, before: Any, after: Any) -> list[Any]:
        return list(self._handlers[MACHINES](key, before, after))


@pytest.fixture
def watched() -> Watched:
    return Watched()


@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param(None, EAST, id="comes"),
        pytest.param(EAST, None, id="goes"),
        pytest.param(EAST, msgspec.structs.replace(EAST, spec=KubevirtConfigSpec(default=True)), id="changes"),
        pytest.param(
            EAST,
            KubevirtConfig(KubevirtConfigMeta("east", uid="1", annotations=KubevirtConfigNotes(schedulable="false"))),
            id="is-cordoned-by-annotation",
        ),
        pytest.param(
            EAST, KubevirtConfig(KubevirtConfigMeta(name="east", uid="1", labels={"a": "b"})), id="gets-another-label"
        ),
        pytest.param(EAST, KubevirtConfig(KubevirtConfigMeta(name="east", uid="2")), id="is-another-of-the-same-name"),
    ],
)
def test_config_handler_maps_to_unplaced_and_placed_machines(
    watched: Watched, before: KubevirtConfig | None, after: KubevirtConfig | None
) -> None:
    assert watched.by_config(before, after) == {ClusterKey("east"), WEB, DB}


def test_config_handler_maps_a_status_to_the_cluster_only(watched: Watched) -> None:
    assert watched.by_config(EAST, msgspec.structs.replace(EAST, status=KubevirtConfigReport(machines=7))) == {
        ClusterKey("east")
    }


def test_handlers_ignore_changed_permissions(watched: Watched) -> None:
    assert watched.by_config(None, None, name="") == set()
    assert watched.by_machine(Key("default", ""), None, None) == []


def test_machine_handler_maps_to_the_machine(watched: Watched) -> None:
    assert watched.by_machine(WEB, None, a_machine("web")) == [WEB]


def test_machine_handler_maps_to_old_and_new_cluster(watched: Watched) -> None:
    on_east, on_west = a_machine("web", config="east"), a_machine("web", config="west")
    assert watched.by_machine(WEB, a_machine("web"), on_east) == [WEB, ClusterKey("east")]
    assert set(watched.by_machine(WEB, on_east, on_west)) == {WEB, ClusterKey("east"), ClusterKey("west")}
    assert watched.by_machine(WEB, on_east, on_east) == [WEB]
    assert watched.by_machine(WEB, on_east, None) == [WEB, ClusterKey("east")]


def test_machine_handler_ignores_other_providers(watched: Watched) -> None:
    theirs = a_machine("cloud", provider="aws")
    assert watched.by_machine(CLOUD, None, theirs) == []
    assert watched.by_machine(CLOUD, theirs, a_machine("cloud")) == [CLOUD]
