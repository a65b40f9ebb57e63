"""Renders pages for signed-in viewers: the same way for a request and for live updates."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from aiohttp import web
from yarl import URL

from virt_steward.console import html
from virt_steward.console.page_context import PageContent, PageContext, kinds_to_check

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from virt_steward.console.cache import Cache
    from virt_steward.console.html import PageParts
    from virt_steward.console.live import Topic
    from virt_steward.console.sessions import ViewerSession
    from virt_steward.objects.identity import Kind
    from virt_steward.runtime.clock import Clock

THEMES = ("auto", "light", "dark")


@dataclass(frozen=True, slots=True)
class PageRoute:
    """A page of the console."""

    path: str
    """As aiohttp writes it: `/profiles/{name}`."""
    nav: str
    """The entry of the navigation that it belongs to."""
    build: Callable[[PageContext], Awaitable[PageContent]]
    kinds: frozenset[Kind]
    """What it shows, besides what every page counts."""
    all_assets: bool = False


PAGES_BY_PATH: web.AppKey[dict[str, PageRoute]] = web.AppKey("pages_by_path", dict)
"""Where an application keeps its page routes."""


@dataclass(frozen=True, slots=True)
class PageRequest:
    """A page that a viewer asked for."""

    route: PageRoute
    match: Mapping[str, str]
    """The variable parts of the path."""
    query: Mapping[str, str]
    address: str
    """The path with its query."""

    @classmethod
    async def resolve(cls, request: web.Request, address: str) -> PageRequest | None:
        """Find the page at another address with the application's router; None if there is none."""
        if not is_own_path(address):
            return None
        try:
            url = URL(address)
        except ValueError:
            return None
        match = await request.app.router.resolve(request.clone(rel_url=url))
        resource = match.route.resource
        route = request.app[PAGES_BY_PATH].get(resource.canonical) if resource else None
        return cls(route, dict(match), dict(url.query), address) if route else None


@dataclass(frozen=True, slots=True)
class RenderedPage:
    """A rendered page, and the topics whose changes concern it."""

    parts: PageParts
    topics: frozenset[Topic]


@dataclass(frozen=True, slots=True)
class PageRenderer:
    cache: Cache
    clock: Clock
    cluster: str
    """The name of the cluster, which every page shows."""

    async def whole(self, session: ViewerSession, request: PageRequest, theme: str) -> tuple[str, int]:
        """The page as HTML, and its status code."""
        context, page = await self._build(session, request)
        frame = replace(self._frame(session, request, theme), note=session.take_note())
        return html.whole(context, page, request.route.nav, frame), page.status

    async def parts(self, session: ViewerSession, request: PageRequest) -> RenderedPage:
        context, page = await self._build(session, request)
        frame = self._frame(session, request, "auto")
        return RenderedPage(html.parts(context, page, request.route.nav, frame), page.topics)

    async def result(self, session: ViewerSession, request: PageRequest, page: PageContent, theme: str) -> str:
        """The result of an action, in the place of the page that was asked for."""
        context, _ = await self._build(session, request)
        return html.whole(context, page, request.route.nav, self._frame(session, request, theme))

    async def _build(self, session: ViewerSession, request: PageRequest) -> tuple[PageContext, PageContent]:
        route = request.route
        kinds = kinds_to_check(self.cache, route.kinds, all_assets=route.all_assets)
        scope = await session.rights.visible_scope(kinds)
        now = self.clock.utc()
        context = PageContext(session.viewer.user, session.rights, self.cache, scope, now, request.query, request.match)
        return context, await route.build(context)

    def _frame(self, session: ViewerSession, request: PageRequest, theme: str) -> html.Frame:
        return html.Frame(session.csrf, theme, None, request.address, self.cluster)


def is_own_path(path: str) -> bool:
    """Whether a path stays within the console: one that starts with two slashes, of either kind, names a host."""
    return path.startswith("/") and path[1:2] not in ("/", "\\") and path.isprintable()
