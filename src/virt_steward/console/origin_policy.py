"""Which hosts and origins requests may name, and the security headers of every response."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from ipaddress import ip_address
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from aiohttp import web

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from ipaddress import IPv4Network, IPv6Network

    from aiohttp.typedefs import Middleware

    from virt_steward.runtime.addresses import Address

    Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
    Network = IPv4Network | IPv6Network

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    # Not `no-referrer`: with that, browsers hide the origin of our own forms, too, and it could not be checked.
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
}
FORM_TIMEOUT = 30.0
LOOPBACK = ("127.0.0.1", "localhost", "[::1]")


@dataclass(frozen=True, slots=True)
class OriginPolicy:
    """The names under which the console answers."""

    origins: frozenset[str]
    """As browsers write them: `http://127.0.0.1:8090`."""
    proxies: tuple[Network, ...] = ()
    """Networks from which a header with a viewer's token is trusted."""
    header: str = "X-Forwarded-Access-Token"
    hosts: frozenset[str] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "hosts", frozenset(urlsplit(origin).netloc for origin in self.origins))

    @property
    def is_secure(self) -> bool:
        """Whether browsers use TLS, so that cookies must be Secure."""
        return all(origin.startswith("https://") for origin in self.origins)

    def token_of_proxy(self, request: web.Request) -> str:
        """The token that a trusted proxy sends for its user; empty if there is none."""
        try:
            peer = ip_address(request.remote or "")
        except ValueError:
            return ""
        trusted = any(peer in network for network in self.proxies if network.version == peer.version)
        return request.headers.get(self.header, "") if trusted else ""


def origin_policy_at(address: Address, external: str, proxies: tuple[Network, ...], header: str) -> OriginPolicy:
    """The loopback names, or the external URL."""
    origins = {external} if external else set()
    if address.is_loopback:
        origins |= {f"http://{host}:{address.port}" for host in LOOPBACK}
    return OriginPolicy(frozenset(origins), proxies, header)


def enforcing(policy: OriginPolicy) -> Middleware:
    @web.middleware
    async def enforce(request: web.Request, handler: Handler) -> web.StreamResponse:
        if request.host not in policy.hosts:  # DNS rebinding: another name that resolves to this address
            return web.Response(status=421, text="The console does not answer under this host name.\n")
        if request.method not in ("GET", "HEAD") and not _is_same_origin(request, policy):
            return web.Response(status=403, text="Cross-site request refused. Nothing was changed.\n")
        try:
            async with asyncio.timeout(FORM_TIMEOUT):
                await request.post()  # handlers get it from here
        except TimeoutError:
            return web.Response(status=408, text="The form did not arrive in time. Nothing was changed.\n")
        return await handler(request)

    return enforce


async def add_headers(request: web.Request, response: web.StreamResponse) -> None:
    response.headers.update(HEADERS)
    if not request.path.startswith("/static/"):
        response.headers["Cache-Control"] = "no-store"
    response.headers.pop("Server", None)


def _is_same_origin(request: web.Request, policy: OriginPolicy) -> bool:
    """Browsers always send the origin of a form; a request without one does not count as same origin."""
    site = request.headers.get("Sec-Fetch-Site", "same-origin")
    return request.headers.get("Origin") in policy.origins and site == "same-origin"
