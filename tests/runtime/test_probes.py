import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from random import Random

import aiohttp
import pytest

from tests.runtime.clocks import ManualClock
from virt_steward.runtime.addresses import Address, BadAddress, parse_address
from virt_steward.runtime.debug import DebugPage, DebugReply, DebugRequest, queues_page
from virt_steward.runtime.metrics import Metrics
from virt_steward.runtime.probes import Addresses, Checks, MetricsAccess, Probes
from virt_steward.runtime.workqueue import WorkQueue

ANY_PORT = Address("--test-bind-address", "127.0.0.1", 0)


class Client:
    def __init__(self, probes: Probes, session: aiohttp.ClientSession) -> None:
        self._probes = probes
        self._session = session

    async def get(self, server: str, path: str, **headers: str) -> tuple[int, str, str]:
        """Status, type and text."""
        url = f"http://{self._probes.servers[server].bound}{path}"
        async with self._session.get(url, headers=headers) as answer:
            return answer.status, answer.content_type, await answer.text()


@asynccontextmanager
async def running(checks: Checks | None = None, pages: Mapping[str, DebugPage] | None = None) -> AsyncIterator[Client]:
    probes = Probes(
        Addresses(ANY_PORT, ANY_PORT, ANY_PORT), Metrics(), checks or Checks(), pages or {}, MetricsAccess()
    )
    await probes.start()
    try:
        async with aiohttp.ClientSession() as session:
            yield Client(probes, session)
    finally:
        await probes.stop()


@pytest.mark.parametrize(
    ("text", "host", "port"),
    [
        pytest.param(":8080", "", 8080, id="all-interfaces"),
        pytest.param("127.0.0.1:8081", "127.0.0.1", 8081, id="an-ipv4-address"),
        pytest.param("[::1]:8081", "::1", 8081, id="an-ipv6-address"),
        pytest.param("localhost:0", "localhost", 0, id="a-name-and-any-port"),
    ],
)
def test_parse_address_accepts_valid_forms(text: str, host: str, port: int) -> None:
    address = parse_address("--flag", text)
    assert address == Address("--flag", host, port)
    assert str(address) == text


def test_parse_address_zero_turns_off() -> None:
    assert parse_address("--flag", "0") is None


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("", id="empty"),
        pytest.param("8080", id="only-a-port"),
        pytest.param("::1:8081", id="ipv6-without-brackets"),
        pytest.param(":http", id="a-service-name"),
        pytest.param(":65536", id="a-port-too-high"),
        pytest.param(":" + "9" * 5000, id="a-port-with-thousands-of-digits"),
        pytest.param("127.0.0.1:", id="no-port"),
        pytest.param(":²", id="a-digit-of-another-script"),
    ],
)
def test_parse_address_refuses_invalid_text(text: str) -> None:
    with pytest.raises(BadAddress) as refused:
        parse_address("--flag", text)
    assert str(refused.value).startswith(f"--flag {text}: ")
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("host", "allowed"),
    [
        pytest.param("127.0.0.1", True, id="on-ipv4-loopback"),
        pytest.param("127.8.8.8", True, id="anywhere-in-127"),
        pytest.param("::1", True, id="on-ipv6-loopback"),
        pytest.param("localhost", True, id="on-localhost"),
        pytest.param("", False, id="not-on-all-interfaces"),
        pytest.param("0.0.0.0", False, id="not-on-all-ipv4-interfaces"),
        pytest.param("::", False, id="not-on-all-ipv6-interfaces"),
        pytest.param("10.0.0.7", False, id="not-on-the-pod-network"),
        pytest.param("steward.example", False, id="not-under-a-name"),
    ],
)
def test_debug_address_must_be_loopback(host: str, *, allowed: bool) -> None:
    addresses = Addresses(None, Address("--debug-bind-address", host, 8081), None)
    try:
        Probes(addresses, Metrics(), Checks(), {}, MetricsAccess())
    except BadAddress as refused:
        assert not allowed
        assert "loopback only; use 127.0.0.1:8081" in str(refused)  # noqa: PT017 - both outcomes are cases here
    else:
        assert allowed


async def test_probes_serve_metrics() -> None:
    async with running() as client:
        status, content_type, text = await client.get("metrics", "/metrics")
    assert (status, content_type) == (200, "text/plain")
    assert "process_resident_memory_bytes" in text


async def test_probes_pass_without_checks() -> None:
    async with running() as client:
        assert await client.get("health", "/healthz") == (200, "text/plain", "ok\n")
        assert await client.get("health", "/readyz") == (200, "text/plain", "ok\n")


async def test_readyz_reports_failed_checks() -> None:
    missing: str | None = "installplans not synced"
    checks = Checks(ready={"leader": lambda: None, "caches": lambda: missing})
    async with running(checks) as client:
        assert await client.get("health", "/readyz") == (
            503,
            "text/plain",
            "[-] caches: installplans not synced\nfailed\n",
        )
        assert (await client.get("health", "/healthz"))[0] == 200
        missing = None
        assert await client.get("health", "/readyz") == (200, "text/plain", "ok\n")


