"""A TCP proxy in front of the API server that can misbehave. It forwards TLS unchanged."""

import asyncio
from types import TracebackType
from typing import Self

from tests.servers import close
from virt_steward_demo.local.controlplane import ReservedPort

CHUNK = 64 * 1024


class FaultProxy:
    """Forwards bytes unless a fault is set. It belongs to one event loop: `async with FaultProxy(port) as proxy`."""

    def __init__(self, target_port: int) -> None:
        self._target_port = target_port
        self._reserved = ReservedPort()
        self._listener: asyncio.Server | None = None
        self._connections: set[asyncio.Task[None]] = set()
        self._flowing = asyncio.Event()
        self._flowing.set()
        self._delay = 0.0
        self._is_over = False
        self.server = f"https://127.0.0.1:{self.port}"
        self.accepted = 0
        """The number of connections so far."""

    @property
    def port(self) -> int:
        return self._reserved.number

    @property
    def open_connections(self) -> int:
        return len(self._connections)

    def freeze(self) -> None:
        """Forward nothing more in either direction; connections stay open and new ones are accepted."""
        self._flowing.clear()

    def thaw(self) -> None:
        self._flowing.set()

    def delay(self, seconds: float) -> None:
        """Delay each chunk, in both directions."""
        self._delay = seconds

    async def cut(self) -> None:
        """Close all connections; new ones are accepted."""
        connections = list(self._connections)
        for connection in connections:
            connection.cancel()
        await asyncio.gather(*connections, return_exceptions=True)

    async def refuse(self) -> None:
        """Refuse new connections; those that are open stay."""
        if self._listener:
            await close(self._listener)
            self._listener = None

    async def accept(self) -> None:
        self._listener = await asyncio.start_server(self._serve, "127.0.0.1", self.port, reuse_port=True)

    async def __aenter__(self) -> Self:
        await self.accept()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._is_over = True
        await self.refuse()
        await self.cut()
        for _ in range(3):  # turns of the loop in which aborted sockets really close
            await asyncio.sleep(0)
        self._reserved.release()

    async def _serve(self, client: asyncio.StreamReader, to_client: asyncio.StreamWriter) -> None:
        if self._is_over:
            to_client.transport.abort()
            return
        task = asyncio.current_task()
        assert task is not None
        self._connections.add(task)
        self.accepted += 1
        writers = [to_client]
        try:
            server, to_server = await asyncio.open_connection("127.0.0.1", self._target_port)
            writers.append(to_server)
            async with asyncio.TaskGroup() as both_ways:
                both_ways.create_task(self._forward(client, to_server))
                both_ways.create_task(self._forward(server, to_client))
        except* (OSError, asyncio.CancelledError):  # a side went away, or we cut it
            pass
        finally:
            self._connections.discard(task)
            for writer in writers:
                writer.transport.abort()

    async def _forward(self, source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
        while chunk := await source.read(CHUNK):
            await asyncio.sleep(self._delay)
            await self._flowing.wait()
            target.write(chunk)
            await target.drain()
        await self._flowing.wait()
        target.write_eof()
