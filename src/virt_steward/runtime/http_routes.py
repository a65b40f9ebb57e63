"""Answers GET requests by their path.

An application of aiohttp does that too, and takes 2 MiB of every controller.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING

from aiohttp.web_response import Response, StreamResponse
from aiohttp.web_server import Server

from virt_steward.runtime.http_server import STOP_TIMEOUT, connection_options

if TYPE_CHECKING:
    from aiohttp.web_request import BaseRequest

Handler = Callable[["BaseRequest", Mapping[str, str]], Awaitable[StreamResponse]]
"""Called with the request and the part of its path that the route names."""

READING = ("GET", "HEAD")
REST = ":.*}"
"""Ends a route whose last part is the rest of the path, as in `/debug/render/{asset:.*}`."""


class Routes:
    """Handlers by route."""

    def __init__(self, handlers: Mapping[str, Handler]) -> None:
        self.server: Server | None = None
        self._exact = {route: handler for route, handler in handlers.items() if not route.endswith(REST)}
        self._rest: list[tuple[str, str, Handler]] = []
        for route in handlers.keys() - self._exact.keys():
            start, _, name = route.removesuffix(REST).partition("{")
            self._rest.append((start, name, handlers[route]))

    async def setup(self) -> None:
        self.server = Server(self._answer, **connection_options())

    async def cleanup(self) -> None:
        if self.server is not None:
            self.server.pre_shutdown()
            await self.server.shutdown(STOP_TIMEOUT)

    async def _answer(self, request: BaseRequest) -> StreamResponse:
        handler, named = self._found(request.path)
        if handler is None:
            return Response(status=404, text="404: Not Found")
        if request.method not in READING:
            return Response(status=405, text="405: Method Not Allowed", headers={"Allow": ",".join(READING)})
        return await handler(request, named)

    def _found(self, path: str) -> tuple[Handler | None, Mapping[str, str]]:
        if handler := self._exact.get(path):
            return handler, {}
        for start, name, handler in self._rest:
            if path.startswith(start):
                return handler, {name: path.removeprefix(start)}
        return None, {}
