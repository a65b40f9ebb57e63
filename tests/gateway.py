"""An HTTP gateway in front of the API server that can replace responses by those of a faulty server."""

import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import aiohttp
from aiohttp import web

from tests.servers import serving
from virt_steward.kube.tls import Trust, ssl_context
from virt_steward_demo.local.controlplane import ControlPlane

Interception = Callable[[web.BaseRequest], Awaitable[web.StreamResponse | None]]


async def forwarded(_request: web.BaseRequest) -> web.StreamResponse | None:
    return None


class Gateway:
    """Takes HTTP and forwards it with the caller's token, unless `intercept` returns a response."""

    def __init__(self, server: str, upstream: aiohttp.ClientSession) -> None:
        self.server = ""
        self.secure_server = ""
        """The same with TLS, certified by the authority of the control plane."""
        self.requests: list[web.BaseRequest] = []
        self._open: set[Any] = set()
        self.intercept: Interception = forwarded
        self._target = server
        self._upstream = upstream

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        self.requests.append(request)
        if request.transport is not None:
            self._open.add(request.transport)
        return await self.intercept(request) or await self.forward(request)

    async def cut(self) -> None:
        """Close all connections; new ones are accepted."""
        for transport in self._open:
            transport.abort()
        self._open.clear()

    async def forward(self, request: web.BaseRequest, **changed_query: str) -> web.StreamResponse:
        headers = {name: value for name, value in request.headers.items() if name not in {"Host", "Accept-Encoding"}}
        query = {**request.query, **changed_query}
        async with self._upstream.request(
            request.method,
            self._target + request.path,
            params=query,
            headers=headers,
            data=await request.read() or None,
        ) as answer:
            response = web.StreamResponse(status=answer.status, headers={"Content-Type": answer.content_type})
            await response.prepare(request)
            async for chunk in answer.content.iter_any():
                await response.write(chunk)
            return response


@asynccontextmanager
async def a_gateway(control_plane: ControlPlane) -> AsyncIterator[Gateway]:
    trust = ssl_context(Trust("tests", control_plane.authority.certificate), None)
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=trust, limit=0)) as upstream:
        gateway = Gateway(control_plane.server, upstream)
        runner = web.ServerRunner(web.Server(gateway.handle), shutdown_timeout=0.05)
        async with serving(runner, None, certified(control_plane)) as (plain, secure):
            gateway.server, gateway.secure_server = f"http://127.0.0.1:{plain}", f"https://127.0.0.1:{secure}"
            yield gateway


def certified(control_plane: ControlPlane) -> ssl.SSLContext:
    identity = control_plane.authority.server("gateway")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    with TemporaryDirectory() as folder:  # ssl reads keys from files only
        pair = Path(folder, "gateway.pem")
        pair.write_bytes(identity.certificate + identity.key)
        context.load_cert_chain(pair)
    return context


def a_status(code: int, reason: str, message: str = "", **details: Any) -> web.Response:
    body = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code, "reason": reason}
    return web.json_response({**body, "message": message or reason, "details": details}, status=code)


async def no_streaming_list(request: web.BaseRequest) -> web.StreamResponse | None:
    """Respond like a server without streaming lists."""
    return a_status(422, "Invalid", "sendInitialEvents is forbidden") if "sendInitialEvents" in request.query else None
