"""The console's server: routes, who may pass, and the life of it all."""

from __future__ import annotations

import asyncio
import socket
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING
from urllib.parse import quote

import structlog
from aiohttp import web

from virt_steward.console import html
from virt_steward.console.authentication import Authenticator, NotSignedIn, fingerprint_of
from virt_steward.console.cache import Cache
from virt_steward.console.hub import Hub
from virt_steward.console.links import PATH as LINK_PATH
from virt_steward.console.live import LiveUpdates
from virt_steward.console.origin_policy import add_headers, guarding, origin_policy_at
from virt_steward.console.rendering import THEMES, PageRenderer, PageRequest
from virt_steward.console.rights import RightsOfAll
from virt_steward.console.routes import ActionRoutes
from virt_steward.console.sessions import ViewerSessions
from virt_steward.kube.errors import KubeError, Unauthorized

if TYPE_CHECKING:
    from virt_steward.console.authentication import Viewer
    from virt_steward.console.cache import PlatformOptions
    from virt_steward.console.links import Link
    from virt_steward.console.sessions import ViewerSession
    from virt_steward.kube.client import Reader
    from virt_steward.runtime.addresses import Address
    from virt_steward.runtime.clock import Clock
    from virt_steward.runtime.informers import Informers
    from virt_steward.settings import ConsoleSettings

log = structlog.get_logger()

COOKIE = "virt_steward_session"
THEME = "virt_steward_theme"
LONGEST_FORM = 64 * 1024
SECONDS_TO_FINISH = 1.0


@dataclass(frozen=True, slots=True)
class ConsoleParts:
    """What the console is built from."""

    informers: Informers
    reader: Reader
    reception: Authenticator
    clock: Clock
    platform: PlatformOptions
    link: Link | None


class Console:
    """Serves from `start` to `stop`. The caches fill once the informers run."""

    def __init__(self, settings: ConsoleSettings, parts: ConsoleParts) -> None:
        self._settings = settings
        self._parts = parts
        self._hub = Hub()
        self._sessions = ViewerSessions(parts.clock, idle=settings.idle)
        self._rights = RightsOfAll(parts.clock, remembered=settings.rights_remembered)
        self.cache = Cache(parts.informers, parts.reader, self._hub, parts.clock, parts.platform)
        self._desk = PageRenderer(self.cache, parts.clock, parts.reception.cluster.context)
        self._live = LiveUpdates(self._desk, self._hub, self._sessions, heartbeat=settings.heartbeat)
        self._runner: web.AppRunner | None = None
        self._running: asyncio.Task[None] | None = None
        self.address: Address = settings.address

    async def start(self) -> None:
        """Raises BadAddress if it cannot listen there."""
        listening = _listen(self._settings.address)
        self.address = replace(self._settings.address, port=listening.getsockname()[1])
        settings = self._settings
        self._door = origin_policy_at(self.address, settings.external_url, settings.proxies, settings.proxy_header)
        self._runner = web.AppRunner(self._application(), access_log=None, shutdown_timeout=SECONDS_TO_FINISH)
        await self._runner.setup()
        await web.SockSite(self._runner, listening).start()
        self._running = asyncio.create_task(self.cache.run(), name="console")
        self._running.add_done_callback(_say_why)
        log.info("console is open", at=str(self.address))
        if self._parts.link:
            self._parts.link.offer(f"http://{self.address}")

    async def stop(self) -> None:
        self._live.stop()
        if self._runner:
            await self._runner.cleanup()
        if self._running:
            self._running.cancel()
            await asyncio.wait((self._running,))
        await self._sessions.end_all()

    def _application(self) -> web.Application:
        application = web.Application(middlewares=[guarding(self._door)], client_max_size=LONGEST_FORM)
        application.on_response_prepare.append(add_headers)
        doings = ActionRoutes(self._desk, self._parts.clock)
        router = application.router
        router.add_get("/static/{name}", _static)
        router.add_get("/sign-in", self._sign_in_page)
        router.add_post("/sign-in", self._sign_in)
        router.add_get(LINK_PATH, self._sign_in_by_link, allow_head=False)
        router.add_post("/sign-out", self._sign_out)
        router.add_post("/theme", _set_theme)
        router.add_get("/live", self._stream, allow_head=False)
        router.add_get("/{path:.*}", self._page)

        async def do(request: web.Request) -> web.StreamResponse:
            session = await self._session(request)
            if session is None:
                return _to_sign_in("/")
            return self._with_cookie(await doings.do(request, session, _theme(request)), session, request)

        router.add_post("/{path:.*}", do)
        return application

    async def _page(self, request: web.Request) -> web.StreamResponse:
        session = await self._session(request)
        if session is None:
            return _to_sign_in(request.path_qs)
        asked = PageRequest.of(request.path_qs)
        if asked is None:
            return _html(html.plain("lost.html", theme=_theme(request)), 404)
        try:
            text, status = await self._desk.whole(session, asked, _theme(request))
        except Unauthorized:
            await self._sessions.end(session)
            return _to_sign_in(request.path_qs)
        except KubeError as error:
            return _html(html.plain("unavailable.html", why=str(error), theme=_theme(request)), 503)
        return self._with_cookie(_html(text, status), session, request)

    async def _stream(self, request: web.Request) -> web.StreamResponse:
        session = await self._session(request)
        if session is None:
            return web.Response(status=401, text="sign in again\n")
        return await self._live.stream(request, session)

    async def _sign_in_page(self, request: web.Request) -> web.Response:
        return self._sign_in_form(request, _own_path(request.query.get("to", "/")))

    async def _sign_in(self, request: web.Request) -> web.Response:
        form = await request.post()
        to = _own_path(str(form.get("to", "/")))
        try:
            viewer = await self._parts.reception.with_token(str(form.get("token", "")))
        except NotSignedIn as error:
            return self._sign_in_form(request, to, str(error))
        return await self._welcome(request, viewer, to)

    async def _sign_in_by_link(self, request: web.Request) -> web.Response:
        link = self._parts.link
        owner = link.take(request.query.get("code", "")) if link else None
        if owner is None:
            return self._sign_in_form(request, "/", "This link was used, or is not the newest: see the terminal.")
        try:
            viewer = await self._parts.reception.as_owner_of(owner)
        except NotSignedIn as error:
            return self._sign_in_form(request, "/", str(error))
        return await self._welcome(request, viewer, "/")

    async def _welcome(self, request: web.Request, viewer: Viewer, to: str) -> web.Response:
        """Under a new session: whatever the browser had before is over."""
        if before := await self._sessions.find(request.cookies.get(COOKIE, "")):
            await self._sessions.end(before)
        session = await self._begin(viewer)
        response = web.Response(status=303, headers={"Location": to})
        self._set_cookie(response, session)
        log.info("signed in", user=viewer.user)
        return response

    async def _sign_out(self, request: web.Request) -> web.Response:
        session = await self._session(request)
        form = await request.post()
        if session and session.vouches_for(str(form.get("csrf", ""))):
            await self._sessions.end(session)
        response = web.Response(status=303, headers={"Location": "/sign-in"})
        response.del_cookie(COOKIE, path="/")
        return response

    def _sign_in_form(self, request: web.Request, to: str, problem: str = "") -> web.Response:
        text = html.plain("sign_in.html", to=to, problem=problem, theme=_theme(request), link=bool(self._parts.link))
        return _html(text, 401 if problem else 200)

    async def _session(self, request: web.Request) -> ViewerSession | None:
        session = await self._sessions.find(request.cookies.get(COOKIE, ""))
        token = self._door.token_of_proxy(request)
        if not token:
            return session
        if session and session.viewer.fingerprint == fingerprint_of(token):
            return session
        if session:  # somebody else came by the same browser
            await self._sessions.end(session)
        try:
            return await self._begin(await self._parts.reception.with_token(token))
        except NotSignedIn as error:
            log.warning("a proxy sent a token that does not count", why=str(error))
            return None

    async def _begin(self, viewer: Viewer) -> ViewerSession:
        return await self._sessions.begin(viewer, self._rights.of(viewer))

    def _with_cookie(
        self, response: web.StreamResponse, session: ViewerSession, request: web.Request
    ) -> web.StreamResponse:
        if request.cookies.get(COOKIE) != session.id:  # of a proxy's user, who never signs in
            self._set_cookie(response, session)
        return response

    def _set_cookie(self, response: web.StreamResponse, session: ViewerSession) -> None:
        response.set_cookie(COOKIE, session.id, path="/", httponly=True, samesite="Strict", secure=self._door.is_secure)


