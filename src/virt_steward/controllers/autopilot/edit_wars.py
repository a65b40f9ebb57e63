"""Edit wars: somebody else sets a field as often as we do, so we slow down, and in the end leave it to a person."""

from __future__ import annotations

from collections import OrderedDict, deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from virt_steward.runtime.throttle import BucketEmpty, Rate, TokenBucket

if TYPE_CHECKING:
    from collections.abc import Hashable

RATE = Rate(capacity=10, per_second=10 / 60)
PAUSE_AFTER = 3
"""Throttles in a row."""
SHORTEST, LONGEST = 1.0, 30.0
"""Seconds between two throttles of an object: doubled each time, up to the longest."""
SAME_FIELD = 10
"""How often one field is set right within HOUR before its object is paused, however slowly that goes."""
HOUR = 3600.0


@dataclass(frozen=True, slots=True)
class WriteAllowed:
    """Write."""


@dataclass(frozen=True, slots=True)
class WriteThrottled:
    """Not now."""

    retry_in: float
    """Seconds."""
    why: str
    count: int
    """How many in a row, this one included."""


@dataclass(frozen=True, slots=True)
class PauseObject:
    """Not before a person has looked; said again until `resumed`, for the mark may not have been written yet."""

    why: str


@dataclass(slots=True)
class _War:
    bucket: TokenBucket
    used_at: float
    throttles: int = 0
    retry_at: float = 0.0
    paused: PauseObject | None = None
    paused_at: float = 0.0
    reverts: dict[str, deque[float]] = field(default_factory=dict)
    """The last times at which each field was set right."""


class EditWars:
    """What is remembered of each object, by key; those left alone for an hour are forgotten. Times are in seconds."""

    longest = LONGEST

    def __init__(self) -> None:
        self._wars: OrderedDict[Hashable, _War] = OrderedDict()  # the longest unused first

    def __len__(self) -> int:
        return len(self._wars)

    def attempt(self, key: Hashable, fields: frozenset[str], now: float) -> WriteAllowed | WriteThrottled | PauseObject:
        """Tell whether these fields may be set right now; with none of them, something else is wanted than before."""
        war = self._of(key, now)
        if war.paused:
            return war.paused
        if fought := sorted(name for name in fields if len(war.reverts.get(name, ())) >= SAME_FIELD):
            return _pause(war, f"{fought[0]} was set right {SAME_FIELD} times within an hour", now)
        if now < war.retry_at:
            return _throttled(war, war.retry_at - now)
        if not isinstance(war.bucket.take(now), BucketEmpty):
            return WriteAllowed()
        if not fields:  # nobody fights it
            return _throttled(war, SHORTEST)
        return _too_often(war, now)

    def applied(self, key: Hashable, fields: frozenset[str], now: float) -> None:
        """Note a write that has succeeded."""
        war = self._of(key, now)
        war.throttles, war.retry_at = 0, 0.0
        for name in fields:
            war.reverts.setdefault(name, deque(maxlen=SAME_FIELD)).append(now)

    def resumed(self, key: Hashable) -> None:
        """Begin anew: a person has removed the mark."""
        self._wars.pop(key, None)

    def _of(self, key: Hashable, now: float) -> _War:
        self._forget_unused(now)
        war = self._wars.get(key)
        if war is None or (war.paused and now - war.paused_at >= HOUR):
            war = self._wars[key] = _War(TokenBucket(RATE, now), now)
        war.used_at = now
        war.reverts = {name: recent for name, times in war.reverts.items() if (recent := _recent(times, now))}
        self._wars.move_to_end(key)
        return war

    def _forget_unused(self, now: float) -> None:
        while self._wars:
            key, war = next(iter(self._wars.items()))
            if now - war.used_at < HOUR:
                return
            del self._wars[key]


def _recent(times: deque[float], now: float) -> deque[float]:
    while times and now - times[0] >= HOUR:
        times.popleft()
    return times


def _too_often(war: _War, now: float) -> WriteThrottled | PauseObject:
    war.throttles += 1
    if war.throttles >= PAUSE_AFTER:
        return _pause(war, f"it was throttled {war.throttles} times in a row", now)
    wait = min(SHORTEST * 2 ** (war.throttles - 1), LONGEST)
    war.retry_at = now + wait
    return _throttled(war, wait)


def _throttled(war: _War, retry_in: float) -> WriteThrottled:
    return WriteThrottled(
        retry_in, f"it was changed too often (limit: {RATE.capacity} updates per minute)", war.throttles
    )


def _pause(war: _War, why: str, now: float) -> PauseObject:
    war.paused, war.paused_at = PauseObject(why), now
    return war.paused
