import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import replace
from typing import Any

import msgspec
import pytest
from aiohttp import web
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.clients import a_client
from tests.eventually import eventually
from tests.gateway import Gateway, a_status, no_streaming_list
from tests.kube.watches import Followed, followed
from tests.proxy import FaultProxy
from tests.widgets import V1, WIDGET, Widget, a_widget, the_widget
from virt_steward.kube.answers import Lines
from virt_steward.kube.client import Client, Reader, Selection
from virt_steward.kube.connection import Request
from virt_steward.kube.errors import (
    Expired,
    Invalid,
    InvalidAnswer,
    NotServed,
    ServerUnreachable,
    TooManyRequests,
)
from virt_steward.kube.watch import (
    MAX_DEPTH,
    Trouble,
    Unreadable,
    Watch,
    projection,
    shallow,
)
from virt_steward.objects.meta import Existing
from virt_steward_demo.local.controlplane import ControlPlane


@pytest.fixture(params=["a streaming list", "a paged list"])
async def reader(
    request: pytest.FixtureRequest, gateway: Gateway, control_plane: ControlPlane
) -> AsyncIterator[Reader]:
    if request.param == "a paged list":
        gateway.intercept = no_streaming_list
    async with a_client(control_plane, server=gateway.server) as client:
        yield client


async def test_watch_lists_first_then_follows(reader: Reader, admin: Client, widgets: str) -> None:
    for name in ("one", "two"):
        await admin.create(a_widget(widgets, name))
    async with followed(reader, widgets) as events:
        assert (await events.until("Synced"))[-4:] == ["Reset", "put one", "put two", "Synced"]
        await admin.merge_patch(the_widget(widgets), {"spec": {"size": 2}})
        assert await events.until("put one") == ["put one"]
        await admin.delete(the_widget(widgets))
        await admin.create(a_widget(widgets, "three"))
        assert await events.until("put three") == ["gone one", "put three"]


async def test_watch_syncs_empty_selection(reader: Reader, widgets: str) -> None:
    async with followed(reader, widgets) as events:
        assert (await events.until("Synced"))[-2:] == ["Reset", "Synced"]


async def test_watch_falls_back_to_paged_lists(gateway: Gateway, control_plane: ControlPlane, widgets: str) -> None:
    gateway.intercept = no_streaming_list
    async with a_client(control_plane, server=gateway.server) as client, followed(client, widgets) as events:
        assert await events.until("Synced") == ["Reset", Invalid.__name__, "Reset", "Synced"]
    streams = [request for request in gateway.requests if "sendInitialEvents" in request.query]
    assert len(streams) == 1


async def test_watch_resumes_broken_stream(
    proxy: FaultProxy, control_plane: ControlPlane, admin: Client, widgets: str
) -> None:
    for name in ("one", "two"):
        await admin.create(a_widget(widgets, name))
    async with a_client(control_plane, server=proxy.server) as client, followed(client, widgets) as events:
        await events.until("Synced")
        await proxy.refuse()
        await proxy.cut()
        await admin.delete(the_widget(widgets, "two"))
        await admin.create(a_widget(widgets, "three"))
        assert await events.until(ServerUnreachable.__name__) == [ServerUnreachable.__name__]
        await proxy.accept()
        told = await events.until("put three")
        assert [word for word in told if word != ServerUnreachable.__name__] == ["Synced", "gone two", "put three"]


async def test_watch_lists_again_after_expiry(
    gateway: Gateway, control_plane: ControlPlane, admin: Client, widgets: str
) -> None:
    async def long_ago(request: web.BaseRequest) -> web.StreamResponse | None:
        """Ask the real server for a past that it has forgotten."""
        return await gateway.forward(request, resourceVersion="1") if "resourceVersion" in request.query else None

    async def ended_after_sync(request: web.BaseRequest) -> web.StreamResponse | None:
        if "sendInitialEvents" not in request.query:
            return None
        return await gateway.forward(request, timeoutSeconds="1")

    await admin.create(a_widget(widgets))
    gateway.intercept = ended_after_sync
    async with a_client(control_plane, server=gateway.server) as client, followed(client, widgets) as events:
        await events.until("Synced")
        gateway.intercept = long_ago
        await admin.delete(the_widget(widgets))
        told = await events.until(Expired.__name__)
        assert told[-2:] == ["Synced", Expired.__name__]
        assert await events.until("Synced") == ["Reset", "Synced"]