def _say_why(running: asyncio.Task[None]) -> None:
    """Pages that are no longer kept up to date must not look as if nothing happened."""
    if not running.cancelled() and (error := running.exception()):
        log.critical("the console's pages stand still: restart it", exc_info=error)


async def _static(request: web.Request) -> web.Response:
    name = request.match_info["name"]
    if name not in html.STATIC:
        return web.Response(status=404)
    kept = "public, max-age=31536000, immutable" if "v" in request.query else "no-cache"
    return web.Response(
        body=html.static(name), content_type=html.STATIC[name], charset="utf-8", headers={"Cache-Control": kept}
    )


async def _set_theme(request: web.Request) -> web.Response:
    form = await request.post()
    response = web.Response(status=303, headers={"Location": _own_path(str(form.get("to", "/")))})
    theme = str(form.get("theme", ""))
    if theme in THEMES:
        response.set_cookie(THEME, theme, path="/", httponly=True, samesite="Strict", max_age=365 * 24 * 3600)
    return response


def _theme(request: web.Request) -> str:
    theme = request.cookies.get(THEME, "auto")
    return theme if theme in THEMES else "auto"


def _html(text: str, status: int = 200) -> web.Response:
    return web.Response(text=text, content_type="text/html", status=status)


def _to_sign_in(path: str) -> web.Response:
    to = "" if path == "/" else f"?to={quote(path, safe='')}"
    return web.Response(status=303, headers={"Location": f"/sign-in{to}"})


def _own_path(path: str) -> str:
    """Only within the console: two slashes, of either sort, lead out of it."""
    return path if path.startswith("/") and path[1:2] not in ("/", "\\") and path.isprintable() else "/"


def _listen(address: Address) -> socket.socket:
    family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
    host = "127.0.0.1" if address.host == "localhost" else address.host
    try:
        return socket.create_server((host, address.port), family=family)
    except OSError as error:
        raise address.error(f"{error.strerror}; choose another address, or 0 to turn it off") from error
