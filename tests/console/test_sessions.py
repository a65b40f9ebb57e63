"""Sessions are limited in number and time."""

from datetime import timedelta
from typing import Any

import pytest

from tests.runtime.clocks import ManualClock
from virt_steward.console.sessions import MOST_PER_USER, Note, ViewerSessions


class Guest:
    """A viewer without a client."""

    def __init__(self, name: str, expires: Any = None) -> None:
        self.user = name
        self.expires = expires
        self.has_left = False

    async def leave(self) -> None:
        self.has_left = True


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


async def test_sessions_end_the_idlest_when_full(clock: ManualClock) -> None:
    sessions = ViewerSessions(clock, most=2)
    guests = [Guest(name) for name in ("ann", "ben", "cid")]
    ann = await sessions.begin(guests[0], None)  # type: ignore[arg-type]
    await clock.advance(1)
    ben = await sessions.begin(guests[1], None)  # type: ignore[arg-type]
    await clock.advance(1)
    assert await sessions.find(ann.id) is ann
    await sessions.begin(guests[2], None)  # type: ignore[arg-type]
    assert await sessions.find(ann.id) is ann
    assert await sessions.find(ben.id) is None
    assert [guest.has_left for guest in guests] == [False, True, False]


async def test_sessions_of_one_user_never_end_those_of_others(clock: ManualClock) -> None:
    sessions = ViewerSessions(clock, most=100)
    ann = await sessions.begin(Guest("ann"), None)  # type: ignore[arg-type]
    mine = []
    for _ in range(505):
        await clock.advance(0.1)
        mine.append(await sessions.begin(Guest("ben"), None))  # type: ignore[arg-type]
    assert sessions.is_open(ann)
    assert [sessions.is_open(one) for one in mine] == [False] * (505 - MOST_PER_USER) + [True] * MOST_PER_USER


async def test_sessions_of_one_namespace_never_end_those_of_others(clock: ManualClock) -> None:
    sessions = ViewerSessions(clock, most=20)
    others = [await sessions.begin(Guest(name), None) for name in ("ann", "system:serviceaccount:ops:ben")]  # type: ignore[arg-type]
    mine = []
    for number in range(60):
        await clock.advance(0.1)
        mine.append(await sessions.begin(Guest(f"system:serviceaccount:tenant-x:{number}"), None))  # type: ignore[arg-type]
    assert all(sessions.is_open(one) for one in others)
    assert sum(sessions.is_open(one) for one in mine) == 18


async def test_session_ends_with_token(clock: ManualClock) -> None:
    sessions, guest = ViewerSessions(clock), Guest("ann", clock.utc() + timedelta(seconds=5))
    session = await sessions.begin(guest, None)  # type: ignore[arg-type]
    await clock.advance(4)
    assert sessions.is_open(session)
    await clock.advance(1)
    assert not sessions.is_open(session)
    assert await sessions.find(session.id) is None
    assert guest.has_left


async def test_live_page_does_not_extend_session(clock: ManualClock) -> None:
    sessions = ViewerSessions(clock, idle=10)
    session = await sessions.begin(Guest("ann"), None)  # type: ignore[arg-type]
    for _ in range(3):
        await clock.advance(4)
        still_open = sessions.is_open(session)
    assert not still_open


async def test_session_accepts_only_its_csrf_token_and_shows_note_once(clock: ManualClock) -> None:
    sessions = ViewerSessions(clock)
    ann, ben = [await sessions.begin(Guest(name), None) for name in ("ann", "ben")]  # type: ignore[arg-type]
    ann.note = Note("done")
    assert (ann.take_note(), ann.take_note()) == (Note("done"), None)
    assert ann.accepts(ann.csrf)
    assert not ann.accepts(ben.csrf)
    assert not ann.accepts("\ud800")
    assert ann.id != ben.id
