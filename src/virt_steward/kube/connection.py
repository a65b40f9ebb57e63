"""HTTP to one API server: three connection pools, and each failure as an error of `kube/errors.py`.

Writes of a leader are fenced here. Such a request carries a `Permit` (the Elector of `runtime/leader.py`), and
`_Body.write` asks it in the moment in which aiohttp sends the body. To check before the request is not enough. Example:
the leader has 4 s left and sends a patch; all connections of the pool are busy, or the process is suspended, and 20 s
later a connection is free. By then another replica leads. The permit raises NotLeading, and not one byte of the body
leaves this process. What was sent in time must also end in time: the client sets the request's timeout to
`permit.remaining()`.
"""

from __future__ import annotations

import asyncio
import enum
import functools
import os
import time
from asyncio.sslproto import SSLProtocol
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol
from urllib.parse import quote

import aiohttp
from aiohttp import payload
from aiohttp.client_proto import ResponseHandler
from multidict import CIMultiDict
from yarl import URL

from virt_steward.kube.answers import KIB, AnswerLimits, in_words
from virt_steward.kube.errors import (
    AnswerTooLong,
    KubeError,
    ServerUnreachable,
    TimedOut,
    TooManyRequests,
    Unauthorized,
    Untrusted,
    error_from,
)
from virt_steward.kube.tls import ssl_context

if TYPE_CHECKING:
    import ssl
    from collections.abc import AsyncIterator, Iterator, Mapping

    from aiohttp.abc import AbstractStreamWriter

    from virt_steward.kube.credentials import Authentication
    from virt_steward.kube.kubeconfig import ClusterConfig
    from virt_steward.kube.tls import KeyPair

CONNECT_TIMEOUT = 10.0
REQUEST_TIMEOUT = 30.0
KEEPALIVE = 60.0
TURNS_TO_CLOSE = 3
"""Turns of the event loop after which sockets that were abandoned during a handshake are closed."""
LARGE = 128 * KIB
"""Bytes from which on an answer of a server that others run must wait for its turn."""
BACKOFF_WHEN_THROTTLED = (0.1, 0.2, 0.4, 0.8)
# Not aiohttp's total timeout: it swallows a cancellation at the same moment, as when a lease expires.
LIMITS = aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_TIMEOUT)
# Each TLS connection keeps a buffer of this size, and each watch keeps a connection: the usual 256 KiB add up.
SSLProtocol.max_size = 32 * 1024


class ConnectionPool(enum.Enum):
    """With HTTP/1.1 each watch occupies a connection, so watches, other requests and leases have separate pools."""

    REQUESTS = 10
    WATCHES = 0  # as many as there are watches
    LEASE = 8  # one for each elector: a renewal that hangs must not delay the others


class Permit(Protocol):
    """Decides whether a write may be sent now."""

    def remaining(self) -> float:
        """Seconds within which a write must end. Raises NotLeading if none are left."""


class RequestObserver(Protocol):
    """Called for every answer, for metrics."""

    def __call__(self, verb: str, code: str, seconds: float) -> None: ...


@dataclass(frozen=True, slots=True)
class Request:
    """One request, before credentials."""

    verb: str
    """The API's verb (`list`, `apply`), for metrics and messages."""
    method: str
    path: str
    what: str
    """The request in words, for error messages: `get Machine shop/db`."""
    query: Mapping[str, str] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes | None = None
    timeout: float = REQUEST_TIMEOUT
    pool: ConnectionPool = ConnectionPool.REQUESTS
    permit: Permit | None = None
    longest: int | None = None
    """Bytes of the answer, where it is known to be short."""

    @property
    def target(self) -> str:
        """Path and query, encoded."""
        query = "&".join(f"{name}={quote(value, safe='')}" for name, value in self.query.items())
        return f"{self.path}?{query}" if query else self.path


@dataclass(frozen=True, slots=True)
class Response:
    status: int
    body: bytes


