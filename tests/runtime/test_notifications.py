"""Notifications against a receiver on loopback."""

import asyncio
import contextlib
import hashlib
import ssl
import time
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from typing import Literal

import pytest
from prometheus_client import CollectorRegistry
from structlog.testing import capture_logs

from tests.eventually import eventually
from tests.kube.certificates import a_pair, an_authority
from tests.runtime.clocks import ManualClock
from tests.runtime.managers import a_watcher, running
from tests.runtime.receiver import Receiver, receiving
from tests.stamper import CONFIG_MAP, a_paper
from virt_steward.kube.client import Client
from virt_steward.kube.events import Occurrence
from virt_steward.objects.identity import Key, Kind, Ref, Regarding
from virt_steward.runtime import notifier as notifier_module
from virt_steward.runtime.clock import SystemClock
from virt_steward.runtime.controller import Toolbox
from virt_steward.runtime.digests import WINDOW
from virt_steward.runtime.notification_endpoints import BadEndpoints, Endpoint, load_endpoints
from virt_steward.runtime.notifications import Notification, notification
from virt_steward.runtime.notifier import QUEUE_SIZE, Notifier
from virt_steward.runtime.outcomes import Done, Outcome
from virt_steward_demo.local.controlplane import ControlPlane

NOTICE = Notification(
    id="42",
    type="cloud.bapu.operators.installplan.approved",
    source="/apis/operators.bapu.cloud/v1alpha1/namespaces/shop/installplanapprovers/ann",
    subject="shop/install-1",
    time=datetime(2030, 1, 1, tzinfo=UTC),
    text="InstallPlan shop/install-1 was approved, within >=1.0 <2.0",
    data={"reason": "Approved"},
)


@pytest.fixture
async def receiver() -> AsyncIterator[Receiver]:
    async with receiving() as started:
        yield started


def a_notifier(clock: ManualClock | SystemClock, **endpoints: Endpoint) -> tuple[Notifier, CollectorRegistry]:
    registry = CollectorRegistry()
    return Notifier(endpoints, clock, Random(1), registry), registry


def counted(registry: CollectorRegistry, endpoint: str, outcome: str) -> float | None:
    return registry.get_sample_value("virt_steward_notifications_total", {"endpoint": endpoint, "outcome": outcome})


def waiting(registry: CollectorRegistry, endpoint: str) -> float | None:
    return registry.get_sample_value("virt_steward_notifications_waiting", {"endpoint": endpoint})


async def test_notifier_posts_cloud_event(receiver: Receiver) -> None:
    notifier, registry = a_notifier(SystemClock(), audit=Endpoint(receiver.url))
    async with notifier.running():
        notifier.send("audit", NOTICE)
        assert await eventually(lambda: counted(registry, "audit", "sent") == 1)
    assert receiver.got == [
        (
            "application/cloudevents+json",
            {
                "specversion": "1.0",
                "id": "42",
                "type": NOTICE.type,
                "source": NOTICE.source,
                "subject": "shop/install-1",
                "time": "2030-01-01T00:00:00Z",
                "datacontenttype": "application/json",
                "data": {"text": NOTICE.text, "reason": "Approved"},
            },
        )
    ]


async def test_notifier_posts_escaped_text_to_slack(receiver: Receiver) -> None:
    notifier, _ = a_notifier(SystemClock(), chat=Endpoint(receiver.url, "slack"))
    async with notifier.running():
        notifier.send("chat", NOTICE)
        assert await eventually(lambda: bool(receiver.got))
    text = "InstallPlan shop/install-1 was approved, within &gt;=1.0 &lt;2.0"
    assert receiver.got == [("application/json", {"text": text})]


@pytest.mark.parametrize("format_", ["slack", "cloudevents"])
async def test_notifier_links_to_console(receiver: Receiver, format_: Literal["slack", "cloudevents"]) -> None:
    endpoints = {"chat": Endpoint(receiver.url, format_)}
    notifier = Notifier(endpoints, SystemClock(), Random(1), CollectorRegistry(), "https://console.example")
    async with notifier.running():
        notifier.send("chat", replace(NOTICE, page="/approvals/shop/install 1"))
        notifier.send("chat", NOTICE)
        assert await eventually(lambda: len(receiver.got) == 2)
    linked, plain = (str(body) for _, body in receiver.got)
    assert "https://console.example/approvals/shop/install%201" in linked
    assert "https://console.example" not in plain


