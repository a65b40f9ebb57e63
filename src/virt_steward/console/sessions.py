"""Sessions of signed-in viewers: in memory, limited in number and time, with random ids."""

from __future__ import annotations

import hmac
import secrets
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from virt_steward.console.authentication import Viewer
    from virt_steward.console.rights import Rights
    from virt_steward.runtime.clock import Clock

MOST = 500
IDLE = 30 * 60.0
LONGEST = 12 * 3600.0


@dataclass(frozen=True, slots=True)
class Note:
    """The result of the viewer's last action; shown once."""

    text: str
    tone: str = "ok"


@dataclass(slots=True, eq=False)
class ViewerSession:
    """One browser of one viewer."""

    viewer: Viewer
    rights: Rights
    began: float
    last_used: float
    id: str = field(default_factory=lambda: secrets.token_urlsafe(32), repr=False)
    csrf: str = field(default_factory=lambda: secrets.token_urlsafe(32), repr=False)
    note: Note | None = None

    def accepts(self, csrf: str) -> bool:
        """Whether a form carries the CSRF token of this session."""
        return hmac.compare_digest(self.csrf.encode(), csrf.encode())

    def take_note(self) -> Note | None:
        note, self.note = self.note, None
        return note


class ViewerSessions:
    """At most MOST of them: beyond that, the session that was idle for longest ends."""

    def __init__(self, clock: Clock, *, most: int = MOST, idle: float = IDLE) -> None:
        self._clock = clock
        self._most = most
        self._idle = idle
        self._open: dict[str, ViewerSession] = {}

    async def begin(self, viewer: Viewer, rights: Rights) -> ViewerSession:
        """Always with a new id, so that one planted in the browser before is useless (session fixation)."""
        now = self._clock.now()
        for stale in [one for one in self._open.values() if self._is_over(one)]:
            await self.end(stale)
        while len(self._open) >= self._most:
            await self.end(min(self._open.values(), key=lambda one: one.last_used))
        session = ViewerSession(viewer, rights, began=now, last_used=now)
        self._open[session.id] = session
        return session

    async def find(self, identity: str) -> ViewerSession | None:
        """The session of a cookie; it counts as used now."""
        session = self._open.get(identity)
        if session is None:
            return None
        if self._is_over(session):
            await self.end(session)
            return None
        session.last_used = self._clock.now()
        return session

    def is_open(self, session: ViewerSession) -> bool:
        """Whether it is open, without counting as use."""
        return session.id in self._open and not self._is_over(session)

    async def end(self, session: ViewerSession) -> None:
        if self._open.pop(session.id, None):
            await session.viewer.leave()

    async def end_all(self) -> None:
        for session in list(self._open.values()):
            await self.end(session)

    def _is_over(self, session: ViewerSession) -> bool:
        now = self._clock.now()
        expires = session.viewer.expires
        return (
            now - session.last_used > self._idle
            or now - session.began > LONGEST
            or (expires is not None and self._clock.utc() >= expires)
        )
