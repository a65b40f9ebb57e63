"""Serves pages to signed-in viewers: the same way for a request and for a stream of changes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl, urlsplit

from virt_steward.console import html
from virt_steward.console.page_context import PageContent, PageContext, wanted
from virt_steward.console.pages import PAGES

if TYPE_CHECKING:
    from virt_steward.console.cache import Cache
    from virt_steward.console.html import PageParts
    from virt_steward.console.hub import Topic
    from virt_steward.console.pages import Route
    from virt_steward.console.sessions import ViewerSession
    from virt_steward.runtime.clock import Clock

THEMES = ("auto", "light", "dark")


@dataclass(frozen=True, slots=True)
class PageRequest:
    """A page that somebody asked for."""

    route: Route
    match: dict[str, str]
    query: dict[str, str]
    address: str

    @classmethod
    def of(cls, address: str) -> PageRequest | None:
        """None: there is no such page."""
        url = urlsplit(address)
        for route in PAGES:
            if found := route.path.fullmatch(url.path):
                return cls(route, found.groupdict(), dict(parse_qsl(url.query)), address)
        return None


@dataclass(frozen=True, slots=True)
class RenderedPage:
    """A page as it was rendered last, and what may change it."""

    parts: PageParts
    topics: frozenset[Topic]


@dataclass(frozen=True, slots=True)
class PageRenderer:
    cache: Cache
    clock: Clock
    cluster: str
    """What the cluster is called."""

    async def whole(self, session: ViewerSession, asked: PageRequest, theme: str) -> tuple[str, int]:
        """The page as HTML, and its status."""
        visit, page = await self._look(session, asked)
        frame = self._frame(session, asked, theme)
        return html.whole(visit, page, asked.route.nav, replace(frame, note=session.take_note())), page.status

    async def parts(self, session: ViewerSession, asked: PageRequest) -> RenderedPage:
        visit, page = await self._look(session, asked)
        frame = self._frame(session, asked, "auto")
        return RenderedPage(html.parts(visit, page, asked.route.nav, frame), page.topics)

    async def told(self, session: ViewerSession, asked: PageRequest, page: PageContent, theme: str) -> str:
        """Another page in the place of the one that was asked for: what came of a deed."""
        visit, _ = await self._look(session, asked)
        return html.whole(visit, page, asked.route.nav, self._frame(session, asked, theme))

    async def _look(self, session: ViewerSession, asked: PageRequest) -> tuple[PageContext, PageContent]:
        route = asked.route
        sight = await session.rights.sight(wanted(self.cache, route.kinds, all_assets=route.all_assets))
        now = self.clock.utc()
        visit = PageContext(session.viewer.user, session.rights, self.cache, sight, now, asked.query, asked.match)
        return visit, await route.page(visit)

    def _frame(self, session: ViewerSession, asked: PageRequest, theme: str) -> html.Frame:
        return html.Frame(session.csrf, theme, None, asked.address, self.cluster)
