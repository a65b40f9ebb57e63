"""The console's cache: it shares the watches of the controllers, and follows their options."""

from collections.abc import AsyncIterator

import pytest

from tests.console.rig import Nobody
from virt_steward.apis.profiles import HIGHER_DENSITY
from virt_steward.console.access import EVENTS
from virt_steward.console.cache import Cache, PlatformOptions
from virt_steward.console.live import Broadcaster
from virt_steward.controllers import NAMES, definition
from virt_steward.controllers.advisor.options import AdvisorOptions
from virt_steward.controllers.options import ControllerOptions
from virt_steward.kube.client import Client, Selection
from virt_steward.kube.connection import Connection, unobserved
from virt_steward.kube.discovery import Discovery
from virt_steward.kube.kubeconfig import load_from_bytes
from virt_steward.objects.corekinds import NODE
from virt_steward.objects.identity import Key, Ref
from virt_steward.platform.hco import HYPERCONVERGED
from virt_steward.platform.machineconfigs import MACHINE_CONFIG_POOL
from virt_steward.runtime.access import LEASE, NAMESPACE
from virt_steward.runtime.clock import SystemClock
from virt_steward.runtime.informers import Informers
from virt_steward.runtime.manager import Environment, Manager
from virt_steward.runtime.metrics import Metrics

KUBECONFIG = b"""
current-context: nowhere
contexts: [{name: nowhere, context: {cluster: nowhere, user: somebody}}]
clusters: [{name: nowhere, cluster: {server: "https://127.0.0.1:1"}}]
users: [{name: somebody, user: {token: secret}}]
"""


@pytest.fixture
async def unconnected() -> AsyncIterator[Client]:
    """A client that is never used: no informer runs here."""
    cluster = load_from_bytes(KUBECONFIG, source="tests", trusted=True, env={})
    connection = Connection(cluster, user_agent="tests", observe=unobserved)
    yield Client(connection, Discovery(connection))
    await connection.close()


def a_manager(client: Client) -> Manager:
    """A manager with all four controllers."""
    environment = Environment(
        client.connection, client.discovery, SystemClock(), Metrics(), "tests", None, 1.0, Nobody()
    )
    return Manager(environment, [definition(name, ControllerOptions()) for name in NAMES])


def a_cache(client: Client, informers: Informers, platform: PlatformOptions) -> Cache:
    return Cache(informers, client, Broadcaster(), SystemClock(), platform)


async def test_cache_adds_only_watches_of_events_and_leases_to_controllers(unconnected: Client) -> None:
    informers = a_manager(unconnected).informers
    before = list(informers)
    assert a_cache(unconnected, informers, PlatformOptions())
    added = [one.source for one in informers if one not in before]
    leases = [one.selection for one in added if one.kind == LEASE]
    assert leases == [Selection.one(Key(NAMESPACE, f"virt-steward-{name}")) for name in NAMES]
    assert [one for one in added if one.kind != LEASE] == list(EVENTS)


@pytest.mark.parametrize("kind", [NODE, MACHINE_CONFIG_POOL], ids=str)
async def test_process_opens_one_watch_of_nodes_and_pools(unconnected: Client, kind: object) -> None:
    informers = a_manager(unconnected).informers
    assert a_cache(unconnected, informers, PlatformOptions())
    assert len([one for one in informers if one.source.kind == kind]) == 1


async def test_profiles_follow_the_hyperconverged_of_the_options(unconnected: Client) -> None:
    platform = PlatformOptions(advisor=AdvisorOptions(hco=Key("elsewhere", "another")))
    cache = a_cache(unconnected, Informers(unconnected, ()), platform)
    profile = cache.profiles.named(HIGHER_DENSITY)
    assert profile
    assert Ref(HYPERCONVERGED, Key("elsewhere", "another")) in profile.targets
