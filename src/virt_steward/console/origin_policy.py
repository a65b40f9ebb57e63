"""What every request must be, and what every answer carries: hosts, origins, and headers that browsers act upon."""

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
SECONDS_FOR_A_FORM = 30.0
LOOPBACK = ("127.0.0.1", "localhost", "[::1]")


@dataclass(frozen=True, slots=True)
class OriginPolicy:
    """Under which names the console answers."""

    origins: frozenset[str]
    """As browsers write them: `http://127.0.0.1:8090`."""
    proxies: tuple[Network, ...] = ()
    """From where a header with a viewer's token is believed."""
    header: str = "X-Forwarded-Access-Token"
    hosts: frozenset[str] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "hosts", frozenset(urlsplit(origin).netloc for origin in self.origins))

    @property
    def is_secure(self) -> bool:
        """Whether browsers come by TLS, so that cookies must, too."""
        return all(origin.startswith("https://") for origin in self.origins)

    def token_of_proxy(self, request: web.Request) -> str:
        """The token that a proxy says its user has; empty if nobody may say so."""
        try:
            peer = ip_address(request.remote or "")
        except ValueError:
            return ""
        trusted = any(peer in network for network in self.proxies if network.version == peer.version)
        return request.headers.get(self.header, "") if trusted else ""


def origin_policy_at(address: Address, external: str, proxies: tuple[Network, ...], header: str) -> OriginPolicy:
    """Names of the loopback, or the one under which the world knows us."""
    origins = {external} if external else set()
    if address.is_loopback:
        origins |= {f"http://{host}:{address.port}" for host in LOOPBACK}
    return OriginPolicy(frozenset(origins), proxies, header)


def guarding(door: OriginPolicy) -> Middleware:
    @web.middleware
    async def guard(request: web.Request, handler: Handler) -> web.StreamResponse:
        if request.host not in door.hosts:  # a name that a stranger made point here
            return web.Response(status=421, text="This console does not answer under that name.\n")
        if request.method not in ("GET", "HEAD") and not _is_of_our_own(request, door):
            return web.Response(status=403, text="This came from another site, so nothing was done.\n")
        try:
            async with asyncio.timeout(SECONDS_FOR_A_FORM):
                await request.post()  # whoever needs it has it from here
        except TimeoutError:
            return web.Response(status=408, text="The form did not arrive in time, so nothing was done.\n")
        return await handler(request)

    return guard


async def add_headers(request: web.Request, response: web.StreamResponse) -> None:
    response.headers.update(HEADERS)
    if not request.path.startswith("/static/"):
        response.headers["Cache-Control"] = "no-store"
    response.headers.pop("Server", None)


def _is_of_our_own(request: web.Request, door: OriginPolicy) -> bool:
    """Browsers always say from which origin a form comes; who says nothing is none."""
    told = request.headers.get("Sec-Fetch-Site", "same-origin")
    return request.headers.get("Origin") in door.origins and told == "same-origin"
