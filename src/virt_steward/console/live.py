"""Keeps an open page up to date: server-sent events with what has changed of it, for this viewer."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import msgspec
from aiohttp import web

from virt_steward.console.rendering import PageRequest
from virt_steward.kube.errors import KubeError, Unauthorized

if TYPE_CHECKING:
    from virt_steward.console.hub import Hub, Listener, Topic
    from virt_steward.console.rendering import PageRenderer, RenderedPage
    from virt_steward.console.sessions import ViewerSession, ViewerSessions

BREATH = 0.2
"""Seconds between two looks: what changes in between is shown together."""
UNHURRIED = 0.5
"""Seconds after which a change of other pages shows in the navigation of this one, unless this one changes sooner."""
HEARTBEAT = 10.0
"""Seconds of silence after which the viewer's rights and the connection are checked."""
SECONDS_TO_READ = 60.0
STREAMS_PER_SESSION = 20


class LiveUpdates:
    """The streams of all viewers."""

    def __init__(self, desk: PageRenderer, hub: Hub, sessions: ViewerSessions, *, heartbeat: float = HEARTBEAT) -> None:
        self._desk = desk
        self._hub = hub
        self._sessions = sessions
        self._heartbeat = heartbeat
        self._open: dict[str, int] = {}
        self._stopping = asyncio.Event()

    def stop(self) -> None:
        self._stopping.set()
        for listener in self._hub:
            listener.tell("activity")

    async def stream(self, request: web.Request, session: ViewerSession) -> web.StreamResponse:
        asked = PageRequest.of(request.query.get("page", ""))
        if asked is None:
            return web.Response(status=404)
        if self._open.get(session.id, 0) >= STREAMS_PER_SESSION:
            return web.Response(status=429, text="too many pages are open\n")
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream", "X-Accel-Buffering": "no"})
        await response.prepare(request)
        listener = self._hub.join()
        self._open[session.id] = self._open.get(session.id, 0) + 1
        try:
            await self._follow(response, session, asked, listener)
        except ConnectionResetError:  # they closed the page
            pass
        except TimeoutError:  # they keep it open and no longer read: waiting for them would keep all that it holds
            if request.transport:
                request.transport.abort()
        finally:
            self._hub.leave(listener)
            self._open[session.id] -= 1
            if not self._open[session.id]:
                del self._open[session.id]
        return response

    async def _follow(
        self, response: web.StreamResponse, session: ViewerSession, asked: PageRequest, listener: Listener
    ) -> None:
        shown: RenderedPage | None = None
        loop = asyncio.get_running_loop()
        while not self._stopping.is_set():
            if not self._sessions.is_open(session):
                await _send(response, "bye", "Your session has ended. Sign in again.")
                return
            began = loop.time()
            try:
                fresh = await self._desk.parts(session, asked)
            except Unauthorized:
                await self._sessions.end(session)
                await _send(response, "bye", "Your token is no longer accepted. Sign in again.")
                return
            except KubeError as error:
                await _send(response, "trouble", f"The API server cannot be asked: {error}")
                shown = None  # the next page is sent even if it is the same: it takes this back
            else:
                if shown is None or fresh.parts != shown.parts:
                    await _send(response, "page", msgspec.json.encode(fresh.parts).decode())
                shown = fresh
            # Where much changes and many look, rendering takes half of the time and no more.
            await asyncio.sleep(max(BREATH, 2 * (loop.time() - began)))
            await self._wait(response, listener, shown.topics if shown else frozenset())

    async def _wait(self, response: web.StreamResponse, listener: Listener, topics: frozenset[Topic]) -> None:
        """Until there is another look to take."""
        heard = await listener.heard(self._heartbeat)
        if not heard:
            await _write(response, ": still here\n\n")
        elif not heard & topics:  # only the numbers in the navigation can have changed
            await listener.heard_of(topics, UNHURRIED)


async def _send(response: web.StreamResponse, event: str, data: str) -> None:
    lines = "".join(f"data: {line}\n" for line in data.split("\n"))
    await _write(response, f"event: {event}\n{lines}\n")


async def _write(response: web.StreamResponse, text: str) -> None:
    async with asyncio.timeout(SECONDS_TO_READ):
        await response.write(text.encode())
