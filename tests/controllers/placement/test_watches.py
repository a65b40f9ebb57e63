"""Which machines and clusters a change wakes."""

from typing import Any

import msgspec
import pytest

from tests.controllers.placement.builders import a_machine
from virt_steward.apis.kubevirtconfig import KubevirtConfigSpec
from virt_steward.controllers.placement.observe import KubevirtConfig, KubevirtConfigMeta, KubevirtConfigReport
from virt_steward.controllers.placement.watches import CONFIGS, MACHINES, ClusterKey, PlacementEventHandlers
from virt_steward.objects.identity import Key
from virt_steward.runtime.store import Store

EAST = KubevirtConfig(KubevirtConfigMeta(name="east", uid="1"))
WEB, DB, CLOUD = (Key("default", name) for name in ("web", "db", "cloud"))


class Watched:
    """An unplaced machine, one on east, and one of another provider."""

    def __init__(self) -> None:
        self.woken: list[Key] = []
        store = Store(MACHINES.indexes or {})
        for machine in (a_machine("web"), a_machine("db", config="east"), a_machine("cloud", provider="aws")):
            store.put(machine)
        self._handlers = {one.source: one.handler for one in PlacementEventHandlers(store, self.woken.append).triggers}

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
            EAST, KubevirtConfig(KubevirtConfigMeta(name="east", uid="1", labels={"a": "b"})), id="gets-another-label"
        ),
        pytest.param(EAST, KubevirtConfig(KubevirtConfigMeta(name="east", uid="2")), id="is-another-of-the-same-name"),
    ],
)
def test_whoever_waits_or_is_placed_there_is_looked_at_when_a_config(
    watched: Watched, before: KubevirtConfig | None, after: KubevirtConfig | None
) -> None:
    assert watched.by_config(before, after) == {ClusterKey("east"), WEB, DB}
    assert set(watched.woken) == {WEB, DB}


def test_a_status_concerns_no_machine(watched: Watched) -> None:
    assert watched.by_config(EAST, msgspec.structs.replace(EAST, status=KubevirtConfigReport(machines=7))) == {
        ClusterKey("east")
    }


def test_rights_that_change_concern_nobody(watched: Watched) -> None:
    assert watched.by_config(None, None, name="") == set()
    assert watched.by_machine(Key("default", ""), None, None) == []


def test_a_machine_is_looked_at_whenever_it_changes(watched: Watched) -> None:
    assert watched.by_machine(WEB, None, a_machine("web")) == [WEB]
    assert watched.woken == [WEB]


def test_a_machine_that_is_placed_or_moved_concerns_its_clusters(watched: Watched) -> None:
    on_east, on_west = a_machine("web", config="east"), a_machine("web", config="west")
    assert watched.by_machine(WEB, a_machine("web"), on_east) == [WEB, ClusterKey("east")]
    assert set(watched.by_machine(WEB, on_east, on_west)) == {WEB, ClusterKey("east"), ClusterKey("west")}
    assert watched.by_machine(WEB, on_east, on_east) == [WEB]
    assert watched.by_machine(WEB, on_east, None) == [WEB, ClusterKey("east")]


def test_machines_of_other_providers_wake_nobody_but_one_that_becomes_ours_does(watched: Watched) -> None:
    theirs = a_machine("cloud", provider="aws")
    assert watched.by_machine(CLOUD, None, theirs) == []
    assert watched.by_machine(CLOUD, theirs, a_machine("cloud")) == [CLOUD]
