"""Asks a Prometheus, or what speaks its API such as Thanos, whether a query returns anything.

What it answers is limited before it is parsed, and nothing but a plain, complete success counts: no redirect, no
warning that results are missing, no other kind of result.
"""

from __future__ import annotations

import asyncio
import ssl
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import aiohttp
import msgspec
from yarl import URL

from virt_steward.kube.errors import one_line
from virt_steward.objects.durations import parse_duration
from virt_steward.objects.errors import UserError
from virt_steward.runtime.addresses import is_loopback

if TYPE_CHECKING:
    from virt_steward.holds.gate_settings import PrometheusSettings

LONGEST_ANSWER = 1024 * 1024
"""Bytes."""
LONGEST_TOKEN = 64 * 1024
SHOWN = 3
"""Series that are named as evidence."""
LONGEST_SERIES = 120
LONGEST_ERROR = 200


class QueryFailed(UserError):
    """There is no answer that counts; the text says why."""


@dataclass(frozen=True, slots=True)
class QueryResult:
    """The series that a query returned."""

    count: int
    first: tuple[str, ...]
    """The labels of some of them."""


class _QuerySeries(msgspec.Struct):
    metric: dict[str, str] = {}


class _QueryData(msgspec.Struct):
    result_type: str = msgspec.field(name="resultType", default="")
    result: msgspec.Raw = msgspec.Raw(b"null")


class _QueryAnswer(msgspec.Struct):
    status: str = ""
    data: _QueryData | None = None
    error: str = ""
    warnings: list[str] = []


def fault_of_url(settings: PrometheusSettings) -> str:
    """Why the settings cannot be used; empty if they can."""
    try:
        url = URL(settings.url)
    except ValueError:
        return "prometheus.url is invalid"
    if url.scheme not in ("https", "http") or not url.host:
        return "prometheus.url must start with https:// (or http://) and have a host"
    if url.user or url.password or url.query_string or url.fragment:
        return "prometheus.url has a password or a query: write its address alone, and use tokenFile"
    if settings.token_file and url.scheme == "http" and not is_loopback(url.host):
        return "prometheus.tokenFile would be sent unencrypted over http://: use https://"
    return ""


async def query(settings: PrometheusSettings, promql: str) -> QueryResult:
    """Run an instant query. Raises QueryFailed."""
    try:
        async with asyncio.timeout(parse_duration(settings.timeout).total_seconds()):
            status, body = await _ask(settings, promql)
    except TimeoutError:
        raise QueryFailed(f"Prometheus is unreachable: timed out after {settings.timeout}") from None
    except (aiohttp.ClientError, OSError, ValueError) as error:  # also a token that no header can have
        raise QueryFailed(one_line(f"Prometheus is unreachable: {error or type(error).__name__}")) from None
    return _result(status, body)


async def _ask(settings: PrometheusSettings, promql: str) -> tuple[int, bytes]:
    token = await asyncio.to_thread(_token, settings.token_file) if settings.token_file else ""
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    url = URL(settings.url.rstrip("/") + "/api/v1/query")
    trust = await asyncio.to_thread(_trust, settings) if url.scheme == "https" else True
    # The caller has a time limit of its own. What is compressed is not read: a small answer could become a huge one.
    unlimited = aiohttp.ClientTimeout(total=None)
    headers["Accept-Encoding"] = "identity"
    async with (
        aiohttp.ClientSession(timeout=unlimited, auto_decompress=False, cookie_jar=aiohttp.DummyCookieJar()) as session,
        session.get(url, params={"query": promql}, headers=headers, ssl=trust, allow_redirects=False) as response,
    ):
        body = bytearray()
        async for chunk in response.content.iter_chunked(64 * 1024):
            body += chunk
            if len(body) > LONGEST_ANSWER:
                raise QueryFailed(f"Prometheus answers with more than {LONGEST_ANSWER} bytes: narrow the query")
        return response.status, bytes(body)


def _token(path: str) -> str:
    with Path(path).open("rb") as file:
        return file.read(LONGEST_TOKEN).decode().strip()


def _trust(settings: PrometheusSettings) -> ssl.SSLContext:
    return ssl.create_default_context(cafile=settings.ca_file or None)


def _result(status: int, body: bytes) -> QueryResult:
    try:
        answer = msgspec.json.decode(body, type=_QueryAnswer)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        answer = None
    if status != 200 or answer is None or answer.status != "success" or answer.data is None:
        said = f": {answer.error[:LONGEST_ERROR]}" if answer and answer.error else ""
        kind = "" if answer else ", which is no answer of Prometheus"
        raise QueryFailed(one_line(f"Prometheus answers with HTTP {status}{kind}{said}"))
    if answer.warnings:
        raise QueryFailed(one_line(f"Prometheus answers incompletely: {answer.warnings[0][:LONGEST_ERROR]}"))
    if answer.data.result_type != "vector":
        kind = one_line(answer.data.result_type[:20]) or "nothing"
        raise QueryFailed(f"the query returns a {kind}, not an instant vector: compare, such as `x > 0`")
    try:
        series = msgspec.json.decode(answer.data.result, type=list[_QuerySeries])
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise QueryFailed("Prometheus answers with a result that is not a vector") from None
    return QueryResult(len(series), tuple(_labels(one.metric) for one in series[:SHOWN]))


def _labels(metric: dict[str, str]) -> str:
    """The series for people: the name of the alert or metric first, then what tells it from others."""
    name = metric.get("alertname") or metric.get("__name__") or "a series"
    left_out = {"alertname", "__name__", "alertstate", "severity"}
    labels = ", ".join(f"{key}={value}" for key, value in sorted(metric.items()) if key not in left_out)
    return one_line(f"{name} ({labels})" if labels else name)[:LONGEST_SERIES]
