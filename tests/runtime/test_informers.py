"""One source in several namespaces: informers that share a store."""

import asyncio
from typing import Any

import pytest

from tests.clients import a_client
from tests.eventually import eventually
from tests.grants import an_account
from tests.runtime.informers import running, widgets_of
from tests.widgets import WIDGET, a_widget
from virt_steward.kube.client import Client
from virt_steward.objects.identity import Key
from virt_steward.runtime.access import WATCH, Access, Grant, Installation, Reach
from virt_steward.runtime.informer import InformerState, Source
from virt_steward.runtime.informers import Informers, SharedInformer
from virt_steward_demo.local.controlplane import ControlPlane

PATIENCE = 30
ACCESS = Access("looker", (Grant(WIDGET, WATCH, "to look", Reach.TARGETS),))


@pytest.fixture
async def two(admin: Client, widgets: str) -> tuple[str, str]:
    """Namespaces with a widget each."""
    other = f"{widgets}-other"
    await admin.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": other}})
    for namespace in (widgets, other):
        await admin.create(a_widget(namespace, size=1))
    return widgets, other


def widgets_everywhere(where: Reach) -> Source[Any]:
    return widgets_of("", where=where)


def known(watched: SharedInformer[Any]) -> set[str]:
    return {each.metadata.namespace for each in watched.store}


async def test_informers_watch_each_target_namespace(admin: Client, two: tuple[str, str]) -> None:
    watched = Informers(admin, two).of(widgets_everywhere(Reach.TARGETS))
    assert [informer.source.selection.namespace for informer in watched.informers] == list(two)


@pytest.mark.parametrize(
    ("namespaces", "where"),
    [
        pytest.param(("a", "b"), Reach.CLUSTER, id="it is not in reach of targets"),
        pytest.param((), Reach.TARGETS, id="there are no limits"),
    ],
)
async def test_informers_watch_whole_cluster(namespaces: tuple[str, ...], where: Reach, admin: Client) -> None:
    [informer] = Informers(admin, namespaces).of(widgets_everywhere(where)).informers
    assert informer.source.selection.namespace == ""


async def test_informers_share_store_across_namespaces(admin: Client, two: tuple[str, str]) -> None:
    watched = Informers(admin, two).of(widgets_everywhere(Reach.TARGETS))
    first, second = watched.informers
    async with running(first):
        await asyncio.wait_for(first.settled(), PATIENCE)
        async with running(second):
            await asyncio.wait_for(watched.settled(), PATIENCE)
            assert known(watched) == set(two)


async def test_informers_replay_each_object_once(admin: Client, two: tuple[str, str]) -> None:
    watched = Informers(admin, two).of(widgets_everywhere(Reach.TARGETS))
    first, second = watched.informers
    async with running(first), running(second):
        await asyncio.wait_for(watched.settled(), PATIENCE)
        told: list[Key] = []
        watched.tell(lambda key, _before, _after: told.append(key))
        assert sorted(told) == [Key(namespace, "one") for namespace in two]


async def test_informers_survive_denied_namespace(
    admin: Client, control_plane: ControlPlane, two: tuple[str, str]
) -> None:
    here, there = two
    account = await an_account(admin, ACCESS, Installation(here, prefix=here, target_namespaces=(here,)))
    async with a_client(control_plane, account.token) as client:
        informers = Informers(client, two)
        watched = informers.of(widgets_everywhere(Reach.TARGETS))
        told: list[Key] = []
        watched.tell(lambda key, _before, _after: told.append(key))
        first, second = watched.informers
        async with running(first), running(second):
            await asyncio.wait_for(watched.settled(), PATIENCE)
            assert (first.state, second.state) == (InformerState.SYNCED, InformerState.DENIED)
            assert watched.store.denied == {there}
            assert informers.unsettled() is None
            assert set(told) == {Key(here, "one"), Key(there, "")}

            told.clear()
            await an_account(admin, ACCESS, Installation(here, prefix=here, target_namespaces=two))
            assert await eventually(lambda: watched.store.denied == set(), within=15)
            assert told == [Key(there, "one"), Key(there, "")]
            assert known(watched) == set(two)
