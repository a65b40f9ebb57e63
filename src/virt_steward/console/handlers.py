"""Request handlers of the console: pages, actions, live updates, sign-in and sign-out."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import quote

import structlog
from aiohttp import web

from virt_steward.console import html
from virt_steward.console.actions import SubmittedForm, UnknownAsset
from virt_steward.console.authentication import NotSignedIn, fingerprint_of
from virt_steward.console.origin_policy import FORM
from virt_steward.console.page_context import PageContent
from virt_steward.console.rendering import THEMES, PageRequest, is_own_path
from virt_steward.console.sessions import Note
from virt_steward.decisions.outcomes import Decided, NotDecided, PartlyDecided
from virt_steward.kube.errors import Conflict, Forbidden, Invalid, KubeError, NotFound, Unauthorized, Unavailable
from virt_steward.objects.errors import UserError

if TYPE_CHECKING:
    from virt_steward.console.authentication import Authenticator, SignInLink, Viewer
    from virt_steward.console.live import LiveUpdates
    from virt_steward.console.origin_policy import OriginPolicy
    from virt_steward.console.rendering import PageRenderer, PageRoute
    from virt_steward.console.rights import RightsCache
    from virt_steward.console.sessions import ViewerSession, ViewerSessions
    from virt_steward.decisions.outcomes import Outcome

log = structlog.get_logger()

COOKIE = "virt_steward_session"
THEME = "virt_steward_theme"
STATUS: tuple[tuple[type[UserError], int], ...] = (
    (Conflict, 409),
    (Forbidden, 403),
    (NotFound, 404),
    (UnknownAsset, 404),
    (Invalid, 422),
    (Unavailable, 503),
)
WRONG_SESSION = NotDecided(
    "Nothing was changed", "The form is not from this session (wrong CSRF token). Reload the page and send it again."
)
LINK_INVALID = "This link was used already, or a newer one was printed. See the terminal."

Action = Callable[[SubmittedForm], Awaitable["Outcome"]]


@dataclass(frozen=True, slots=True)
class RequestHandlers:
    """The handlers and what they share."""

    renderer: PageRenderer
    live: LiveUpdates
    sessions: ViewerSessions
    rights: RightsCache
    authenticator: Authenticator
    policy: OriginPolicy
    link: SignInLink | None

    async def page(self, request: web.Request, route: PageRoute) -> web.StreamResponse:
        session = await self._session(request)
        if session is None:
            return _to_sign_in(request.path_qs)
        page = PageRequest(route, dict(request.match_info), dict(request.query), request.path_qs)
        try:
            text, status = await self.renderer.whole(session, page, _theme(request))
        except Unauthorized:
            await self.sessions.end(session)
            return _to_sign_in(request.path_qs)
        except KubeError as error:
            return _html(html.plain("unavailable.html", reason=str(error), theme=_theme(request)), 503)
        return self._with_cookie(_html(text, status), session, request)

    async def action(self, request: web.Request, action: Action, route: PageRoute) -> web.StreamResponse:
        """Do what a form of a page asks for, and go back to that page."""
        session = await self._session(request)
        if session is None:
            return _to_sign_in("/")
        page = PageRequest(route, dict(request.match_info), {}, route.path.format_map(request.match_info))
        return self._with_cookie(await self._act(request, action, page, session), session, request)

    async def _act(
        self, request: web.Request, action: Action, page: PageRequest, session: ViewerSession
    ) -> web.Response:
        fields = request[FORM]
        theme, user = _theme(request), session.viewer.user
        if not session.accepts(fields.get("csrf", "")):
            return await self._result(session, page, theme, WRONG_SESSION, 403)
        refs, now = self.renderer.cache.assets.refs, self.renderer.clock.utc()
        try:
            freeze_of = self.renderer.cache.freezes.state
            outcome = await action(SubmittedForm(session.viewer.client, fields, page.match, now, refs, freeze_of))
        except Unauthorized:
            return web.Response(status=303, headers={"Location": "/sign-in"})
        except UserError as error:
            log.info("action failed", user=user, path=request.path, reason=str(error))
            return await self._result(session, page, theme, _failure(error), _status(error))
        if not isinstance(outcome, Decided):
            log.info("action refused", user=user, path=request.path, reason=outcome.reason)
            return await self._result(session, page, theme, outcome, 409)
        log.info("action done", user=user, path=request.path, message=outcome.message)
        session.note = Note(outcome.message)
        return web.Response(status=303, headers={"Location": page.address})

    async def _result(
        self, session: ViewerSession, page: PageRequest, theme: str, outcome: NotDecided | PartlyDecided, status: int
    ) -> web.Response:
        """The outcome on a page of its own; without anything around it if the viewer's rights cannot be checked."""
        values = {"outcome": outcome, "back": page.address}
        content = PageContent("not_decided.html", outcome.title, values, frozenset(), status)
        try:
            text = await self.renderer.result(session, page, content, theme)
        except KubeError as error:
            return _html(html.plain("cut_off.html", **values, reason=str(error), theme=theme), 503)
        return _html(text, status)

    async def not_found(self, request: web.Request) -> web.StreamResponse:
        """A path without a page; viewers who are not signed in learn nothing about which paths there are."""
        session = await self._session(request)
        if session is None:
            return _to_sign_in(request.path_qs if request.method == "GET" else "/")
        return _html(html.plain("no_such_page.html", theme=_theme(request)), 404)

    async def stream(self, request: web.Request) -> web.StreamResponse:
        session = await self._session(request)
        if session is None:
            return web.Response(status=401, text="Sign in again.\n")
        return await self.live.stream(request, session)

    async def sign_in_page(self, request: web.Request) -> web.StreamResponse:
        return self._sign_in_form(request, own_path(request.query.get("to", "/")))

    async def sign_in(self, request: web.Request) -> web.StreamResponse:
        to = own_path(request[FORM].get("to", "/"))
        try:
            viewer = await self.authenticator.with_token(request[FORM].get("token", ""))
        except NotSignedIn as error:
            return self._sign_in_form(request, to, str(error))
        return await self._start_session(request, viewer, to)

    async def sign_in_by_link(self, request: web.Request) -> web.StreamResponse:
        owner = self.link.redeem(request.query.get("code", "")) if self.link else None
        if owner is None:
            return self._sign_in_form(request, "/", LINK_INVALID)
        try:
            viewer = await self.authenticator.as_owner_of(owner)
        except NotSignedIn as error:
            return self._sign_in_form(request, "/", str(error))
        return await self._start_session(request, viewer, "/")

    async def sign_out(self, request: web.Request) -> web.StreamResponse:
        session = await self._session(request)
        if session and session.accepts(request[FORM].get("csrf", "")):
            await self.sessions.end(session)
        response = web.Response(status=303, headers={"Location": "/sign-in"})
        response.del_cookie(COOKIE, path="/")
        return response

    async def set_theme(self, request: web.Request) -> web.StreamResponse:
        response = web.Response(status=303, headers={"Location": own_path(request[FORM].get("to", "/"))})
        theme = request[FORM].get("theme", "")
        if theme in THEMES:
            response.set_cookie(THEME, theme, path="/", httponly=True, samesite="Strict", max_age=365 * 24 * 3600)
        return response

    async def static_file(self, request: web.Request) -> web.StreamResponse:
        name = request.match_info["name"]
        if name not in html.STATIC:
            return web.Response(status=404)
        caching = "public, max-age=31536000, immutable" if "v" in request.query else "no-cache"
        return web.Response(
            body=html.static(name), content_type=html.STATIC[name], charset="utf-8", headers={"Cache-Control": caching}
        )

    async def _start_session(self, request: web.Request, viewer: Viewer, to: str) -> web.Response:
        """Under a new id; the browser's earlier session ends."""
        if earlier := await self.sessions.find(request.cookies.get(COOKIE, "")):
            await self.sessions.end(earlier)
        session = await self._begin(viewer)
        response = web.Response(status=303, headers={"Location": to})
        self._set_cookie(request, response, session)
        log.info("signed in", user=viewer.user)
        return response

    def _sign_in_form(self, request: web.Request, to: str, problem: str = "") -> web.Response:
        text = html.plain("sign_in.html", to=to, problem=problem, theme=_theme(request), link=bool(self.link))
        return _html(text, 401 if problem else 200)

    async def _session(self, request: web.Request) -> ViewerSession | None:
        session = await self.sessions.find(request.cookies.get(COOKIE, ""))
        token = self.policy.token_of_proxy(request)
        if not token:
            return session
        if session and session.viewer.fingerprint == fingerprint_of(token):
            return session
        if session:  # another user of the proxy, in the same browser
            await self.sessions.end(session)
        try:
            return await self._begin(await self.authenticator.with_token(token))
        except NotSignedIn as error:
            log.warning("token from proxy not accepted", reason=str(error))
            return None

    async def _begin(self, viewer: Viewer) -> ViewerSession:
        return await self.sessions.begin(viewer, self.rights.of(viewer))

    def _with_cookie(
        self, response: web.StreamResponse, session: ViewerSession, request: web.Request
    ) -> web.StreamResponse:
        if request.cookies.get(COOKIE) != session.id:  # users of a proxy never sign in
            self._set_cookie(request, response, session)
        return response

    def _set_cookie(self, request: web.Request, response: web.StreamResponse, session: ViewerSession) -> None:
        is_secure = self.policy.is_secure(request)
        response.set_cookie(COOKIE, session.id, path="/", httponly=True, samesite="Strict", secure=is_secure)


def own_path(path: str) -> str:
    """The path to go to, or the inbox if it leads out of the console."""
    return path if is_own_path(path) else "/"


def _theme(request: web.Request) -> str:
    theme = request.cookies.get(THEME, "auto")
    return theme if theme in THEMES else "auto"


def _html(text: str, status: int = 200) -> web.Response:
    return web.Response(text=text, content_type="text/html", status=status)


def _to_sign_in(path: str) -> web.Response:
    to = "" if path == "/" else f"?to={quote(path, safe='')}"
    return web.Response(status=303, headers={"Location": f"/sign-in{to}"})


def _status(error: UserError) -> int:
    return next((status for kind, status in STATUS if isinstance(error, kind)), 400)


def _failure(error: UserError) -> NotDecided | PartlyDecided:
    match error:
        case Unavailable():
            reason = f"The API server did not answer, so the change may or may not have been made. Check it. ({error})"
            return PartlyDecided("Result unknown", reason)
        case Conflict():
            reason = f"Somebody else has just changed it; your change was not made. Reload and try again. ({error})"
        case Forbidden():
            reason = f"Your account may not do this: {error}"
        case _:
            reason = str(error)
    return NotDecided("Nothing was changed", reason)
