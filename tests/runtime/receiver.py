"""An HTTP server on loopback that takes notifications."""

import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from aiohttp import web

from tests.servers import serving


class Receiver:
    """Keeps what it is sent, and answers as it is told."""

    def __init__(self) -> None:
        self.url = ""
        self.answers: list[int] = []
        self.got: list[tuple[str, dict[str, Any]]] = []
        self.authorizations: list[str | None] = []

    async def take(self, request: web.Request) -> web.Response:
        self.got.append((request.content_type, await request.json()))
        self.authorizations.append(request.headers.get("Authorization"))
        status = self.answers.pop(0) if self.answers else 204
        return web.Response(status=status, headers={"Location": "/elsewhere"} if status == 307 else {})


@asynccontextmanager
async def receiving(trust: ssl.SSLContext | None = None) -> AsyncIterator[Receiver]:
    receiver = Receiver()
    application = web.Application()
    application.router.add_post("/{any:.*}", receiver.take)
    async with serving(web.AppRunner(application), trust) as (port,):
        receiver.url = f"{'https' if trust else 'http'}://localhost:{port}/hook/s3cr3t"
        yield receiver
