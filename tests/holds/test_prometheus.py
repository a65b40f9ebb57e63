"""Queries to Prometheus: only a complete, empty vector opens a gate."""

import gzip
import json
import ssl
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from tests.holds.fake_prometheus import FakePrometheus, a_fake_prometheus, endless, never, vector
from tests.kube.certificates import a_pair, an_authority
from virt_steward.holds.gate_settings import PrometheusSettings
from virt_steward.holds.prometheus import LONGEST_ANSWER, QueryFailed, fault_of_url, query


@pytest.fixture
async def fake() -> AsyncIterator[FakePrometheus]:
    async with a_fake_prometheus() as started:
        yield started


def settings(fake: FakePrometheus, **more: str) -> PrometheusSettings:
    return PrometheusSettings(fake.url, **{"timeout": "2s", **more})


async def test_query_counts_and_names_series(fake: FakePrometheus) -> None:
    fake.answer = vector(
        {"alertname": "EtcdDown", "severity": "critical", "namespace": "openshift-etcd"},
        {"__name__": "up"},
        {},
        {"alertname": "X"},
    )
    found = await query(settings(fake), "ALERTS")
    assert (found.count, found.first) == (4, ("EtcdDown (namespace=openshift-etcd)", "up", "a series"))
    assert (fake.queries, fake.authorizations) == (["ALERTS"], [None])


async def test_query_sends_token_of_file(fake: FakePrometheus, tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("s3cr3t\n")
    assert (await query(settings(fake, token_file=str(token)), "up")).count == 0
    assert fake.authorizations == ["Bearer s3cr3t"]


async def test_query_trusts_only_the_named_authority(tmp_path: Path) -> None:
    pair, authority = a_pair(), tmp_path / "ca.crt"
    authority.write_bytes(an_authority().chain)
    (tmp_path / "server.pem").write_bytes(pair.chain + pair.key)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "server.pem")
    async with a_fake_prometheus(context) as fake:
        assert (await query(settings(fake, ca_file=str(authority)), "up")).count == 0
        with pytest.raises(QueryFailed, match=r"unreachable.*certificate"):
            await query(settings(fake), "up")


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        ({"status": "success", "data": {"resultType": "scalar", "result": [1, "1"]}}, "returns a scalar"),
        ({"status": "success", "data": {"resultType": "matrix", "result": []}}, "returns a matrix"),
        ({"status": "success", "data": {"resultType": "vector", "result": {}}}, "not a vector"),
        ({"status": "success", "data": {"resultType": "vector"}}, "not a vector"),
        ({"status": "success"}, "HTTP 200"),
        ({"status": "error", "error": "parse\nerror"}, "HTTP 200: parse error"),
        ({**vector(), "warnings": ["store 3 is down"]}, "incompletely: store 3 is down"),
        ([], "no answer of Prometheus"),
        ("x", "no answer of Prometheus"),
    ],
)
async def test_query_refuses_anything_but_a_vector(fake: FakePrometheus, answer: Any, words: str) -> None:
    fake.answer = answer
    with pytest.raises(QueryFailed, match=words):
        await query(settings(fake), "up")


def _answering(status: int, body: bytes, **headers: str) -> Any:
    async def handler(_: web.Request) -> web.Response:
        return web.Response(status=status, body=body, headers=headers)

    return handler


@pytest.mark.parametrize(
    ("handler", "words"),
    [
        (_answering(302, b"", Location="/prefix/api/v1/query?query=up"), "HTTP 302"),
        (_answering(200, b"<html>log in</html>"), "no answer of Prometheus"),
        (_answering(200, b"[" * 100_000), "no answer of Prometheus"),
        (_answering(200, b"\xff\xfe"), "no answer of Prometheus"),
        (_answering(403, b'{"status":"error","error":"forbidden"}'), "HTTP 403: forbidden"),
        (_answering(503, json.dumps(vector()).encode()), "HTTP 503"),
        (_answering(200, b" " * (LONGEST_ANSWER + 1)), "more than 1048576 bytes"),
        (
            _answering(200, gzip.compress(json.dumps(vector()).encode()), **{"Content-Encoding": "gzip"}),
            "no answer of Prometheus",
        ),
        (endless, "more than 1048576 bytes"),
        (never, "timed out after 1s"),
    ],
    ids=["redirect", "login", "deep", "binary", "denied", "unavailable", "huge", "compressed", "endless", "slow"],
)
async def test_query_survives_hostile_answers(fake: FakePrometheus, handler: Any, words: str) -> None:
    fake.handler = handler
    with pytest.raises(QueryFailed, match=words):
        await query(settings(fake, timeout="1s"), "up")
    assert len(fake.queries) == 1  # no redirect was followed


@pytest.mark.parametrize("missing", ["token_file", "ca_file"])
async def test_query_fails_without_its_files(missing: str, tmp_path: Path) -> None:
    unused = PrometheusSettings("https://localhost:1", **{missing: str(tmp_path / "none")})
    with pytest.raises(QueryFailed, match="No such file"):
        await query(unused, "up")


@pytest.mark.parametrize(
    ("url", "token", "words"),
    [
        ("https://thanos.example:9091", "/token", ""),
        ("http://prometheus.example", "", ""),
        ("http://127.0.0.1:9090", "/token", ""),
        ("http://prometheus.example", "/token", "unencrypted"),
        ("prometheus.example", "", "must start with https://"),
        ("https://user:secret@prometheus.example", "", "password"),
        ("https://prometheus.example/?tenant=1", "", "query"),
        ("http://[", "", "invalid"),
    ],
)
def test_url_is_checked(url: str, token: str, words: str) -> None:
    fault = fault_of_url(PrometheusSettings(url, token_file=token))
    assert words in fault
    assert bool(words) == bool(fault)
    assert "secret" not in fault
