"""A small HTTP server that speaks the query API of Prometheus.

It is a fake because a real one takes minutes to build and seconds to start, and because no real one can be made to
answer as an opponent would. `tests/stress/test_prometheus_gates.py` asks a real one the same questions.
"""

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

from aiohttp import web

from tests.servers import serving


def vector(*metrics: dict[str, str]) -> dict[str, Any]:
    result = [{"metric": metric, "value": [1.0, "1"]} for metric in metrics]
    return {"status": "success", "data": {"resultType": "vector", "result": result}}


class FakePrometheus:
    """Answers every query as it is told, and keeps what it was asked."""

    def __init__(self) -> None:
        self.url = ""
        self.answer: Any = vector()
        self.handler: Callable[[web.Request], Awaitable[web.StreamResponse]] | None = None
        self.queries: list[str] = []
        self.authorizations: list[str | None] = []

    async def take(self, request: web.Request) -> web.StreamResponse:
        assert request.path == "/prefix/api/v1/query"
        self.queries.append(request.query["query"])
        self.authorizations.append(request.headers.get("Authorization"))
        return await self.handler(request) if self.handler else web.json_response(self.answer)


@asynccontextmanager
async def a_fake_prometheus(trust: ssl.SSLContext | None = None) -> AsyncIterator[FakePrometheus]:
    fake = FakePrometheus()
    application = web.Application()
    application.router.add_get("/{any:.*}", fake.take)
    async with serving(web.AppRunner(application, shutdown_timeout=0.1), trust) as (port,):
        fake.url = f"{'https' if trust else 'http'}://localhost:{port}/prefix/"
        yield fake


async def never(_: web.Request) -> web.StreamResponse:
    await asyncio.Event().wait()
    raise AssertionError


async def endless(request: web.Request) -> web.StreamResponse:
    response = web.StreamResponse()
    await response.prepare(request)
    while True:
        await response.write(b" " * 65536)
