import asyncio
import contextlib
import datetime as dt
import gc
import json
import sys
import time
import warnings
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from tests.audit import AuditLog
from tests.clients import a_client
from tests.eventually import eventually
from tests.gateway import Gateway, a_status
from tests.hostile import a_hostile_member
from tests.kube.certificates import an_authority
from tests.kube.kubeconfigs import a_kubeconfig, b64, written
from tests.proxy import FaultProxy
from tests.widgets import V1, a_widget, the_widget
from virt_steward.kube.client import Caller, Client
from virt_steward.kube.connection import Connection, ConnectionPool, Request, unobserved
from virt_steward.kube.discovery import Discovery
from virt_steward.kube.errors import NotLeading, ServerUnreachable, TimedOut, TooManyRequests, Unauthorized, Untrusted
from virt_steward.kube.kubeconfig import load_from_bytes, load_kubeconfig
from virt_steward_demo.local.controlplane import ControlPlane, ReservedPort

VERSION = Request("get", "GET", "/version", what="get /version")
PATIENCE = 20.0


@asynccontextmanager
async def connected(config: str | Path) -> AsyncIterator[Connection]:
    connection = Connection(load_kubeconfig(str(config), env={}), user_agent="tests", observe=unobserved)
    try:
        yield connection
    finally:
        await connection.close()


def a_config(control_plane: ControlPlane, folder: Path, *, user: dict[str, Any], **cluster: str) -> str:
    where = {"server": control_plane.server, "certificate-authority-data": b64(control_plane.authority.certificate)}
    return written(folder / "config", a_kubeconfig(user=user, cluster={**where, **cluster}))


def as_caller(client: Client, caller: Caller) -> Client:
    return Client(client.connection, client.discovery, caller)


class Lease:
    """A permit that lasts for so many questions."""

    def __init__(self, *answers: float) -> None:
        self._answers = list(answers)

    def remaining(self) -> float:
        if not self._answers:
            raise NotLeading("the lease is lost")
        return self._answers.pop(0)


async def test_watches_do_not_delay_requests_or_lease(admin: Client, widgets: str) -> None:
    await admin.create(a_widget(widgets))
    watch = Request(
        "watch", "GET", f"/apis/{V1}/widgets", what="watch", query={"watch": "true"}, pool=ConnectionPool.WATCHES
    )
    async with AsyncExitStack() as watches:
        streams = (watches.enter_async_context(admin.connection.stream(watch, silence=60)) for _ in range(60))
        async with asyncio.timeout(2 * PATIENCE):
            await asyncio.gather(*streams)
        for size, pool in enumerate((ConnectionPool.REQUESTS, ConnectionPool.LEASE)):
            client = as_caller(admin, Caller(pool=pool, timeout=PATIENCE))
            patched = await client.merge_patch(the_widget(widgets), {"spec": {"size": size}})
            assert patched["spec"] == {"size": size}


async def test_slow_requests_do_not_delay_lease(proxy: FaultProxy, control_plane: ControlPlane) -> None:
    async with a_client(control_plane, server=proxy.server) as client:
        proxy.freeze()
        slow = [asyncio.ensure_future(client.connection.send(VERSION)) for _ in range(20)]
        assert await eventually(lambda: proxy.accepted == ConnectionPool.REQUESTS.value)
        lease = Request("get", "GET", "/version", what="renew", pool=ConnectionPool.LEASE)
        renewals = [asyncio.ensure_future(client.connection.send(lease)) for _ in range(3)]
        assert await eventually(lambda: proxy.accepted == ConnectionPool.REQUESTS.value + len(renewals))
        proxy.thaw()
        assert {answer.status for answer in await asyncio.gather(*renewals, *slow)} == {200}


async def test_send_times_out_on_frozen_server(proxy: FaultProxy, control_plane: ControlPlane) -> None:
    async with a_client(control_plane, server=proxy.server) as client:
        await client.raw("/version")
        proxy.freeze()
        started = time.monotonic()
        with pytest.raises(TimedOut, match=rf"get /version: {proxy.server} unreachable: timed out after 0.3 s"):
            await as_caller(client, Caller(timeout=0.3)).raw("/version")
        assert 0.3 <= time.monotonic() - started < PATIENCE
        await proxy.cut()
        proxy.thaw()
        await client.raw("/version")


