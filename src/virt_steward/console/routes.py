"""From a form that was sent to what it asks for, and to the page that says what came of it."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import structlog
from aiohttp import web

from virt_steward.console import actions, html
from virt_steward.console.actions import ActionDone, ActionPartlyDone, ActionRefused, SubmittedForm
from virt_steward.console.page_context import PageContent
from virt_steward.console.rendering import PageRequest
from virt_steward.console.sessions import Note
from virt_steward.kube.errors import Conflict, Forbidden, Invalid, KubeError, NotFound, Unauthorized, Unavailable
from virt_steward.objects.errors import UserError
from virt_steward.objects.identity import Key

if TYPE_CHECKING:
    from virt_steward.console.rendering import PageRenderer
    from virt_steward.console.sessions import ViewerSession
    from virt_steward.runtime.clock import Clock

log = structlog.get_logger()

Do = Callable[[SubmittedForm, str], Awaitable[actions.Outcome]]
BY_PROFILE: dict[str, Do] = {
    "approve": actions.approve_plan,
    "reject": actions.reject_plan,
    "hand-over": actions.hand_over,
    "undo": actions.undo,
    "cancel-undo": actions.cancel_undo,
    "activate": actions.activate,
    "plan-anew": actions.plan_anew,
}
STATUS: tuple[tuple[type[KubeError], int], ...] = (
    (Conflict, 409),
    (Forbidden, 403),
    (NotFound, 404),
    (Invalid, 422),
    (Unavailable, 503),
)
FROM_BEFORE = ActionRefused("Nothing was done", "The form is not of this session. Look again, and send it anew.")
_PROFILE = re.compile(r"(?P<page>/profiles/(?P<name>[A-Za-z0-9.:-]+))/(?P<deed>[a-z-]+)")
_PLAN = re.compile(r"(?P<page>/approvals/(?P<namespace>[A-Za-z0-9.:-]+)/(?P<name>[A-Za-z0-9.:-]+))/approve")
_MACHINE = re.compile(r"(?P<page>/placement/machines/(?P<namespace>[A-Za-z0-9.:-]+)/(?P<name>[A-Za-z0-9.:-]+))/choose")
_ASSET = re.compile(r"(?P<page>/autopilot/(?P<name>[A-Za-z0-9.:-]+))/resume")


@dataclass(frozen=True, slots=True)
class Action:
    """What a form asks for, and the page that it stands on."""

    page: str
    do: Callable[[SubmittedForm], Awaitable[actions.Outcome]]


@dataclass(frozen=True, slots=True)
class ActionRoutes:
    desk: PageRenderer
    clock: Clock

    async def do(self, request: web.Request, session: ViewerSession, theme: str) -> web.Response:
        deed = self._deed(request.path)
        if deed is None:
            return web.Response(text=html.plain("lost.html", theme=theme), content_type="text/html", status=404)
        fields = {name: value for name, value in (await request.post()).items() if isinstance(value, str)}
        if not session.vouches_for(fields.get("csrf", "")):
            return await self._told(session, deed, theme, FROM_BEFORE, 403)
        try:
            outcome = await deed.do(SubmittedForm(session.viewer, fields, self.clock.utc()))
        except Unauthorized:
            return web.Response(status=303, headers={"Location": "/sign-in"})
        except UserError as error:
            log.info("not done in the console", user=session.viewer.user, path=request.path, why=str(error))
            return await self._told(session, deed, theme, _failed(error), _status(error))
        if not isinstance(outcome, ActionDone):
            return await self._told(session, deed, theme, outcome, 409)
        log.info("done in the console", user=session.viewer.user, path=request.path, says=outcome.says)
        session.note = Note(outcome.says)
        return web.Response(status=303, headers={"Location": deed.page})

    def _deed(self, path: str) -> Action | None:
        for pattern, deed in (
            (_PROFILE, _of_profile),
            (_PLAN, _of_plan),
            (_MACHINE, _of_machine),
            (_ASSET, self._of_asset),
        ):
            if found := pattern.fullmatch(path):
                return deed(found)
        return None

    def _of_asset(self, found: re.Match[str]) -> Action | None:
        assets = self.desk.cache.assets
        asset = assets.catalog.find(found["name"])
        if asset is None:
            return None
        ref = assets.view.ref(asset)
        return Action(found["page"], lambda form: actions.resume(form, ref))

    async def _told(
        self, session: ViewerSession, deed: Action, theme: str, outcome: ActionRefused | ActionPartlyDone, status: int
    ) -> web.Response:
        """What came of it, on a page of its own; if nobody can tell what may be seen, with nothing else around."""
        asked = PageRequest.of(deed.page)
        if asked is None:
            raise AssertionError(deed.page)
        page = PageContent("not_done.html", outcome.title, {"outcome": outcome, "back": deed.page}, frozenset(), status)
        try:
            text = await self.desk.told(session, asked, page, theme)
        except KubeError as error:
            status = 503
            text = html.plain("cut_off.html", outcome=outcome, back=deed.page, why=str(error), theme=theme)
        return web.Response(text=text, content_type="text/html", status=status)


def _of_profile(found: re.Match[str]) -> Action | None:
    name, do = found["name"], BY_PROFILE.get(found["deed"])
    return Action(found["page"], lambda form: do(form, name)) if do else None


def _of_plan(found: re.Match[str]) -> Action:
    key = _key(found)
    return Action(found["page"], lambda form: actions.approve_install_plan(form, key))


def _of_machine(found: re.Match[str]) -> Action:
    key = _key(found)
    return Action(found["page"], lambda form: actions.choose_cluster(form, key))


def _key(found: re.Match[str]) -> Key:
    return Key(found["namespace"], found["name"])


def _status(error: UserError) -> int:
    return next((status for kind, status in STATUS if isinstance(error, kind)), 400)


def _failed(error: UserError) -> ActionRefused | ActionPartlyDone:
    if isinstance(error, Unavailable):
        why = f"The API server did not answer, so nobody can tell whether it was done. Look again first. ({error})"
        return ActionPartlyDone("Not known", why)
    return ActionRefused("Nothing was done", _in_words(error))


def _in_words(error: UserError) -> str:
    if isinstance(error, Conflict):
        return f"Somebody changed it at the same moment, so nothing was written. Look again. ({error})"
    if isinstance(error, Forbidden):
        return f"Your account may not do this: {error}"
    return str(error)