class Connection:
    """The connections to one API server. They open on first use."""

    def __init__(
        self,
        cluster: ClusterConfig,
        *,
        user_agent: str,
        observe: RequestObserver,
        limits: AnswerLimits | None = None,
        large: asyncio.Semaphore | None = None,
    ) -> None:
        """`limits` and `large` are for servers that others run: so many large answers are read at once, by all."""
        self.cluster = cluster
        self.limits = limits or AnswerLimits()
        self._large = large
        self._own_large = asyncio.Lock()
        self._user_agent = user_agent
        self._observe = observe
        self._sessions: dict[ConnectionPool, aiohttp.ClientSession] = {}
        self._is_closed = False
        self._tls: tuple[KeyPair | None, ssl.SSLContext] | None = None

    async def send(self, request: Request) -> Response:
        """Send, and send again after a 429: the server executed nothing, whatever the verb."""
        deadline = time.monotonic() + request.timeout
        for backoff in BACKOFF_WHEN_THROTTLED:
            try:
                return await self._send_once(request, deadline)
            except TooManyRequests as error:
                delay = backoff if error.retry_after is None else error.retry_after
                if delay > self.limits.pause or time.monotonic() + delay > deadline:
                    raise
                await asyncio.sleep(delay)
        return await self._send_once(request, deadline)

    @asynccontextmanager
    async def stream(self, request: Request, *, silence: float) -> AsyncIterator[AsyncIterator[bytes]]:
        """Open a watch; its chunks end when the server ends it. `silence` seconds without a byte are a TimedOut."""
        limits = aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_TIMEOUT, sock_read=silence)
        with self._errors_of(request, silence):
            async with asyncio.timeout(silence):  # aiohttp does not limit the answer of a proxy
                response = await self._open(request, limits)
            async with response:
                try:
                    yield response.content.iter_any()
                finally:
                    response.close()  # the caller stopped in the middle of the stream

    async def close(self) -> None:
        """Close for good: requests that still wait to be sent raise Unreachable."""
        self._is_closed = True
        sessions, self._sessions = self._sessions, {}
        for session in sessions.values():
            await session.close()
        for _ in range(TURNS_TO_CLOSE):
            await asyncio.sleep(0)

    async def _send_once(self, request: Request, deadline: float) -> Response:
        with self._errors_of(request, request.timeout):
            async with asyncio.timeout(deadline - time.monotonic()), await self._open(request, LIMITS) as response:
                return Response(response.status, await self._read(response, request, self.limits.body))

    async def _open(self, request: Request, limits: aiohttp.ClientTimeout) -> aiohttp.ClientResponse:
        """The response, if it is a success. After a 401, credentials are renewed once."""
        credentials = self.cluster.credentials
        used = await credentials.current()
        try:
            return await self._open_as(used, request, limits)
        except Unauthorized as error:
            if not await credentials.rejected(used):
                raise Unauthorized(error.code, error.reason, f"{error}: {credentials.explain()}") from None
        try:
            return await self._open_as(await credentials.current(), request, limits)
        except Unauthorized as error:
            raise Unauthorized(error.code, error.reason, f"{error}: {credentials.explain()}") from None

    async def _open_as(
        self, who: Authentication, request: Request, limits: aiohttp.ClientTimeout
    ) -> aiohttp.ClientResponse:
        started, code = time.monotonic(), "none"
        url = URL(self.cluster.server + request.target, encoded=True)
        try:
            response = await self._session(request.pool).request(
                request.method,
                url,
                headers=self._headers(request, who),
                data=None if request.body is None else _Body(request.body, request.permit),
                timeout=limits,
                ssl=self._ssl(who.client_certificate),
                server_hostname=self.cluster.server_name
                or (url.raw_host or "").rstrip("."),  # no certificate has a dot
                proxy=self.cluster.proxy,
                allow_redirects=False,
            )
            code = str(response.status)
        finally:
            self._observe(request.verb, code, time.monotonic() - started)
        if response.status >= 300:
            async with response:
                body = await self._read(response, request, self.limits.error)
            raise error_from(
                response.status,
                body,
                what=request.what,
                retry_after=response.headers.get("Retry-After"),
                content_type=response.content_type,
            )
        return response

    async def _read(self, response: aiohttp.ClientResponse, request: Request, longest: int) -> bytes:
        """The body, decompressed piece by piece by aiohttp, which reads on only when a piece was taken."""
        longest = min(longest, request.longest or longest)
        body = bytearray()
        async with AsyncExitStack() as turn:
            is_large = False
            async for chunk in response.content.iter_any():
                body += chunk
                if len(body) > longest:
                    response.close()
                    body.clear()  # the traceback of the error would keep it
                    raise AnswerTooLong(request.what, f"the answer is longer than {in_words(longest)}")
                if self._large is None or len(body) <= LARGE:
                    continue
                if not is_large:
                    is_large = True
                    await turn.enter_async_context(self._own_large)  # first, so that one server takes one turn only
                    await turn.enter_async_context(self._large)
                await asyncio.sleep(0)  # the next chunk may be decompressed at once, without waiting for the network
        return bytes(body)

    def _headers(self, request: Request, who: Authentication) -> CIMultiDict[str]:
        headers = CIMultiDict({"Accept": "application/json", "User-Agent": self._user_agent, **request.headers})
        headers.extend((*self.cluster.impersonate, *who.headers))
        return headers

    def _session(self, pool: ConnectionPool) -> aiohttp.ClientSession:
        if self._is_closed:
            raise ServerUnreachable(f"the connection to {self.cluster.server} is closed")
        if pool not in self._sessions:
            connector = _Connector(limit=pool.value, keepalive_timeout=KEEPALIVE)
            self._sessions[pool] = aiohttp.ClientSession(
                connector=connector,
                auto_decompress=True,
                read_bufsize=self.limits.chunk,
                cookie_jar=aiohttp.DummyCookieJar(),
            )
        return self._sessions[pool]

    def _ssl(self, certificate: KeyPair | None) -> ssl.SSLContext:
        if self._tls is None or self._tls[0] != certificate:
            self._tls = (certificate, ssl_context(self.cluster.trust, certificate))
        return self._tls[1]

    @contextmanager
    def _errors_of(self, request: Request, seconds: float) -> Iterator[None]:
        """Translate errors of aiohttp; `seconds` is the timeout that applies."""
        try:
            yield
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise self._translated(error, request, seconds) from error

    def _translated(self, error: Exception, request: Request, seconds: float) -> KubeError:
        if isinstance(error.__cause__, KubeError):  # the permit refused when the body was about to be sent
            return error.__cause__
        server = self.cluster.server
        if isinstance(error, aiohttp.ClientConnectorCertificateError):
            self._tls = None  # so that a rotated authority is read again
            detail = getattr(error.certificate_error, "verify_message", "") or str(error)
            return Untrusted(
                f"{request.what}: the certificate of {server} is not trusted ({detail}); "
                f"check {self.cluster.trust.origin}"
            )
        if isinstance(error, TimeoutError):
            return TimedOut(f"{request.what}: {server} unreachable: timed out after {seconds:.3g} s")
        return ServerUnreachable(
            f"{request.what}: {server} unreachable: {_in_words(error)}; "
            f"check that it runs, and that context {self.cluster.context} is the right one"
        )


