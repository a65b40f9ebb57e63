"""The console's server: it is built, started and stopped here."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import structlog
from aiohttp import web

from virt_steward.console import html
from virt_steward.console.cache import Cache
from virt_steward.console.form_body import LONGEST_FORM
from virt_steward.console.handlers import RequestHandlers
from virt_steward.console.live import Broadcaster, LiveUpdates
from virt_steward.console.origin_policy import add_headers, enforcing, origin_policy_at
from virt_steward.console.rendering import PageRenderer
from virt_steward.console.rights import RightsCache
from virt_steward.console.routes import add_routes
from virt_steward.console.sessions import ViewerSessions
from virt_steward.runtime.http_server import STOP_TIMEOUT, HttpServer, connection_options, listen
from virt_steward.runtime.supervision import essential, failure_of

if TYPE_CHECKING:
    from virt_steward.console.authentication import Authenticator, SignInLink
    from virt_steward.console.cache import PlatformOptions
    from virt_steward.kube.client import Reader
    from virt_steward.runtime.addresses import Address
    from virt_steward.runtime.clock import Clock
    from virt_steward.runtime.informers import Informers
    from virt_steward.settings import ConsoleSettings

log = structlog.get_logger()

MOST_CONNECTIONS = 500
"""Of browsers: each open page holds one for its live updates."""


@dataclass(frozen=True, slots=True)
class ConsoleParts:
    """What the console is built from."""

    informers: Informers
    reader: Reader
    authenticator: Authenticator
    clock: Clock
    platform: PlatformOptions
    link: SignInLink | None


class Console:
    """Serves from `start` to `stop`. The caches fill once the informers run."""

    def __init__(self, settings: ConsoleSettings, parts: ConsoleParts) -> None:
        self._settings = settings
        self._parts = parts
        changes = Broadcaster()
        self._sessions = ViewerSessions(parts.clock, idle=settings.idle)
        self.cache = Cache(parts.informers, parts.reader, changes, parts.clock, parts.platform)
        self._renderer = PageRenderer(self.cache, parts.clock, parts.authenticator.cluster.context)
        self._live = LiveUpdates(self._renderer, changes, self._sessions, heartbeat=settings.heartbeat)
        self._server: HttpServer | None = None
        self._running: asyncio.Task[None] | None = None
        self._loading: asyncio.Task[None] | None = None
        self.address: Address = settings.address

    async def start(self) -> None:
        """Raises BadAddress if it cannot listen there."""
        listening = listen(self._settings.address)
        self.address = replace(self._settings.address, port=listening.getsockname()[1])
        application = self._application()
        runner = web.AppRunner(application, shutdown_timeout=STOP_TIMEOUT, **connection_options())
        self._server = HttpServer(runner, self.address, listening=listening, most_connections=MOST_CONNECTIONS)
        await self._server.start()
        self._running = essential(self.cache.run(), "console cache")
        self._loading = asyncio.create_task(asyncio.to_thread(html.load_templates), name="console templates")
        log.info("console started", address=str(self.address))
        if self._parts.link:
            self._parts.link.offer(f"http://{self.address}")

    async def stop(self) -> None:
        self._live.stop()
        if self._server:
            await self._server.stop()
        if self._loading:
            await self._loading
        if self._running:
            self._running.cancel()
            await asyncio.wait((self._running,))
        await self._sessions.end_all()

    def failure(self) -> str | None:
        """Why pages are no longer served or updated; None if they are."""
        server = self._server.failure() if self._server else None
        return server or (failure_of((self._running,)) if self._running else None)

    def _application(self) -> web.Application:
        settings, parts = self._settings, self._parts
        policy = origin_policy_at(self.address, settings.external_url, settings.proxies, settings.proxy_header)
        application = web.Application(middlewares=[enforcing(policy)], client_max_size=LONGEST_FORM)
        application.on_response_prepare.append(add_headers)
        rights = RightsCache(parts.clock, remembered=settings.rights_remembered)
        add_routes(
            application,
            RequestHandlers(
                self._renderer, self._live, self._sessions, rights, parts.authenticator, policy, parts.link
            ),
        )
        return application
