"""The console without an API server: it answers, stays alive, and says when a restart is needed."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from structlog.testing import capture_logs

from tests.console.rig import ANYWHERE, Browser, Nobody
from tests.eventually import eventually
from virt_steward.console.authentication import Authenticator
from virt_steward.console.cache import PlatformOptions
from virt_steward.console.server import Console, ConsoleParts
from virt_steward.kube.client import Client
from virt_steward.kube.connection import Connection, unobserved
from virt_steward.kube.discovery import Discovery
from virt_steward.kube.kubeconfig import load_from_bytes
from virt_steward.runtime.clock import SystemClock
from virt_steward.runtime.manager import Environment, Manager
from virt_steward.runtime.metrics import Metrics
from virt_steward.settings import ConsoleSettings

KUBECONFIG = b"""
current-context: nowhere
contexts: [{name: nowhere, context: {cluster: nowhere, user: somebody}}]
clusters: [{name: nowhere, cluster: {server: "https://127.0.0.1:1"}}]
users: [{name: somebody, user: {token: secret}}]
"""


class BrokenDiscovery(Discovery):
    async def changed(self) -> None:
        raise ZeroDivisionError("broken")


@asynccontextmanager
async def an_unconnected_console(discovery: type[Discovery] = Discovery) -> AsyncIterator[Console]:
    cluster = load_from_bytes(KUBECONFIG, source="tests", trusted=True, env={})
    connection = Connection(cluster, user_agent="tests", observe=unobserved)
    clock = SystemClock()
    client = Client(connection, discovery(connection))
    around = Environment(connection, client.discovery, clock, Metrics(), "tests", None, 1.0, Nobody())
    authenticator = Authenticator(cluster, client.discovery, unobserved, clock.utc)
    parts = ConsoleParts(Manager(around, ()).informers, client, authenticator, clock, PlatformOptions(), None)
    console = Console(ConsoleSettings(ANYWHERE), parts)
    await console.start()
    try:
        yield console
    finally:
        await console.stop()
        await connection.close()


async def test_console_stays_alive_without_api_server() -> None:
    async with an_unconnected_console() as console, Browser(f"http://{console.address}") as browser:
        answer = await browser.sign_in("a-token")
        assert answer.status == 401
        assert "cannot be checked now" in answer.text
        assert console.failure() is None


async def test_console_failure_says_that_cache_task_ended() -> None:
    with capture_logs() as logs:
        async with an_unconnected_console(BrokenDiscovery) as console:
            assert await eventually(lambda: console.failure() is not None)
            assert str(console.failure()).startswith("console cache ended: ")
    assert "task ended, restart the process" in [line["event"] for line in logs]