async def test_notifier_sums_up_flood_in_digest(receiver: Receiver) -> None:
    clock = ManualClock()
    notifier, registry = a_notifier(clock, chat=Endpoint(receiver.url, digest_after=3))
    async with notifier.running():
        for number in range(500):
            notifier.send("chat", replace(NOTICE, id=str(number)))
        assert await eventually(lambda: len(receiver.got) == 3)
        await clock.advance(WINDOW)
        assert await eventually(lambda: len(receiver.got) == 4)
        notifier.send("chat", NOTICE)
        assert await eventually(lambda: len(receiver.got) == 5)
    assert receiver.got[3][1]["data"]["count"] == 497
    assert counted(registry, "chat", "lost") == 0


async def test_notifier_sends_digest_at_stop(receiver: Receiver) -> None:
    notifier, _ = a_notifier(SystemClock(), chat=Endpoint(receiver.url, digest_after=1))
    async with notifier.running():
        notifier.send("chat", NOTICE)
        notifier.send("chat", NOTICE)
    assert [body["data"].get("count") for _, body in receiver.got] == [None, 1]


@pytest.mark.parametrize("status", [307, 401, 404, 429, 500, 503])
async def test_notifier_retries_failed_delivery(status: int, receiver: Receiver) -> None:
    clock = ManualClock()
    receiver.answers = [status, status]
    notifier, registry = a_notifier(clock, chat=Endpoint(receiver.url))
    async with notifier.running():
        notifier.send("chat", NOTICE)
        for attempts in (1, 2):
            assert await eventually(lambda: clock.sleepers == 1)
            assert len(receiver.got) == attempts
            await clock.advance(2.0)
        assert await eventually(lambda: counted(registry, "chat", "sent") == 1)
    assert len(receiver.got) == 3


async def test_notifier_drops_refused_notification(receiver: Receiver) -> None:
    receiver.answers = [422]
    notifier, registry = a_notifier(SystemClock(), chat=Endpoint(receiver.url))
    async with notifier.running():
        notifier.send("chat", NOTICE)
        notifier.send("chat", replace(NOTICE, id="43"))
        assert await eventually(lambda: counted(registry, "chat", "sent") == 1)
    assert counted(registry, "chat", "refused") == 1
    assert [body["id"] for _, body in receiver.got] == ["42", "43"]


async def test_notifier_isolates_dead_endpoint(receiver: Receiver) -> None:
    dead = Endpoint("http://127.0.0.1:1/hook/s3cr3t", digest_after=0)
    notifier, registry = a_notifier(ManualClock(), dead=dead, chat=Endpoint(receiver.url))
    with capture_logs() as logged:
        async with notifier.running():
            notifier.send("dead", NOTICE)
            assert await eventually(lambda: any(line["event"] == "notification not sent, retrying" for line in logged))
            for _ in range(QUEUE_SIZE + 3):
                notifier.send("dead", NOTICE)
            notifier.send("chat", NOTICE)
            assert await eventually(lambda: counted(registry, "chat", "sent") == 1)
            assert counted(registry, "dead", "lost") == 3
            assert waiting(registry, "dead") == QUEUE_SIZE + 1  # with the one that is tried
            assert waiting(registry, "chat") == 0
    assert "s3cr3t" not in str(logged)


async def test_notifier_flushes_at_stop(receiver: Receiver) -> None:
    notifier, _ = a_notifier(SystemClock(), chat=Endpoint(receiver.url))
    async with notifier.running():
        notifier.send("chat", NOTICE)
    assert len(receiver.got) == 1


