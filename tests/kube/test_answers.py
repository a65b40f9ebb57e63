"""Limits of answers, by which a server cannot fill our memory."""

import gzip
import json

import msgspec
import pytest
from aiohttp import web

from tests.gateway import Gateway
from tests.turns import counted_turns
from virt_steward.kube.answers import (
    KIB,
    MIB,
    PORTION,
    AnswerLimits,
    Lines,
    count_items,
    count_resources,
    decoded_items,
    in_words,
)
from virt_steward.kube.client import Client, Reader, Selection
from virt_steward.kube.connection import Connection, unobserved
from virt_steward.kube.discovery import Discovery
from virt_steward.kube.errors import AnswerTooLong, InvalidAnswer, TooManyRequests
from virt_steward.kube.kubeconfig import load_from_bytes
from virt_steward.objects.corekinds import NODE
from virt_steward.objects.identity import Key
from virt_steward_demo.local.controlplane import ControlPlane


def a_page(items: str) -> bytes:
    return f'{{"kind": "NodeList", "items": [{items}]}}'.encode()


@pytest.mark.parametrize(
    ("body", "number"),
    [
        pytest.param(a_page(""), 0, id="none"),
        pytest.param(b'{"items": null}', 0, id="null"),
        pytest.param(a_page('{"a": [{}, {}, {}, {}]}, {}'), 2, id="only those of the list"),
        pytest.param(a_page("{},{},{}"), 3, id="as many as allowed"),
    ],
)
def test_count_items(body: bytes, number: int) -> None:
    assert count_items(body, 3, "list it") == number


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        pytest.param(a_page("{},{},{},{}"), "list it: the answer has more than 3 items", id="too many"),
        pytest.param(a_page("{}," * 9 + "}"), "list it: the answer has more than 3 items", id="before the end is read"),
        pytest.param(a_page("1,2"), "list it: invalid answer", id="no objects"),
        pytest.param(b"<html>", "list it: invalid answer", id="no JSON"),
        pytest.param(b'{"items":' * 5000, "list it: invalid answer", id="nested"),
    ],
)
def test_count_items_refuses(body: bytes, problem: str) -> None:
    with pytest.raises(InvalidAnswer, match=problem):
        count_items(body, 3, "list it")


def test_count_resources_counts_those_of_all_groups() -> None:
    group = {"versions": [{"resources": [{}, {}]}]}
    body = json.dumps({"items": [group, group]}).encode()
    assert count_resources(body, 8, "discover") == 8, "two groups, two versions, four resources"
    with pytest.raises(InvalidAnswer):
        count_resources(body, 7, "discover")


def test_lines_are_bounded() -> None:
    lines = Lines(5, "watch it")
    assert list(lines.feed(b"12345\n123")) == [b"12345"]
    assert list(lines.feed(b"45\n")) == [b"12345"]
    list(lines.feed(b"123"))
    with pytest.raises(InvalidAnswer, match="watch it: an event is longer than 5 bytes"):
        list(lines.feed(b"456"))


@pytest.mark.parametrize(("size", "words"), [(5, "5 bytes"), (64 * KIB, "64 KiB"), (6 * MIB, "6 MiB")])
def test_in_words(size: int, words: str) -> None:
    assert in_words(size) == words


@pytest.mark.parametrize(
    ("value", "selector"),
    [
        pytest.param("east", "metadata.name=east", id="plain"),
        pytest.param("a=b,c", r"metadata.name=a\=b\,c", id="operators"),
        pytest.param("a\\", "metadata.name=a" + 2 * "\\", id="backslash"),
    ],
)
def test_selection_escapes_the_name(value: str, selector: str) -> None:
    assert Selection.one(Key("", value)).fields == selector


@pytest.fixture
async def reader(control_plane: ControlPlane, gateway: Gateway) -> Reader:
    text = control_plane.kubeconfig.read_text().replace(control_plane.server, gateway.secure_server)
    cluster = load_from_bytes(text.encode(), source="tests", trusted=True, env={})
    limits = AnswerLimits(body=4 * MIB, error=KIB, items=5, pages=3, pause=1.0)
    connection = Connection(cluster, user_agent="tests", observe=unobserved, limits=limits)
    return Reader(connection, Discovery(connection))


async def test_answer_is_bounded_after_decompression(reader: Reader, gateway: Gateway) -> None:
    sent = gzip.compress(bytes(40 * MIB))

    async def bomb(request: web.BaseRequest) -> web.StreamResponse:
        status = 500 if request.path == "/readyz" else 200
        return web.Response(body=sent, status=status, headers={"Content-Encoding": "gzip"})

    gateway.intercept = bomb
    for path, limit in (("/version", "4 MiB"), ("/readyz", "1 KiB")):
        with pytest.raises(AnswerTooLong, match=f"get {path}: the answer is longer than {limit}"):
            await reader.raw(path)
    with pytest.raises(AnswerTooLong, match="longer than 2 KiB"):
        await reader.raw("/version", longest=2 * KIB)
    await reader.connection.close()


async def test_pages_and_items_are_bounded(reader: Reader, gateway: Gateway) -> None:
    items = 1

    async def endless(request: web.BaseRequest) -> web.StreamResponse | None:
        page = {"kind": "NodeList", "metadata": {"continue": "more"}, "items": [{}] * items}
        return web.json_response(page) if request.path.endswith("/nodes") else None

    gateway.intercept = endless
    reader.discovery._connection.limits = AnswerLimits()  # a real server has more kinds than five
    await reader.discovery.refresh()
    reader.connection.limits = AnswerLimits(items=5, pages=3)
    with pytest.raises(InvalidAnswer, match="list Node: the list has more than 3 pages"):
        await reader.list(NODE)
    items = 3
    with pytest.raises(InvalidAnswer, match="list Node: the answer has more than 5 items"):
        await reader.list(NODE)
    await reader.connection.close()


async def test_long_pause_is_not_waited_for(reader: Reader, gateway: Gateway) -> None:
    async def busy(_request: web.BaseRequest) -> web.StreamResponse:
        return web.Response(status=429, headers={"Retry-After": "2"})

    gateway.intercept = busy
    with pytest.raises(TooManyRequests):
        await reader.raw("/version")
    assert len(gateway.requests) == 1
    await reader.connection.close()


async def test_other_json_is_no_empty_list(gateway: Gateway, admin: Client, reader: Reader) -> None:
    async def login(request: web.BaseRequest) -> web.StreamResponse | None:
        return web.json_response({"error": "log in"}) if request.path.endswith("/nodes") else None

    gateway.intercept = login
    with pytest.raises(InvalidAnswer, match="it is not a list"):
        await Reader(reader.connection, admin.discovery).list(NODE)
    await reader.connection.close()


async def test_decoded_items_lets_others_run_after_each_portion() -> None:
    async with counted_turns() as turns:
        found = await decoded_items([msgspec.Raw(b"1")] * (3 * PORTION + 1), int, "list")
    assert len(found) == 3 * PORTION + 1
    assert turns.count == 3