async def ended_at_once(_gateway: Gateway, request: web.BaseRequest) -> web.StreamResponse:
    response = web.StreamResponse()
    await response.prepare(request)
    return response


async def ended_after_a_word(_gateway: Gateway, request: web.BaseRequest) -> web.StreamResponse:
    response = await ended_at_once(_gateway, request)
    metadata = {"resourceVersion": "7", "annotations": {"k8s.io/initial-events-end": "true"}}
    await response.write(json.dumps({"type": "BOOKMARK", "object": {"metadata": metadata}}).encode() + b"\n")
    return response


async def expired_after_a_word(gateway: Gateway, request: web.BaseRequest) -> web.StreamResponse:
    response = await ended_after_a_word(gateway, request)
    await response.write(json.dumps({"type": "ERROR", "object": {"code": 410}}).encode() + b"\n")
    return response


async def cut_after_a_word(gateway: Gateway, request: web.BaseRequest) -> web.StreamResponse:
    response = await ended_after_a_word(gateway, request)
    assert request.transport is not None
    request.transport.close()
    return response


async def refused(_gateway: Gateway, _request: web.BaseRequest) -> web.StreamResponse:
    return a_status(503, "ServiceUnavailable")


@pytest.mark.parametrize(
    "misdeed", [ended_at_once, ended_after_a_word, expired_after_a_word, cut_after_a_word, refused]
)
async def test_watch_backs_off_from_short_streams(
    misdeed: Callable[[Gateway, web.BaseRequest], Awaitable[web.StreamResponse]],
    gateway: Gateway,
    control_plane: ControlPlane,
    widgets: str,
) -> None:
    async def intercept(request: web.BaseRequest) -> web.StreamResponse | None:
        return await misdeed(gateway, request) if "watch" in request.query else None

    def watches() -> int:
        return sum("watch" in request.query for request in gateway.requests)

    gateway.intercept = intercept
    async with a_client(control_plane, server=gateway.server) as client, followed(client, widgets) as events:
        reading = asyncio.create_task(events.until("the end of time"))
        assert await eventually(lambda: watches() > 0)
        await asyncio.wait((reading,), timeout=0.5)
        assert not reading.done()
        reading.cancel()
        await asyncio.gather(reading, return_exceptions=True)
    assert watches() <= 6


async def test_watch_honours_retry_after(gateway: Gateway, control_plane: ControlPlane, widgets: str) -> None:
    async def busy(request: web.BaseRequest) -> web.StreamResponse | None:
        if "watch" not in request.query:
            return None
        return a_status(429, "TooManyRequests", retryAfterSeconds=77)

    gateway.intercept = busy
    async with a_client(control_plane, server=gateway.server) as client, followed(client, widgets) as events:
        await events.until(TooManyRequests.__name__)
        assert isinstance(events.last, Trouble)
        assert events.last.delay == 77


async def test_watch_survives_invalid_data(
    gateway: Gateway, control_plane: ControlPlane, admin: Client, widgets: str
) -> None:
    async def garbled(request: web.BaseRequest) -> web.StreamResponse | None:
        if "watch" not in request.query:
            return None
        gateway.intercept = lambda _: asyncio.sleep(0)
        return web.Response(body=b'{"type": "ADDED", "object": {"meta\n<html>\n')

    await admin.create(a_widget(widgets))
    gateway.intercept = garbled
    async with a_client(control_plane, server=gateway.server) as client, followed(client, widgets) as events:
        expected = ["Reset", InvalidAnswer.__name__, "Reset", "put one", "Synced"]
        assert await events.until("Synced") == expected


async def test_watch_ends_when_kind_is_not_served(admin: Client, widgets: str) -> None:
    resource = replace(await admin.discovery.resource(WIDGET), version="v7")
    watch = Watch(admin, WIDGET, projection(Widget), selection=Selection(widgets))
    with pytest.raises(NotServed):
        await Followed(watch.events(resource)).until("Synced")


async def test_watch_reports_unreadable_object(reader: Reader, admin: Client, widgets: str) -> None:
    await admin.create(a_widget(widgets, "bad", size="large"))
    await admin.create(a_widget(widgets, "good", size=1))
    async with followed(reader, widgets) as events:
        assert (await events.until("Synced"))[-3:] == ["unreadable bad", "put good", "Synced"]
        await admin.merge_patch(the_widget(widgets, "bad"), {"spec": {"size": "huge"}})
        await events.until("unreadable bad")
        assert isinstance(events.last, Unreadable)
        assert "`int`" in events.last.why
        assert "spec.size" in events.last.why
        await admin.merge_patch(the_widget(widgets, "bad"), {"spec": {"size": 3}})
        assert await events.until("put bad") == ["put bad"]