async def test_send_reports_refused_connection_at_once(control_plane: ControlPlane) -> None:
    port = ReservedPort()
    try:
        nowhere = f"https://127.0.0.1:{port.number}"
        async with asyncio.timeout(PATIENCE), a_client(control_plane, server=nowhere) as client:
            with pytest.raises(ServerUnreachable, match=f"{nowhere} unreachable: Connection refused"):
                await client.raw("/version")
    finally:
        port.release()


async def test_send_distinguishes_tls_failure_from_untrusted(gateway: Gateway, control_plane: ControlPlane) -> None:
    async with a_client(control_plane, server=gateway.server.replace("http:", "https:")) as client:
        with pytest.raises(ServerUnreachable, match="TLS handshake failed") as error:
            await client.raw("/version")
    assert type(error.value) is ServerUnreachable


async def test_send_hides_proxy_password(gateway: Gateway, control_plane: ControlPlane) -> None:
    async def who_are_you(_request: web.BaseRequest) -> web.StreamResponse:
        return web.Response(status=407)

    gateway.intercept = who_are_you
    proxied = gateway.server.replace("http://", "http://bob:S3CRET@")
    text = control_plane.kubeconfig.read_text().replace("server:", f"proxy-url: {proxied}\n    server:")
    cluster = load_from_bytes(text.encode(), source="tests", trusted=True, env={})
    connection = Connection(cluster, user_agent="tests", observe=unobserved)
    try:
        with pytest.raises(ServerUnreachable, match="the proxy answered 407") as error:
            await Client(connection, Discovery(connection)).raw("/version")
        assert "S3CRET" not in str(error.value)
    finally:
        await connection.close()


