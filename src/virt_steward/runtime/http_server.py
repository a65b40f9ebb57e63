"""An HTTP server that strangers may connect to: connections are few, short-lived while idle, and cost no log lines.

aiohttp bounds neither how many clients connect nor, by default, how long they stay silent: a thousand connections that
send nothing use up the file descriptors of the process, and then it can reach no API server either.
"""

from __future__ import annotations

import asyncio
import logging
import resource
import socket
import time
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Protocol, TypedDict

import structlog
from aiohttp.http_exceptions import HttpProcessingError
from aiohttp.web_protocol import RequestPayloadError

from virt_steward.runtime.supervision import essential, failure_of

if TYPE_CHECKING:
    import ssl
    from collections.abc import Iterable, Iterator

    from aiohttp.web_protocol import RequestHandler
    from aiohttp.web_server import Server

    from virt_steward.runtime.addresses import Address

log = structlog.get_logger()

IDLE_TIMEOUT = 15.0
"""Seconds for a complete request header to arrive, on a new connection and between two requests."""
MOST_CONNECTIONS = 100
WAITING_CONNECTIONS = 1024
"""Connections that wait to be accepted. The system drops those beyond that, and their clients wait for a second."""
STOP_TIMEOUT = 1.0
"""Seconds for answers under way when the server stops."""
ACCEPT_PAUSE = 1.0
"""Seconds after which a connection that the system refused is accepted again."""
MOST_HANDSHAKES = 100
"""TLS handshakes at a time. One more ends the oldest, which is slow or silent: a handshake takes milliseconds."""
HANDSHAKE_TIMEOUT = 5.0
SHUTDOWN_TIMEOUT = 1.0
"""Seconds that a client gets to confirm the end of a TLS connection."""
EPISODE = 60.0
"""Seconds without a problem after which the next one is logged again."""
OPEN_FILES = 8192
"""File descriptors that are enough for every watch, member cluster and connection that our limits allow."""


class ServerTls(Protocol):
    """What a server uses of its TLS."""

    @property
    def context(self) -> ssl.SSLContext | None:
        """For the next connection; None: no connection may be served now."""


class Runner(Protocol):
    """What answers the requests: routes, or the AppRunner of an application of aiohttp."""

    @property
    def server(self) -> Server | None:
        """Makes the protocol of each connection; None before `setup`."""

    async def setup(self) -> None: ...

    async def cleanup(self) -> None: ...


class ConnectionOptions(TypedDict):
    """How aiohttp treats a connection."""

    access_log: None
    keepalive_timeout: float
    logger: Any


def connection_options(*, idle_timeout: float = IDLE_TIMEOUT) -> ConnectionOptions:
    log_of_requests = _RequestLog(logging.getLogger(__name__))
    return ConnectionOptions(access_log=None, keepalive_timeout=idle_timeout, logger=log_of_requests)