async def test_watch_reports_deeply_nested_object(admin: Client, widgets: str) -> None:
    async with followed(admin, widgets) as events:
        await events.until("Synced")
        await _create_deep(admin, widgets, "deep", 1500)
        await admin.create(a_widget(widgets, "good"))
        assert await events.until("put good") == ["unreadable deep", "put good"]
        await admin.delete(the_widget(widgets, "deep"))
        assert await events.until("gone deep") == ["gone deep"]


async def _create_deep(client: Client, namespace: str, name: str, depth: int) -> None:
    """By raw text: what encodes our objects cannot go that deep either."""
    head = json.dumps({**a_widget(namespace, name), "spec": None}).removesuffix("null}")
    body = head + '{"a":' * depth + "1" + "}" * depth + "}"
    path = f"/apis/{V1}/namespaces/{namespace}/widgets"
    request = Request(
        "create", "POST", path, "create", headers={"Content-Type": "application/json"}, body=body.encode()
    )
    await client.connection.send(request)


async def test_watch_requests_metadata_only(reader: Reader, admin: Client, widgets: str) -> None:
    sent: list[bytes] = []

    def decode(raw: bytes) -> Existing:
        sent.append(bytes(raw))
        return msgspec.json.decode(raw, type=Existing)

    await admin.create(a_widget(widgets, size=1))
    async with followed(reader, widgets, decode, metadata_only=True) as events:
        await events.until("Synced")
        await admin.merge_patch(the_widget(widgets), {"spec": {"size": 2}})
        await events.until("put one")
    assert len(sent) == 2
    assert not any(b'"spec":' in raw for raw in sent)


async def test_watch_selects_one_object(reader: Reader, admin: Client, widgets: str) -> None:
    for name in ("one", "two"):
        await admin.create(a_widget(widgets, name))
    async with followed(reader, widgets, fields="metadata.name=two") as events:
        assert (await events.until("Synced"))[-3:] == ["Reset", "put two", "Synced"]
        await admin.delete(the_widget(widgets, "one"))
        await admin.delete(the_widget(widgets, "two"))
        assert await events.until("gone two") == ["gone two"]


async def test_watch_reports_unselected_object_as_gone(reader: Reader, admin: Client, widgets: str) -> None:
    await admin.create(a_widget(widgets, labels={"tier": "a"}))
    async with followed(reader, widgets, labels="tier=a") as events:
        await events.until("Synced")
        await admin.merge_patch(the_widget(widgets), {"metadata": {"labels": {"tier": "b"}}})
        assert await events.until("gone one") == ["gone one"]


@given(st.lists(st.binary()), st.data())
def test_lines_are_independent_of_chunks(lines: list[bytes], data: st.DataObject) -> None:
    whole = [line for text in lines for line in text.split(b"\n") if line]
    text = b"".join(line + b"\n" for line in whole)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=8)))
    splitter = Lines(len(text), "watch")
    chunks = [text[start:end] for start, end in zip([0, *cuts], [*cuts, len(text)], strict=True)]
    assert [line for chunk in chunks for line in splitter.feed(chunk)] == whole


@settings(max_examples=50)
@given(
    st.recursive(
        st.none() | st.integers() | st.text(alphabet='{}[]"\\a'),
        lambda children: (
            st.lists(children, max_size=3) | st.dictionaries(st.text(alphabet='{"\\'), children, max_size=3)
        ),
    ),
    st.integers(0, 2 * MAX_DEPTH),
)
def test_shallow_removes_only_deep_values(inner: Any, depth: int) -> None:
    for _ in range(depth):
        inner = [inner, {}]
    text = json.dumps({"before": inner, "after": "}]"})
    found = json.loads(shallow(text.encode()))
    assert found == _cut(json.loads(text), MAX_DEPTH)


def _cut(value: Any, levels: int) -> Any:
    if isinstance(value, dict | list) and levels == 0:
        return None
    match value:
        case dict():
            return {key: _cut(each, levels - 1) for key, each in value.items()}
        case list():
            return [_cut(each, levels - 1) for each in value]
        case _:
            return value