async def test_stream_times_out_on_silent_proxy(control_plane: ControlPlane) -> None:
    async def say_nothing(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.closing(writer):
            await reader.read()  # until they go away, or the test ends

    async with await asyncio.start_server(say_nothing, "127.0.0.1", 0) as silent:
        proxied = f"http://127.0.0.1:{silent.sockets[0].getsockname()[1]}"
        text = control_plane.kubeconfig.read_text().replace("server:", f"proxy-url: {proxied}\n    server:")
        cluster = load_from_bytes(text.encode(), source="tests", trusted=True, env={})
        connection = Connection(cluster, user_agent="tests", observe=unobserved)
        try:
            with pytest.raises(TimedOut, match="unreachable: timed out after"):
                await connection.stream(VERSION, silence=0.3).__aenter__()
        finally:
            await connection.close()


async def test_send_refuses_after_close(admin: Client) -> None:
    connection = Connection(admin.connection.cluster, user_agent="tests", observe=unobserved)
    assert (await connection.send(VERSION)).status == 200
    await connection.close()
    with pytest.raises(ServerUnreachable, match="is closed"):
        await connection.send(VERSION)


async def test_send_reports_cut_answer_as_unreachable(gateway: Gateway, control_plane: ControlPlane) -> None:
    async def cut(request: web.BaseRequest) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Length": "100"})
        await response.prepare(request)
        await response.write(b"{")
        assert request.transport is not None
        request.transport.abort()
        return response

    gateway.intercept = cut
    async with a_client(control_plane, server=gateway.server) as client:
        with pytest.raises(ServerUnreachable):
            await client.raw("/version")


async def test_send_rereads_replaced_authority(control_plane: ControlPlane, tmp_path: Path) -> None:
    authority = tmp_path / "ca.crt"
    authority.write_bytes(an_authority().chain)
    cluster = {"server": control_plane.server, "certificate-authority": str(authority)}
    config = written(tmp_path / "config", a_kubeconfig(user={"token": control_plane.token}, cluster=cluster))
    async with connected(config) as connection:
        with pytest.raises(Untrusted) as error:
            await connection.send(VERSION)
        assert str(error.value).startswith(
            f"get /version: the certificate of {control_plane.server} is not trusted (unable to get local issuer"
        )
        assert str(error.value).endswith(f"check certificate authority of cluster here in {config}")
        assert str(error.value).isprintable()
        authority.write_bytes(control_plane.authority.certificate)
        assert (await connection.send(VERSION)).status == 200


async def test_send_rereads_rotated_token_on_401(control_plane: ControlPlane, tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("x" * len(control_plane.token))
    async with connected(a_config(control_plane, tmp_path, user={"tokenFile": str(token)})) as connection:
        with pytest.raises(Unauthorized) as error:
            await connection.send(VERSION)
        assert str(error.value).endswith(
            f"token in {token} of user admin in {tmp_path}/config was not accepted: renew it"
        )
        token.write_text(control_plane.token)
        assert (await connection.send(VERSION)).status == 200


async def test_send_reruns_exec_plugin_on_401(control_plane: ControlPlane, tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    credential = {"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential"}
    answers = [json.dumps({**credential, "status": {"token": token}}) for token in ("revoked", control_plane.token)]
    (tmp_path / "login.py").write_text(
        f"from pathlib import Path\n"
        f"runs = Path({str(runs)!r})\n"
        f"runs.open('a').write('x')\n"
        f"print({answers!r}[len(runs.read_text()) > 1])\n"
    )
    spec = {"command": sys.executable, "args": [str(tmp_path / "login.py")], "interactiveMode": "Never"}
    user = {"exec": {**spec, "apiVersion": credential["apiVersion"]}}
    async with connected(a_config(control_plane, tmp_path, user=user)) as connection:
        assert (await connection.send(VERSION)).status == 200
        assert (await connection.send(VERSION)).status == 200
    assert len(runs.read_text()) == 2


async def test_send_names_expired_client_certificate(control_plane: ControlPlane, tmp_path: Path) -> None:
    for name, lifetime in (("fresh", dt.timedelta(hours=1)), ("expired", dt.timedelta(days=-2))):
        identity = control_plane.authority.client("someone", ["system:masters"], lifetime=lifetime)
        (tmp_path / f"{name}.crt").write_bytes(identity.certificate)
        (tmp_path / f"{name}.key").write_bytes(identity.key)
    chain, key = tmp_path / "client.crt", tmp_path / "client.key"
    _link(chain, key, to="expired")
    user = {"client-certificate": str(chain), "client-key": str(key)}
    async with connected(a_config(control_plane, tmp_path, user=user)) as connection:
        with pytest.raises(Unauthorized) as error:
            await connection.send(VERSION)
        day = dt.datetime.now(dt.UTC) - dt.timedelta(days=2)
        assert f"client certificate in {chain} of user admin" in str(error.value)
        assert f"expired {day:%Y-%m-%d}" in str(error.value)
        _link(chain, key, to="fresh")
        assert (await connection.send(VERSION)).status == 200


def _link(chain: Path, key: Path, *, to: str) -> None:
    for path in (chain, key):
        path.unlink(missing_ok=True)
        path.symlink_to(path.with_stem(to))


@pytest.mark.parametrize("headers", [{"Retry-After": "1"}, {}], ids=["as long as it says", "at its own pace"])
async def test_send_retries_after_429(headers: dict[str, str], gateway: Gateway, control_plane: ControlPlane) -> None:
    # The real server answers 429 only under a load that no test should make.
    async def busy_once(_: web.BaseRequest) -> web.StreamResponse | None:
        busy = a_status(429, "TooManyRequests")
        busy.headers.update(headers)
        return busy if len(gateway.requests) == 1 else None

    gateway.intercept = busy_once
    async with a_client(control_plane, server=gateway.server) as client:
        started = time.monotonic()
        await client.raw("/version")
    assert len(gateway.requests) == 2
    assert time.monotonic() - started >= float(headers.get("Retry-After", "0.1"))


async def test_send_limits_retries_by_timeout(gateway: Gateway, control_plane: ControlPlane) -> None:
    async def busy(_: web.BaseRequest) -> web.StreamResponse:
        answer = a_status(429, "TooManyRequests")
        answer.headers["Retry-After"] = "3600"
        return answer

    gateway.intercept = busy
    async with a_client(control_plane, server=gateway.server) as client:
        with pytest.raises(TooManyRequests) as error:
            await client.raw("/version")
    assert error.value.retry_after == 3600
    assert len(gateway.requests) == 1


@pytest.mark.parametrize(
    "lease", [pytest.param(Lease(), id="before"), pytest.param(Lease(10.0), id="in the moment of sending")]
)
async def test_permit_stops_write_after_lost_lease(
    lease: Lease, admin: Client, widgets: str, audit_log: AuditLog
) -> None:
    await admin.create(a_widget(widgets, size=1))
    mark = audit_log.mark()
    with pytest.raises(NotLeading, match="the lease is lost"):
        await as_caller(admin, Caller(permit=lease)).merge_patch(the_widget(widgets), {"spec": {"size": 2}})
    assert (await admin.get(the_widget(widgets)))["spec"] == {"size": 1}
    verbs = [request.verb for request in audit_log.since(mark) if request.namespace == widgets]
    assert verbs == ["get"]


async def test_permit_stops_retry_after_lost_lease(
    gateway: Gateway, control_plane: ControlPlane, admin: Client, widgets: str
) -> None:
    async def busy(request: web.BaseRequest) -> web.StreamResponse | None:
        return a_status(429, "TooManyRequests") if request.method == "PATCH" else None

    await admin.create(a_widget(widgets, size=1))
    gateway.intercept = busy
    async with a_client(control_plane, server=gateway.server) as client:
        with pytest.raises(NotLeading):
            await as_caller(client, Caller(permit=Lease(10.0, 10.0))).merge_patch(
                the_widget(widgets), {"spec": {"size": 2}}
            )
    assert [request.method for request in gateway.requests].count("PATCH") == 1


async def test_permit_limits_write_timeout(
    proxy: FaultProxy, control_plane: ControlPlane, admin: Client, widgets: str
) -> None:
    await admin.create(a_widget(widgets))
    async with a_client(control_plane, server=proxy.server) as client:
        await client.discovery.refresh()
        proxy.freeze()
        started = time.monotonic()
        with pytest.raises(TimedOut):
            await as_caller(client, Caller(permit=Lease(0.3, 0.3))).merge_patch(the_widget(widgets), {"spec": {}})
        assert time.monotonic() - started < PATIENCE
        await proxy.cut()


async def test_dry_run_needs_no_permit(admin: Client, widgets: str) -> None:
    client = as_caller(admin, Caller(permit=Lease()))
    preview = await client.apply(a_widget(widgets, size=1), manager="me", dry_run=True)
    assert preview.object["spec"] == {"size": 1}


async def test_send_sets_user_agent(admin: Client, namespace: str, audit_log: AuditLog) -> None:
    mark = audit_log.mark()
    await as_caller(admin, Caller(agent="virt-steward/approver")).raw(f"/api/v1/namespaces/{namespace}")
    await admin.raw(f"/api/v1/namespaces/{namespace}")
    agents = [request.user_agent for request in audit_log.since(mark) if request.name == namespace]
    assert agents == ["virt-steward/approver", "tests"]


async def test_send_observes_each_attempt(control_plane: ControlPlane, proxy: FaultProxy, widgets: str) -> None:
    seen: list[tuple[str, str]] = []
    config = control_plane.kubeconfig.read_text().replace(control_plane.server, proxy.server)
    cluster = load_from_bytes(config.encode(), source="tests", trusted=True, env={})
    connection = Connection(cluster, user_agent="tests", observe=lambda verb, code, _: seen.append((verb, code)))
    client = Client(connection, Discovery(connection))
    try:
        await client.apply(a_widget(widgets), manager="me")
        await proxy.refuse()
        await proxy.cut()
        with pytest.raises(ServerUnreachable):
            await client.get(the_widget(widgets))
    finally:
        await connection.close()
    assert seen == [("discover", "200"), ("discover", "200"), ("apply", "201"), ("get", "none")]


async def test_close_leaves_no_socket_open(proxy: FaultProxy, control_plane: ControlPlane) -> None:
    async with a_client(control_plane, server=proxy.server) as client:
        await asyncio.gather(*(client.raw("/version") for _ in range(5)))
        watch = Request(
            "watch", "GET", "/api/v1/pods", what="watch", query={"watch": "true"}, pool=ConnectionPool.WATCHES
        )
        async with client.connection.stream(watch, silence=60):
            assert proxy.open_connections == 6
    assert await eventually(lambda: proxy.open_connections == 0)


def test_cancelled_request_leaves_no_socket_open(control_plane: ControlPlane) -> None:
    """Whichever turn of the event loop it is cancelled in: connecting, the TLS handshake, or waiting for the answer."""

    async def cancelled_after(turns: int) -> None:
        async with a_client(control_plane, server=server.server) as client:
            sending = asyncio.create_task(client.raw("/version"))
            for _ in range(turns):
                await asyncio.sleep(0)
            sending.cancel()
            await asyncio.wait((sending,))

    with a_hostile_member(control_plane) as server, warnings.catch_warnings(record=True) as unclosed:
        warnings.simplefilter("always")
        for turns in [*range(20)] * 10:
            asyncio.run(cancelled_after(turns))
        gc.collect()
    assert [str(one.message) for one in unclosed] == []
