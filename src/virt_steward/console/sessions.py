"""Sessions of signed-in viewers: in memory, limited in number and time, with random ids."""

from __future__ import annotations

import secrets
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from virt_steward.console.authentication import is_same_secret

if TYPE_CHECKING:
    from collections.abc import Iterable

    from virt_steward.console.authentication import Viewer
    from virt_steward.console.rights import Rights
    from virt_steward.runtime.clock import Clock

MOST = 500
MOST_PER_USER = 50
"""A tenth of all. Several people may share an account, such as that of a team."""
SERVICE_ACCOUNT = "system:serviceaccount:"
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
        return is_same_secret(self.csrf, csrf)

    def take_note(self) -> Note | None:
        note, self.note = self.note, None
        return note


class ViewerSessions:
    """At most MOST_PER_USER of one user and MOST in all: beyond that, a session that was idle for longest ends.

    If a user has too many, it is one of theirs. If there are too many in all, it is one of the owner with the most, so
    that nobody can end the sessions of others by signing in again and again. The ServiceAccounts of a namespace count
    as one owner, since a tenant may create any number of them.
    """

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
        while surplus := self._surplus(viewer.user):
            await self.end(surplus)
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

    def _surplus(self, user: str) -> ViewerSession | None:
        """The session to end before this user gets one more; None if there is room."""
        theirs = [one for one in self._open.values() if one.viewer.user == user]
        if len(theirs) >= MOST_PER_USER:
            return _idlest(theirs)
        if len(self._open) < self._most:
            return None
        sizes = Counter(_owner(one.viewer.user) for one in self._open.values())
        largest = max(sizes.values())
        return _idlest([one for one in self._open.values() if sizes[_owner(one.viewer.user)] == largest])

    def _is_over(self, session: ViewerSession) -> bool:
        now = self._clock.now()
        expires = session.viewer.expires
        return (
            now - session.last_used > self._idle
            or now - session.began > LONGEST
            or (expires is not None and self._clock.utc() >= expires)
        )


def _idlest(sessions: Iterable[ViewerSession]) -> ViewerSession:
    return min(sessions, key=lambda one: one.last_used)


def _owner(user: str) -> str:
    """The user, or the namespace of a ServiceAccount."""
    return user.rpartition(":")[0] if user.startswith(SERVICE_ACCOUNT) else user
