"""Live updates: each open page gets its changed parts as server-sent events, as its viewer may see them."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Literal

import msgspec
from aiohttp import web

from virt_steward.console.rendering import PageRequest
from virt_steward.kube.errors import KubeError, Unauthorized

if TYPE_CHECKING:
    from collections.abc import Iterator

    from virt_steward.console.rendering import PageRenderer, RenderedPage
    from virt_steward.console.sessions import ViewerSession, ViewerSessions

Topic = Literal["profiles", "approvals", "placement", "autopilot", "activity", "rollout"]

MIN_INTERVAL = 0.2
"""Seconds between two updates: changes in between are sent together."""
NAV_DELAY = 0.5
"""Seconds after which changes that only affect the navigation are sent, unless the page itself changes sooner."""
HEARTBEAT = 10.0
"""Seconds without a change after which the viewer's rights and the connection are checked."""
SEND_TIMEOUT = 60.0
STREAMS_PER_SESSION = 20


class PageSubscription:
    """The changes that one open page has not handled yet."""

    def __init__(self) -> None:
        self._topics: set[Topic] = set()
        self._changed = asyncio.Event()

    def notify(self, topic: Topic) -> None:
        self._topics.add(topic)
        self._changed.set()

    async def wait(self, timeout: float) -> frozenset[Topic]:  # noqa: ASYNC109 - a timeout is a result here
        """The topics that have changed since the last call; empty if none has within the timeout."""
        try:
            async with asyncio.timeout(timeout):
                await self._changed.wait()
        except TimeoutError:
            return frozenset()
        self._changed.clear()
        topics, self._topics = frozenset(self._topics), set()
        return topics

    async def wait_for(self, topics: frozenset[Topic], timeout: float) -> None:  # noqa: ASYNC109 - as above
        """Return when one of these topics changes, or after the timeout."""
        loop = asyncio.get_running_loop()
        end = loop.time() + timeout
        while (left := end - loop.time()) > 0:
            if await self.wait(left) & topics:
                return


class Broadcaster:
    """Tells all open pages which topics have changed."""

    def __init__(self) -> None:
        self._subscriptions: set[PageSubscription] = set()

    def __iter__(self) -> Iterator[PageSubscription]:
        return iter(self._subscriptions)

    def publish(self, topic: Topic) -> None:
        for subscription in self._subscriptions:
            subscription.notify(topic)

    def subscribe(self) -> PageSubscription:
        subscription = PageSubscription()
        self._subscriptions.add(subscription)
        return subscription

    def unsubscribe(self, subscription: PageSubscription) -> None:
        self._subscriptions.discard(subscription)


class LiveUpdates:
    """The streams of all viewers."""

    def __init__(
        self, renderer: PageRenderer, changes: Broadcaster, sessions: ViewerSessions, *, heartbeat: float = HEARTBEAT
    ) -> None:
        self._renderer = renderer
        self._changes = changes
        self._sessions = sessions
        self._heartbeat = heartbeat
        self._open: dict[str, int] = {}
        self._stopping = asyncio.Event()

    def stop(self) -> None:
        self._stopping.set()
        for subscription in self._changes:
            subscription.notify("activity")

    async def stream(self, request: web.Request, session: ViewerSession) -> web.StreamResponse:
        page = await PageRequest.resolve(request, request.query.get("page", ""))
        if page is None:
            return web.Response(status=404)
        if self._open.get(session.id, 0) >= STREAMS_PER_SESSION:
            return web.Response(status=429, text="Too many open pages in this session.\n")
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream", "X-Accel-Buffering": "no"})
        await response.prepare(request)
        subscription = self._changes.subscribe()
        self._open[session.id] = self._open.get(session.id, 0) + 1
        try:
            await self._send_updates(response, session, page, subscription)
        except ConnectionResetError:  # the viewer closed the page
            pass
        except TimeoutError:  # the page is open but no longer reads; waiting for it would keep its memory
            if request.transport:
                request.transport.abort()
        finally:
            self._changes.unsubscribe(subscription)
            self._open[session.id] -= 1
            if not self._open[session.id]:
                del self._open[session.id]
        return response

    async def _send_updates(
        self, response: web.StreamResponse, session: ViewerSession, page: PageRequest, subscription: PageSubscription
    ) -> None:
        shown: RenderedPage | None = None
        loop = asyncio.get_running_loop()
        while not self._stopping.is_set():
            if not self._sessions.is_open(session):
                await _send(response, "bye", "Your session has ended. Sign in again.")
                return
            began = loop.time()
            try:
                current = await self._renderer.parts(session, page)
            except Unauthorized:
                await self._sessions.end(session)
                await _send(response, "bye", "The API server no longer accepts your token. Sign in again.")
                return
            except KubeError as error:
                await _send(response, "trouble", f"Not live: the API server cannot be reached: {error}")
                shown = None  # the next page is sent even if it is the same, to clear this message
            else:
                if shown is None or current.parts != shown.parts:
                    await _send(response, "page", msgspec.json.encode(current.parts).decode())
                shown = current
            # With many viewers and many changes, rendering takes at most half of the time.
            await asyncio.sleep(max(MIN_INTERVAL, 2 * (loop.time() - began)))
            await self._wait(response, subscription, shown.topics if shown else frozenset())

    async def _wait(
        self, response: web.StreamResponse, subscription: PageSubscription, topics: frozenset[Topic]
    ) -> None:
        """Return when the page is to be rendered again."""
        changed = await subscription.wait(self._heartbeat)
        if not changed:
            await _write(response, ": heartbeat\n\n")
        elif not changed & topics:  # only the counts in the navigation can have changed
            await subscription.wait_for(topics, NAV_DELAY)


async def _send(response: web.StreamResponse, event: str, data: str) -> None:
    lines = "".join(f"data: {line}\n" for line in data.split("\n"))
    await _write(response, f"event: {event}\n{lines}\n")


async def _write(response: web.StreamResponse, text: str) -> None:
    async with asyncio.timeout(SEND_TIMEOUT):
        await response.write(text.encode())