async def test_readyz_verbose_lists_passed_checks() -> None:
    checks = Checks(ready={"leader": lambda: None, "caches": lambda: "not synced"})
    async with running(checks) as client:
        _, _, text = await client.get("health", "/readyz?verbose")
    assert text == "[+] leader\n[-] caches: not synced\nfailed\n"


async def test_readyz_fails_when_check_crashes() -> None:
    async with running(Checks(ready={"broken": lambda: str(1 // 0)})) as client:
        status, _, _ = await client.get("health", "/readyz")
    assert status == 500


async def test_debug_index_lists_pages() -> None:
    async def a_text(_: DebugRequest) -> str:
        return "all quiet"

    async def data(_: DebugRequest) -> dict[str, list[int]]:
        return {"numbers": [1, 2]}

    async with running(pages={"/debug/text": a_text, "/debug/data": data}) as client:
        assert (await client.get("debug", "/debug/"))[2] == "/debug/data\n/debug/tasks\n/debug/text\n"
        assert await client.get("debug", "/debug/text") == (200, "text/plain", "all quiet")
        status, content_type, text = await client.get("debug", "/debug/data")
    assert (status, content_type, text.split()) == (
        200,
        "application/json",
        ["{", '"numbers":', "[", "1,", "2", "]", "}"],
    )


@pytest.mark.parametrize(
    ("host", "status"),
    [
        pytest.param("localhost", 200, id="localhost"),
        pytest.param("localhost:9999", 200, id="another-port"),
        pytest.param("127.0.0.1:8081", 200, id="ipv4"),
        pytest.param("[::1]:8081", 200, id="ipv6"),
        pytest.param("rebound.example:8081", 421, id="foreign-name"),
        pytest.param("localhost.rebound.example", 421, id="foreign-subdomain"),
        pytest.param("10.0.0.7:8081", 421, id="foreign-address"),
        pytest.param("[", 421, id="nonsense"),
    ],
)
async def test_debug_pages_answer_under_loopback_names_only(host: str, status: int) -> None:
    async with running() as client:
        assert (await client.get("debug", "/debug/tasks", Host=host))[0] == status
        answer = await client.get("debug", "/debug/", Host=host)
        assert answer[0] == status
        assert ("/debug/tasks" in answer[2]) is (status == 200)


async def test_debug_page_gets_request_and_returns_reply() -> None:
    async def page(asked: DebugRequest) -> DebugReply:
        headers = {"X-Told": asked.query.get("say", "")}
        return DebugReply(f"no {asked.path['name']}", status=404, media="application/x-yaml", headers=headers)

    async with running(pages={"/debug/one/{name:.*}": page}) as client:
        assert await client.get("debug", "/debug/one/thing?say=so") == (404, "application/x-yaml", "no thing")
        assert (await client.get("debug", "/debug/one/"))[2] == "no "
        assert (await client.get("debug", "/debug/"))[2] == "/debug/one/{name}\n/debug/tasks\n"


async def test_queues_page_shows_queue_state() -> None:
    clock = ManualClock()
    queue: WorkQueue[str] = WorkQueue("advisor", clock, Random(1), Metrics())
    queue.add("slow")
    await queue.get()
    queue.add("waiting")
    queue.add_after("later", 60)
    await clock.advance(2)
    assert await queues_page([queue])(DebugRequest()) == {
        "advisor": {"depth": 1, "delayed": 1, "oldestWaitSeconds": 2.0, "runningSeconds": {"slow": 2.0}}
    }
    queue.shut_down()


async def test_tasks_page_shows_stacks() -> None:
    async def inner() -> None:
        await asyncio.get_running_loop().create_future()

    async def outer() -> None:
        await inner()

    stuck = asyncio.create_task(outer(), name="stuck")
    async with running() as client:
        _, _, text = await client.get("debug", "/debug/tasks")
    stuck.cancel()
    assert '"name": "stuck"' in text
    assert text.index("<locals>.outer (test_probes.py:") < text.index("<locals>.inner (test_probes.py:")


async def test_probes_report_taken_port() -> None:
    holder = await asyncio.start_server(lambda *_: None, "127.0.0.1", 0)
    port = holder.sockets[0].getsockname()[1]
    taken = Address("--health-probe-bind-address", "127.0.0.1", port)
    probes = Probes(Addresses(ANY_PORT, None, taken), Metrics(), Checks(), {}, MetricsAccess())
    async with holder:
        with pytest.raises(BadAddress) as refused:
            await probes.start()
    assert str(refused.value) == (
        f"--health-probe-bind-address 127.0.0.1:{port}: Address already in use; "
        "choose another address, or 0 to turn it off"
    )
    assert probes.servers["metrics"]._listening.fileno() == -1  # closed again


async def test_probes_skip_disabled_servers() -> None:
    assert Probes(Addresses(None, None, None), Metrics(), Checks(), {}, MetricsAccess()).servers == {}


async def test_probes_stop_listening() -> None:
    async with running() as client:
        bound = client._probes.servers["health"].bound
    with pytest.raises(ConnectionRefusedError):
        await asyncio.open_connection(bound.host, bound.port)
