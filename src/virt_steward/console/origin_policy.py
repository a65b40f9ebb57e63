"""Which hosts and origins requests may name, and the security headers of every response."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from ipaddress import IPv6Address, ip_address
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError
from aiohttp.web_protocol import RequestPayloadError

from virt_steward.console.form_body import RefusedRequest, parse_form

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
FORM: web.RequestKey[dict[str, str]] = web.RequestKey("form", dict)
"""Where a request keeps the fields of its form; empty unless it is a POST."""
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

    def is_secure(self, request: web.Request) -> bool:
        """Whether the browser uses TLS, up to a proxy in front of the console, so that its cookies must be Secure.

        A proxy may keep the browser's Host, send the origin of a form, or say `X-Forwarded-Proto`. Any of these is
        enough, no matter who sent it: a false one only makes the cookie of its own sender stricter.
        """
        by_header = request.headers.get("X-Forwarded-Proto", "").strip().lower() == "https"
        secure = {origin for origin in self.origins if origin.startswith("https://")}
        by_origin = not secure.isdisjoint({f"https://{request.host}", request.headers.get("Origin", "")})
        return by_header or by_origin or bool(secure and self.token_of_proxy(request))

    def token_of_proxy(self, request: web.Request) -> str:
        """The token that a trusted proxy sends for its user; empty if there is none."""
        try:
            peer = ip_address(request.remote or "")
        except ValueError:
            return ""
        if isinstance(peer, IPv6Address) and peer.ipv4_mapped:  # of a socket for both
            peer = peer.ipv4_mapped
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
        try:
            await _admit(request, policy)
            return await handler(request)
        except RefusedRequest as refused:
            return web.Response(status=refused.status, text=f"{refused}\n")

    return enforce


async def _admit(request: web.Request, policy: OriginPolicy) -> None:
    """Check everything that does not depend on the path, and read the form. Raises RefusedRequest."""
    if request.host not in policy.hosts:  # DNS rebinding: another name that resolves to this address
        raise RefusedRequest(421, "The console does not answer under this host name.")
    if not request.raw_path.isascii():  # browsers encode all else
        raise RefusedRequest(400, "The address is not a valid URL.")
    if request.method not in ("GET", "HEAD") and not _is_same_origin(request, policy):
        raise RefusedRequest(403, "Cross-site request refused. Nothing was changed.")
    request[FORM] = await _form(request) if request.method == "POST" else {}


async def _form(request: web.Request) -> dict[str, str]:
    try:
        async with asyncio.timeout(FORM_TIMEOUT):
            return parse_form(request.headers, await request.read())
    except TimeoutError:
        raise RefusedRequest(408, "The form did not arrive in time. Nothing was changed.") from None
    except (HttpProcessingError, RequestPayloadError):
        raise RefusedRequest(400, "The form arrived damaged. Nothing was changed.") from None


async def add_headers(request: web.Request, response: web.StreamResponse) -> None:
    response.headers.update(HEADERS)
    if not request.path.startswith("/static/"):
        response.headers["Cache-Control"] = "no-store"
    response.headers.pop("Server", None)


def _is_same_origin(request: web.Request, policy: OriginPolicy) -> bool:
    """Browsers always send the origin of a form; a request without one does not count as same origin."""
    site = request.headers.get("Sec-Fetch-Site", "same-origin")
    return request.headers.get("Origin") in policy.origins and site == "same-origin"
