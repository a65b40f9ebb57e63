"""Edit wars: another client changes a field as often as we correct it. We slow down, and then pause the object.

Three counters find the three kinds of edit war:

- A fast one empties the token bucket of the object: ten writes, refilled at ten per minute. An empty bucket throttles
  the write, for 1 s, then 2 s. A third throttle in a row, without a successful write between, pauses the object.
- A slow one never empties the bucket, so corrections are also counted per field. For example, a cron job resets
  `.spec.mode` every five minutes and each time we correct it. After ten corrections of `.spec.mode` within an hour, the
  eleventh pauses the object instead.
- One under our own name: another instance of the autopilot, such as the Go operator, applies other values as the same
  field manager. The server records no other owner, so that looks as if only the intent had changed. It has not if the
  intent is the one that we applied last: then somebody else wrote these values. After three such rounds within an hour
  the object is paused; each round may reboot nodes.

A pause is an annotation on the object (`reconcile-paused`), so that it survives a restart; the counters are in memory
and may be lost. After the annotation is removed, the counters start at zero. A write without drift, because the
template wants something else than before, takes from the bucket too, but never pauses: nobody fights it.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from virt_steward.runtime.throttle import BucketEmpty, Rate, TokenBucket
from virt_steward.ssa.managers import AUTOPILOT

if TYPE_CHECKING:
    from collections.abc import Hashable

RATE = Rate(capacity=10, per_second=10 / 60)
PAUSE_AFTER = 3
"""Throttles in a row."""
SHORTEST, LONGEST = 1.0, 30.0
"""Seconds between two throttles of an object: doubled each time, up to the longest."""
SAME_FIELD = 10
"""How often one field is corrected within HOUR before its object is paused."""
OWN_ROUNDS = 3
"""How often values of another instance are corrected within HOUR before the object is paused."""
HOUR = 3600.0
OTHER_INSTANCE = f"another instance writes as {AUTOPILOT.name}"


@dataclass(frozen=True, slots=True)
class Correction:
    """What a write corrects."""

    fields: frozenset[str] = frozenset()
    """Those that others have changed; none: only the intent differs."""
    own_fields: frozenset[str] = frozenset()
    """Those that only our own field manager owns, and that have another value than desired."""
    intent: str = ""
    """A digest of what is sent."""


@dataclass(frozen=True, slots=True)
class WriteAllowed:
    """The write may happen now."""


@dataclass(frozen=True, slots=True)
class WriteThrottled:
    """The write has to wait."""

    retry_in: float
    """Seconds."""
    message: str
    count: int
    """How many in a row, this one included."""


@dataclass(frozen=True, slots=True)
class PauseObject:
    """The object has to be paused; repeated until `resumed`, for the annotation may not have been written yet."""

    message: str


@dataclass(slots=True)
class _War:
    bucket: TokenBucket
    used_at: float
    throttles: int = 0
    retry_at: float = 0.0
    paused: PauseObject | None = None
    paused_at: float = 0.0
    reverts: dict[str, deque[float]] = field(default_factory=dict)
    """The last times at which each field was corrected."""
    written: str = ""
    """The digest of the intent that we applied last."""
    own_rounds: deque[float] = field(default_factory=lambda: deque(maxlen=OWN_ROUNDS))
    """The last times at which values of another instance were corrected."""

    def is_own(self, correction: Correction) -> bool:
        """Whether somebody else has written as our field manager since we applied the same intent."""
        return bool(correction.own_fields) and correction.intent == self.written


class EditWars:
    """What is remembered of each object, by key; forgotten after an hour without a write. Times are in seconds."""

    longest = LONGEST

    def __init__(self) -> None:
        self._wars: OrderedDict[Hashable, _War] = OrderedDict()  # the longest unused first

    def __len__(self) -> int:
        return len(self._wars)

    def attempt(self, key: Hashable, correction: Correction, now: float) -> WriteAllowed | WriteThrottled | PauseObject:
        """Whether a write that corrects this may happen now."""
        war = self._of(key, now)
        if war.paused:
            return war.paused
        if message := _war_message(war, correction):
            return _pause(war, message, now)
        if now < war.retry_at:
            return _throttled(war, war.retry_at - now)
        if not isinstance(war.bucket.take(now), BucketEmpty):
            return WriteAllowed()
        if not correction.fields and not war.is_own(correction):  # nobody fights it
            return _throttled(war, SHORTEST)
        return _too_often(war, now)

    def applied(self, key: Hashable, correction: Correction, now: float) -> None:
        """Record a write that has succeeded."""
        war = self._of(key, now)
        war.throttles, war.retry_at = 0, 0.0
        if war.is_own(correction):
            war.own_rounds.append(now)
        war.written = correction.intent
        for name in correction.fields:
            war.reverts.setdefault(name, deque(maxlen=SAME_FIELD)).append(now)

    def resumed(self, key: Hashable) -> None:
        """Start with fresh counters: a person has removed the annotation."""
        self._wars.pop(key, None)

    def reset(self) -> None:
        """Start all with fresh counters: the autopilot was turned off, so nobody fights it."""
        self._wars.clear()

    def _of(self, key: Hashable, now: float) -> _War:
        self._forget_unused(now)
        war = self._wars.get(key)
        if war is None or (war.paused and now - war.paused_at >= HOUR):
            war = self._wars[key] = _War(TokenBucket(RATE, now), now)
        war.used_at = now
        war.reverts = {name: recent for name, times in war.reverts.items() if (recent := _recent(times, now))}
        _recent(war.own_rounds, now)
        self._wars.move_to_end(key)
        return war

    def _forget_unused(self, now: float) -> None:
        while self._wars:
            key, war = next(iter(self._wars.items()))
            if now - war.used_at < HOUR:
                return
            del self._wars[key]


class Pauses:
    """Which objects are paused, to notice when a person resumes them."""

    def __init__(self) -> None:
        self._versions: dict[str, int] = {}

    def begun(self, asset: str, version: int) -> None:
        """The object has been paused by a write of this resourceVersion, which the watch may not have delivered yet."""
        self._versions[asset] = version

    def ended(self, asset: str, version: int, *, is_paused: bool) -> bool:
        """Whether the object was paused, and no longer is. `version` is what the watch has delivered; 0: no object.

        A person may resume it so soon that the watch delivers both changes as one.
        """
        if is_paused:
            self._versions[asset] = version
            return False
        begun = self._versions.get(asset)
        if begun is None or 0 < version <= begun:
            return False
        del self._versions[asset]
        return True


def _recent(times: deque[float], now: float) -> deque[float]:
    while times and now - times[0] >= HOUR:
        times.popleft()
    return times


def _war_message(war: _War, correction: Correction) -> str:
    """Why the counters call this a war; empty if they do not."""
    if war.is_own(correction) and len(war.own_rounds) >= OWN_ROUNDS:
        return OTHER_INSTANCE
    fought = sorted(name for name in correction.fields if len(war.reverts.get(name, ())) >= SAME_FIELD)
    return f"{fought[0]} was corrected {SAME_FIELD} times within an hour" if fought else ""


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


def _pause(war: _War, message: str, now: float) -> PauseObject:
    war.paused, war.paused_at = PauseObject(message), now
    return war.paused