async def test_notifier_rereads_authorization_file(receiver: Receiver, tmp_path: Path) -> None:
    secret = tmp_path / "authorization"
    notifier, registry = a_notifier(SystemClock(), chat=Endpoint(receiver.url, authorization_file=str(secret)))
    async with notifier.running():
        for number, value in enumerate(("Bearer one", "Bearer two"), start=1):
            secret.write_text(f"{value}\n")
            notifier.send("chat", NOTICE)
            assert await eventually(lambda number=number: counted(registry, "chat", "sent") == number)  # type: ignore[misc]
    assert receiver.authorizations == ["Bearer one", "Bearer two"]


def a_server_context(folder: Path) -> ssl.SSLContext:
    pair = a_pair("localhost")
    (folder / "chain").write_bytes(pair.chain)
    (folder / "key").write_bytes(pair.key)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(folder / "chain", folder / "key")
    return context


async def test_notifier_trusts_certificates_of_the_system(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "authorities").write_bytes(an_authority().chain)
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "authorities"))
    async with receiving(a_server_context(tmp_path)) as receiver:
        notifier, registry = a_notifier(SystemClock(), chat=Endpoint(receiver.url))
        async with notifier.running():
            notifier.send("chat", NOTICE)
            assert await eventually(lambda: counted(registry, "chat", "sent") == 1)
    assert len(receiver.got) == 1


async def test_notifier_refuses_untrusted_certificate(tmp_path: Path) -> None:
    async with receiving(a_server_context(tmp_path)) as receiver:
        clock = ManualClock()
        notifier, _ = a_notifier(clock, chat=Endpoint(receiver.url))
        with capture_logs() as logged:
            async with notifier.running():
                notifier.send("chat", NOTICE)
                assert await eventually(lambda: clock.sleepers == 1)
        assert receiver.got == []
    assert [line["error"] for line in logged] == ["ClientConnectorCertificateError"]


def test_load_endpoints_reads_file(tmp_path: Path) -> None:
    path = tmp_path / "notify.yaml"
    path.write_text("chat: {url: 'https://chat.example/hook', format: slack}\naudit: {url: 'http://audit.example'}\n")
    assert load_endpoints(str(path)) == {
        "chat": Endpoint("https://chat.example/hook", "slack"),
        "audit": Endpoint("http://audit.example", "cloudevents"),
    }


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        pytest.param("{", "not YAML", id="is no YAML"),
        pytest.param("[]", "Expected `object`", id="is a list"),
        pytest.param("chat: {url: 'https://s3cr3t.example', colour: red}", "colour", id="has an unknown setting"),
        pytest.param("chat: {url: 'https://s3cr3t.example', format: fax}", "'fax'", id="has an unknown format"),
        pytest.param("chat: {format: slack}", "missing required field `url`", id="lacks an address"),
        pytest.param("chat: {url: 'ftp://s3cr3t.example'}", "https://", id="has an address that is not of the web"),
        pytest.param("chat: {url: 'https://[s3cr3t'}", "url is invalid", id="has an address that makes no sense"),
        pytest.param(
            "chat: {url: 'http://s3cr3t.example', authorizationFile: /etc/authorization}",
            "unencrypted over http://: use https://",
            id="sends a secret unencrypted",
        ),
        pytest.param("chat: {url: 'https://a:s3cr3t@b.example'}", "authorizationFile", id="has a password inside"),
    ],
)
def test_load_endpoints_refuses_invalid_file(text: str, complaint: str, tmp_path: Path) -> None:
    path = tmp_path / "notify.yaml"
    path.write_text(text)
    with pytest.raises(BadEndpoints) as refused:
        load_endpoints(str(path))
    assert str(refused.value).startswith(f"--notify-config {path}: ")
    assert complaint in str(refused.value)
    assert "\n" not in str(refused.value)
    assert "s3cr3t" not in str(refused.value)


@pytest.mark.parametrize("host", ["127.0.0.1:8080", "localhost", "[::1]:8080"])
def test_load_endpoints_allows_authorization_to_loopback(host: str, tmp_path: Path) -> None:
    path = tmp_path / "notify.yaml"
    path.write_text(f"chat: {{url: 'http://{host}/hook', authorizationFile: /etc/authorization}}")
    assert load_endpoints(str(path))["chat"].authorization_file == "/etc/authorization"


