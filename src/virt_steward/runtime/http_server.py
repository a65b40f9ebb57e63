"""An HTTP server that strangers may connect to: connections are few, short-lived while idle, and cost no log lines.

aiohttp bounds neither how many clients connect nor, by default, how long they stay silent: a thousand connections that
send nothing use up the file descriptors of the process, and then it can reach no API server either.
"""

from __future__ import annotations

import asyncio
import os
import resource
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from aiohttp import web

if TYPE_CHECKING:
    import socket

    from virt_steward.objects.errors import UserError
    from virt_steward.runtime.addresses import Address

IDLE_TIMEOUT = 15.0
"""Seconds for a complete request header to arrive, on a new connection and between two requests."""
MOST_CONNECTIONS = 100
STOP_TIMEOUT = 1.0
"""Seconds for answers under way when the server stops."""
OPEN_FILES = 8192
"""File descriptors that are enough for every watch, member cluster and connection that our limits allow."""


class HttpServer:
    """Serves one application at one address. Once it is full, the longest idle connection makes room for a new one."""

    def __init__(
        self,
        application: web.Application,
        address: Address,
        *,
        listening: socket.socket | None = None,
        most_connections: int = MOST_CONNECTIONS,
        idle_timeout: float = IDLE_TIMEOUT,
    ) -> None:
        """Listen at the address, or on a socket that listens there already."""
        self._address = address
        self._listening = listening
        self._most_connections = most_connections
        self._runner = web.AppRunner(
            application, access_log=None, shutdown_timeout=STOP_TIMEOUT, keepalive_timeout=idle_timeout
        )
        self._listener: asyncio.Server | None = None

    @property
    def bound(self) -> Address:
        """Where it listens, with the port that was picked if the address has port 0."""
        assert self._listener is not None  # noqa: S101 - only asked for once it has started
        return replace(self._address, port=self._listener.sockets[0].getsockname()[1])

    async def start(self) -> None:
        """Raises BadAddress if it cannot listen there."""
        await self._runner.setup()
        loop = asyncio.get_running_loop()
        waiting = self._most_connections
        try:
            if self._listening:
                self._listener = await loop.create_server(self._protocol, sock=self._listening, backlog=waiting)
            else:
                host, port = self._address.host or None, self._address.port
                self._listener = await loop.create_server(self._protocol, host, port, backlog=waiting)
        except OSError as error:
            await self._runner.cleanup()
            raise self._refused(error) from error

    async def stop(self) -> None:
        if self._listener is not None:
            self._listener.close()
        await self._runner.cleanup()

    def _protocol(self) -> asyncio.Protocol:
        """Called for each new connection."""
        server = self._runner.server
        assert server is not None  # noqa: S101 - setup made it
        # aiohttp has no public name for either; one that is being closed is in the list until its task has ended
        connections = [one for one in server.connections if not one._force_close]  # noqa: SLF001
        if len(connections) < self._most_connections:
            return server()
        longest_idle = next((one for one in connections if not one._request_in_progress), None)  # noqa: SLF001
        if longest_idle is None:
            return _Refused()
        longest_idle.force_close()
        return server()

    def _refused(self, error: OSError) -> UserError:
        """In the system's words, without the address that asyncio repeats."""
        number = error.errno or 0
        words = os.strerror(number) if number > 0 else error.strerror or str(error)
        return self._address.error(f"{words}; choose another address, or 0 to turn it off")


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