class _Handler(ResponseHandler):
    """Closes a connection at once: a TLS shutdown may wait 30 s for a server that hangs or still sends."""

    def close(self) -> None:
        self.abort()


class _Connector(aiohttp.TCPConnector):
    """Closes connections in use at once; aiohttp itself does so for idle ones only."""

    def __init__(self, *, limit: int, keepalive_timeout: float) -> None:
        super().__init__(limit=limit, keepalive_timeout=keepalive_timeout)
        self._factory = functools.partial(_Handler, loop=self._loop)  # type: ignore[assignment]  # a subclass

    async def _wrap_create_connection(self, *args: Any, **facts: Any) -> Any:
        """Connect first, then begin with TLS.

        If both are left to asyncio at once, a request that is cancelled between the two leaves its socket open until
        the handshake ends, which is too late for a process that stops.
        """
        del facts["server_hostname"]  # aiohttp takes it from the request
        is_tls = facts.pop("ssl") is not None
        connected = await super()._wrap_create_connection(*args, **facts)
        return await self._start_tls_connection(connected[0], facts["req"], facts["timeout"]) if is_tls else connected


class _Body(payload.Payload):
    """A body that checks the permit in the moment in which it is sent."""

    _value: bytes
    _autoclose = True

    def __init__(self, value: bytes, permit: Permit | None) -> None:
        super().__init__(value)
        self._size = len(value)
        self._permit = permit

    def decode(self, encoding: str = "utf-8", errors: str = "strict") -> str:
        return self._value.decode(encoding, errors)

    async def as_bytes(self, encoding: str = "utf-8", errors: str = "strict") -> bytes:  # noqa: ARG002 - aiohttp's signature
        return self._value

    async def write(self, writer: AbstractStreamWriter) -> None:
        if self._permit is not None:
            self._permit.remaining()
        await writer.write(self._value)

    async def write_with_length(self, writer: AbstractStreamWriter, content_length: int | None) -> None:  # noqa: ARG002
        await self.write(writer)


def _in_words(error: Exception) -> str:  # noqa: PLR0911 - a table
    match error:
        case aiohttp.ClientHttpProxyError():  # its own text shows the proxy's password
            return f"the proxy answered {error.status}"
        case aiohttp.ClientConnectorDNSError():
            return "no such host"
        case aiohttp.ClientConnectorSSLError():
            return f"TLS handshake failed ({getattr(error.os_error, 'reason', None) or error.os_error})"
        case aiohttp.ClientConnectorError() if error.os_error.errno:
            return os.strerror(error.os_error.errno)
        case aiohttp.ClientPayloadError() | aiohttp.ServerDisconnectedError():
            return "the server closed the connection"
        case aiohttp.ClientResponseError():  # its own text quotes what the server sent
            return "the answer is not valid HTTP"
        case _:
            return str(error) or type(error).__name__


def unobserved(verb: str, code: str, seconds: float) -> None:
    """A RequestObserver that does nothing: for commands without metrics."""
