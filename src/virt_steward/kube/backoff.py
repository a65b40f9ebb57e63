"""The delay after a failed watch: by cause, exponential, with jitter."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from virt_steward.kube.errors import (
    Expired,
    Forbidden,
    KubeError,
    ServerUnreachable,
    TimedOut,
    TooManyRequests,
    Unauthorized,
    Unavailable,
)

if TYPE_CHECKING:
    import random


@dataclass(frozen=True, slots=True)
class Pace:
    """Delays in seconds: the first, and the maximum after doubling."""

    first: float
    longest: float


# The first match counts. A server that restarts is found within seconds; one that refuses is asked less often.
PACES: tuple[tuple[type[KubeError], Pace], ...] = (
    (Expired, Pace(0.0, 2.0)),
    (TimedOut, Pace(0.0, 2.0)),
    (ServerUnreachable, Pace(0.1, 2.0)),
    (Unavailable, Pace(0.5, 30.0)),
    (Unauthorized, Pace(2.0, 60.0)),
    (Forbidden, Pace(2.0, 60.0)),
    (KubeError, Pace(1.0, 60.0)),
)
CLOSED_AT_ONCE = Pace(0.1, 5.0)


class RetryBackoff:
    """Counts failures since the last success, by cause: a long outage does not delay the retry after another cause."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        self._failures: Counter[Pace] = Counter()

    def succeeded(self) -> None:
        self._failures.clear()

    def after(self, error: KubeError) -> float:
        """Seconds to wait now."""
        pace = next(pace for cause, pace in PACES if isinstance(error, cause))
        delay = self._next(pace)
        # A server that starts or stops sends Retry-After: 5 with its 503. That is too long for a cache that waits.
        if isinstance(error, TooManyRequests) and error.retry_after is not None:
            return max(delay, error.retry_after)
        return delay

    def after_close(self) -> float:
        """Seconds to wait after a stream that the server ended early, without an error."""
        return self._next(CLOSED_AT_ONCE)

    def _next(self, pace: Pace) -> float:
        doublings = min(self._failures[pace], 16)
        self._failures[pace] += 1
        if doublings == 0 and pace.first == 0.0:
            return 0.0
        ceiling = min(max(pace.first, 0.1) * 2.0**doublings, pace.longest)
        return ceiling * self._rng.uniform(0.5, 1.0)