async def test_notifier_failure_names_endpoint_whose_task_ended(receiver: Receiver) -> None:
    class BrokenRandom(Random):
        def uniform(self, _a: float, _b: float) -> float:
            raise ZeroDivisionError("no jitter")

    receiver.answers = [503]
    notifier = Notifier({"chat": Endpoint(receiver.url)}, SystemClock(), BrokenRandom(), CollectorRegistry())
    async with notifier.running():
        assert notifier.failure() is None
        notifier.send("chat", NOTICE)
        assert await eventually(lambda: notifier.failure() is not None)
        assert notifier.failure() == "notify-chat ended: ZeroDivisionError('no jitter')"


def test_load_endpoints_names_missing_file(tmp_path: Path) -> None:
    with pytest.raises(BadEndpoints, match="No such file"):
        load_endpoints(str(tmp_path / "none"))


async def test_notifier_stops_during_timeout(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(notifier_module, "TIMEOUT", 0.2)

    async def say_nothing(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.closing(writer):
            await reader.read()  # until they go away, or the test ends

    async def whole(url: str) -> None:
        notifier, _ = a_notifier(SystemClock(), chat=Endpoint(url))
        async with notifier.running():
            notifier.send("chat", NOTICE)
            await asyncio.sleep(0.1)
            time.sleep(0.3)  # noqa: ASYNC251 - a loop that is held up: time is over, and nobody has noticed yet
            raise RuntimeError("somebody else has failed")

    async with await asyncio.start_server(say_nothing, "127.0.0.1", 0) as silent:
        ending = asyncio.create_task(whole(f"http://127.0.0.1:{silent.sockets[0].getsockname()[1]}/"))
        ended, _ = await asyncio.wait((ending,), timeout=10)
        ending.cancel()
        with pytest.raises(RuntimeError, match="somebody else"):
            await ending
    assert ended


ABOUT = Regarding(Ref(Kind("vitistack.io", "Machine", "machines"), Key("shop", "db")), "vitistack.io/v1alpha1", "7f3")


def test_notification_is_a_cloud_event_about_an_object() -> None:
    def made(episode: str) -> Notification:
        return notification(ABOUT, "machine.unplaced", "No cluster", episode=("a", episode), time=NOTICE.time, data={})

    one = made("b")
    assert one.type == "io.vitistack.machine.unplaced"
    assert one.source == "/apis/vitistack.io/v1alpha1/namespaces/shop/machines/db"
    assert (one.subject, one.text) == ("shop/db", "No cluster")
    assert one.id == hashlib.blake2b(b"7f3\0a\0b", digest_size=16).hexdigest()
    assert made("b").id == one.id != made("c").id


def test_notification_about_a_core_object_names_the_core_group() -> None:
    node = Regarding(Ref(Kind("", "Node", "nodes"), Key("", "one")), "v1", "1")
    one = notification(node, "node.full", "Full", episode=(), time=NOTICE.time, data={})
    assert (one.type, one.source) == ("io.k8s.node.full", "/api/v1/nodes/one")


async def test_manager_sends_warning_events_to_the_endpoint(
    control_plane: ControlPlane, admin: Client, namespace: str, receiver: Receiver
) -> None:
    async def record(tools: Toolbox, key: Key) -> Outcome:
        regarding = Regarding(Ref(CONFIG_MAP, key), "v1", "7f3")
        for severity in ("Normal", "Warning"):
            tools.recorder.once(Occurrence(regarding, severity, f"{severity}Found", "Look", "it is torn", "1"))
        return Done()

    await admin.create(a_paper(namespace, "one"))
    async with running(control_plane, a_watcher(namespace, record), endpoint=Endpoint(receiver.url)):
        assert await eventually(lambda: len(receiver.got) > 0)
    [(_, sent)] = receiver.got
    assert sent["type"] == "io.k8s.configmap.warningfound"
    assert sent["subject"] == f"{namespace}/one"
    assert sent["data"] == {
        "text": f"ConfigMap {namespace}/one: WarningFound. it is torn",
        "reason": "WarningFound",
        "action": "Look",
        "severity": "Warning",
        "controller": "watcher",
        "state": "open",
    }
