"""The HTTP servers of a running process: metrics, health, and debug pages on loopback."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import msgspec
from aiohttp.web_response import Response
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4

from virt_steward.runtime.addresses import Address, is_loopback, loopback_only
from virt_steward.runtime.debug import DebugPage, DebugReply, DebugRequest, tasks_page
from virt_steward.runtime.http_routes import REST, Routes
from virt_steward.runtime.http_server import HttpServer
from virt_steward.runtime.metrics_auth import PATH, AnyoneMayScrape, ScrapeRequest

if TYPE_CHECKING:
    from aiohttp.web_request import BaseRequest
    from aiohttp.web_response import StreamResponse

    from virt_steward.runtime.http_routes import Handler
    from virt_steward.runtime.metrics import Metrics
    from virt_steward.runtime.metrics_auth import ScrapeAuthorizer
    from virt_steward.runtime.serving_tls import ServingTls

Check = Callable[[], str | None]
"""None if it passes, else the reason."""

PAGE_TIMEOUT = 30.0
"""Seconds until a debug page times out."""


@dataclass(frozen=True, slots=True)
class Checks:
    """Checks by name, run at each request."""

    alive: Mapping[str, Check] = field(default_factory=dict)
    ready: Mapping[str, Check] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Addresses:
    """None means off."""

    metrics: Address | None
    debug: Address | None
    health: Address | None


@dataclass(frozen=True, slots=True)
class MetricsAccess:
    """How metrics are served. Probes are always plain: the kubelet has no certificate."""

    tls: ServingTls | None = None
    """None: in plain HTTP."""
    authorizer: ScrapeAuthorizer = field(default_factory=AnyoneMayScrape)


class Probes:
    """The servers for metrics, debug pages and health. `pages` are the debug pages, by path."""

    def __init__(
        self,
        addresses: Addresses,
        metrics: Metrics,
        checks: Checks,
        pages: Mapping[str, DebugPage],
        access: MetricsAccess,
    ) -> None:
        self.servers: dict[str, HttpServer] = {}
        self._tls = access.tls if addresses.metrics else None
        if addresses.metrics:
            scrapes = Routes({PATH: _metrics_handler(metrics, access.authorizer)})
            self.servers["metrics"] = HttpServer(scrapes, addresses.metrics, tls=access.tls)
        if addresses.debug:
            debug = Routes(_debug_routes({"/debug/tasks": tasks_page, **pages}))
            self.servers["debug"] = HttpServer(debug, loopback_only(addresses.debug))
        if addresses.health:
            routes = {"/healthz": _check_handler(checks.alive), "/readyz": _check_handler(checks.ready)}
            self.servers["health"] = HttpServer(Routes(routes), addresses.health)

    async def start(self) -> None:
        """Start all servers, or none: raises BadAddress."""
        if self._tls:
            await self._tls.start()
        try:
            for server in self.servers.values():
                await server.start()
        except BaseException:
            await self.stop()
            raise

    async def stop(self) -> None:
        if self._tls:
            await self._tls.stop()
        for server in self.servers.values():
            await server.stop()


def _loopback_names_only(handler: Handler) -> Handler:
    """Against DNS rebinding: a foreign name that resolves to loopback gives its pages in a browser access."""

    async def answer(request: BaseRequest, named: Mapping[str, str]) -> StreamResponse:
        host = request.headers.get("Host", "")
        name = host[1:].partition("]")[0] if host.startswith("[") else host.partition(":")[0]
        if not is_loopback(name):
            return Response(status=421, text="Debug pages are served under localhost or a loopback address only.\n")
        return await handler(request, named)

    return answer


def _metrics_handler(metrics: Metrics, authorizer: ScrapeAuthorizer) -> Handler:
    async def answer(request: BaseRequest, _: Mapping[str, str]) -> Response:
        if refused := await authorizer.refusal(_scrape_request(request)):
            headers = {"WWW-Authenticate": "Bearer"} if refused.status == 401 else {}
            return Response(status=refused.status, text=refused.text, headers=headers)
        return Response(body=metrics.exposition(), headers={"Content-Type": CONTENT_TYPE_PLAIN_0_0_4})

    return answer


def _scrape_request(request: BaseRequest) -> ScrapeRequest:
    certificate = request.transport.get_extra_info("peercert") if request.transport else None
    subject = [part for parts in (certificate or {}).get("subject", ()) for part in parts]
    name = next((value for key, value in subject if key == "commonName"), "")
    return ScrapeRequest(request.headers.get("Authorization", ""), name)


def _check_handler(checks: Mapping[str, Check]) -> Handler:
    async def answer(request: BaseRequest, _: Mapping[str, str]) -> Response:
        reasons = {name: check() for name, check in checks.items()}
        failed = [f"[-] {name}: {reason}" for name, reason in reasons.items() if reason is not None]
        passed = [f"[+] {name}" for name, reason in reasons.items() if reason is None]
        lines = [*(passed if "verbose" in request.query else ()), *failed, "failed" if failed else "ok"]
        return Response(status=503 if failed else 200, text="\n".join(lines) + "\n")

    return answer


def _debug_routes(pages: Mapping[str, DebugPage]) -> dict[str, Handler]:
    index = "".join(f"{path.replace(REST, '}')}\n" for path in sorted(pages))

    async def answer(_: BaseRequest, __: Mapping[str, str]) -> Response:
        return Response(text=index)

    handlers = {"/debug": answer, "/debug/": answer, **{path: _page_handler(page) for path, page in pages.items()}}
    return {path: _loopback_names_only(handler) for path, handler in handlers.items()}


def _page_handler(page: DebugPage) -> Handler:
    async def answer(request: BaseRequest, named: Mapping[str, str]) -> Response:
        try:
            async with asyncio.timeout(PAGE_TIMEOUT):
                content = await page(DebugRequest(dict(named), dict(request.query)))
        except TimeoutError:
            return Response(status=503, text=f"timed out after {PAGE_TIMEOUT:g} s\n")
        if isinstance(content, DebugReply):
            return Response(
                status=content.status, text=content.text, content_type=content.media, headers=content.headers
            )
        if isinstance(content, str):
            return Response(text=content)
        body = msgspec.json.format(msgspec.json.encode(content))
        return Response(body=body, content_type="application/json")

    return answer
