"""An HTTP server on loopback that takes notifications."""

import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from aiohttp import web


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
    runner = web.AppRunner(application)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=trust)
    await site.start()
    scheme = "https" if trust else "http"
    receiver.url = f"{scheme}://localhost:{runner.addresses[0][1]}/hook/s3cr3t"
    try:
        yield receiver
    finally:
        await runner.cleanup()