class HttpServer:
    """Serves at one address. Once it is full, the longest idle connection makes room for a new one."""

    def __init__(
        self,
        runner: Runner,
        address: Address,
        *,
        listening: socket.socket | None = None,
        most_connections: int = MOST_CONNECTIONS,
        tls: ServerTls | None = None,
    ) -> None:
        """Listen at the address, or on a socket that listens there already. Without `tls`, in plain HTTP."""
        self._address = address
        self._listening = listening
        self._most_connections = most_connections
        self._tls = tls
        self._handshakes: dict[asyncio.Task[None], None] = {}  # oldest first
        self._runner = runner
        self._accepting: asyncio.Task[None] | None = None
        self._last_problem: dict[str, float] = {}

    @property
    def bound(self) -> Address:
        """Where it listens, with the port that was picked if the address has port 0."""
        assert self._listening is not None  # noqa: S101 - only asked for once it has started
        return replace(self._address, port=self._listening.getsockname()[1])

    async def start(self) -> None:
        """Raises BadAddress if it cannot listen there."""
        self._listening = self._listening or listen(self._address)
        self._listening.listen(WAITING_CONNECTIONS)
        self._listening.setblocking(False)
        await self._runner.setup()
        self._accepting = essential(self._accept(self._listening), f"http {self._address}")

    async def stop(self) -> None:
        if self._accepting is not None:
            self._accepting.cancel()
            await asyncio.gather(self._accepting, return_exceptions=True)
        for handshake in self._handshakes:
            handshake.cancel()
        await asyncio.gather(*self._handshakes, return_exceptions=True)
        if self._listening is not None:
            self._listening.close()
        await self._runner.cleanup()

    def failure(self) -> str | None:
        """Why it no longer accepts connections; None if it does."""
        return failure_of((self._accepting,)) if self._accepting else None

    async def _accept(self, listening: socket.socket) -> None:
        """Ends only by cancellation.

        The accept loop of asyncio is not used: if the process has too many open files, it logs a traceback for each
        place in the queue of connections, again and again.
        """
        loop = asyncio.get_running_loop()
        while True:
            try:
                connection, _ = await loop.sock_accept(listening)
            except ConnectionAbortedError:  # the client went away
                continue
            except OSError as error:
                if self._begins_episode("accept"):
                    log.warning("connections not accepted, retrying", address=str(self._address), error=error.strerror)
                _close_longest_idle(self._open())
                await asyncio.sleep(ACCEPT_PAUSE)
                continue
            # If each connection had a turn of the loop to itself, a probe would wait behind a thousand silent ones.
            connections = [connection, *_waiting(listening, self._most_connections - 1)]
            await (self._serve_tls(connections, self._tls) if self._tls else self._serve(connections))

    async def _serve(self, connections: list[socket.socket]) -> None:
        loop, unserved = asyncio.get_running_loop(), set(connections)

        async def serve(connection: socket.socket) -> None:
            unserved.remove(connection)
            with suppress(OSError):  # the client went away
                await loop.connect_accepted_socket(self._protocol, connection)

        try:
            await asyncio.gather(*map(serve, connections))
        finally:
            for connection in unserved:  # the server stops
                connection.close()

    async def _serve_tls(self, connections: list[socket.socket], tls: ServerTls) -> None:
        """Begin the handshakes and return, so that slow ones delay nobody."""
        for connection in connections:
            context = tls.context
            if context is None:
                connection.close()
                continue
            if len(self._handshakes) >= MOST_HANDSHAKES:
                oldest = next(iter(self._handshakes))
                oldest.cancel()
                del self._handshakes[oldest]
            handshake = asyncio.create_task(self._handshake(connection, context), name=f"handshake {self._address}")
            self._handshakes[handshake] = None
            handshake.add_done_callback(lambda ended: self._handshakes.pop(ended, None))
        await asyncio.sleep(0)  # let them begin: a task that is cancelled before would leave its socket open

    async def _handshake(self, connection: socket.socket, context: ssl.SSLContext) -> None:
        server = self._runner.server
        assert server is not None  # noqa: S101 - setup made it
        try:
            await asyncio.get_running_loop().connect_accepted_socket(
                server,
                connection,
                ssl=context,
                ssl_handshake_timeout=HANDSHAKE_TIMEOUT,
                ssl_shutdown_timeout=SHUTDOWN_TIMEOUT,
            )
        except OSError as error:  # the client went away, was too slow, or has another version or no certificate
            if self._begins_episode("handshake"):  # asyncio closes such a connection without telling the client why
                log.info("TLS handshakes failed", address=str(self._address), error=str(error))
            return
        # Only now, so that strangers without a handshake push nobody out. The new one is last, so it goes if all work.
        if len(connections := self._open()) > self._most_connections:
            _close_longest_idle(connections)

    def _begins_episode(self, problem: str) -> bool:
        """Whether the problem is new, so that it is logged: strangers can cause many."""
        now, before = time.monotonic(), self._last_problem.get(problem, float("-inf"))
        self._last_problem[problem] = now
        return now - before > EPISODE

    def _protocol(self) -> asyncio.Protocol:
        """Called for each new connection."""
        server = self._runner.server
        assert server is not None  # noqa: S101 - setup made it
        connections = self._open()
        has_room = len(connections) < self._most_connections or _close_longest_idle(connections)
        return server() if has_room else _Refused()

    def _open(self) -> list[RequestHandler]:
        """All connections but those that are being closed, which aiohttp lists until their task has ended."""
        server = self._runner.server
        return [one for one in server.connections if not one._force_close] if server else []  # noqa: SLF001 - no other way


def _waiting(listening: socket.socket, most: int) -> Iterator[socket.socket]:
    """Accept the connections that wait already. An error ends that, and comes up again with the next one."""
    with suppress(OSError):
        for _ in range(most):
            connection, _ = listening.accept()
            connection.setblocking(False)
            yield connection


def _close_longest_idle(connections: Iterable[RequestHandler]) -> bool:
    """Whether there was an idle connection; the oldest is first."""
    longest = next((one for one in connections if not one._request_in_progress), None)  # noqa: SLF001 - no other way
    if longest is None:
        return False
    longest.force_close()
    return True


def listen(address: Address) -> socket.socket:
    """A socket that listens there, for IPv4 and IPv6 if the address is all interfaces. Raises BadAddress."""
    host = "127.0.0.1" if address.host == "localhost" else address.host
    both = not host and socket.has_dualstack_ipv6()
    family = socket.AF_INET6 if both or ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, address.port), family=family, dualstack_ipv6=both)
    except OSError as error:
        why = (error.strerror or str(error)).partition(" (while attempting")[0]  # it repeats the address
        raise address.error(f"{why}; choose another address, or 0 to turn it off") from error


class _RequestLog(logging.LoggerAdapter[logging.Logger]):
    """The log of aiohttp, without what clients cause: a malformed or aborted request costs no traceback."""

    def exception(self, msg: object, *args: Any, exc_info: Any = True, **facts: Any) -> None:
        is_from_client = isinstance(exc_info, HttpProcessingError | RequestPayloadError | ConnectionError)
        report = self.debug if is_from_client else self.error
        report(msg, *args, exc_info=exc_info, **facts)


class _Refused(asyncio.Protocol):
    """A connection that is closed at once: all others are in use."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)  # noqa: S101 - that is what servers give
        transport.abort()


def raise_open_files_limit() -> int:
    """Use as many file descriptors as the system allows, up to OPEN_FILES. Gives the limit in force."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = OPEN_FILES if hard == resource.RLIM_INFINITY else min(OPEN_FILES, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        with suppress(ValueError, OSError):  # a sandbox may forbid it; the old limit then stays
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    return resource.getrlimit(resource.RLIMIT_NOFILE)[0]
