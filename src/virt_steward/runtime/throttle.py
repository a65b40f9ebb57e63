"""Token buckets: so much at once, and then so much per second."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)

_ONE = 1 - 1e-6  # a caller that waited `retry_in` must not find a millionth missing


@dataclass(frozen=True, slots=True)
class TokenTaken:
    """Go ahead."""


@dataclass(frozen=True, slots=True)
class BucketEmpty:
    """Not now."""

    retry_in: float
    """Seconds until there is a token again."""


@dataclass(frozen=True, slots=True)
class Rate:
    """What a bucket holds, and how fast it fills."""

    capacity: int
    per_second: float

    @property
    def seconds_to_fill(self) -> float:
        return self.capacity / self.per_second


class TokenBucket:
    """Full at first. Times are those of one clock, in seconds."""

    __slots__ = ("_rate", "_tokens", "used_at")

    def __init__(self, rate: Rate, now: float) -> None:
        self._rate = rate
        self._tokens = float(rate.capacity)
        self.used_at = now

    def take(self, now: float) -> TokenTaken | BucketEmpty:
        refill = (now - self.used_at) * self._rate.per_second
        self._tokens = min(self._rate.capacity, self._tokens + refill)
        self.used_at = now
        if self._tokens < _ONE:
            return BucketEmpty(retry_in=(1 - self._tokens) / self._rate.per_second)
        self._tokens -= 1
        return TokenTaken()


class KeyedBuckets(Generic[K]):
    """A bucket per key. One left alone until it must be full again is forgotten, so idle keys cost nothing."""

    def __init__(self, rate: Rate) -> None:
        self._rate = rate
        self._buckets: OrderedDict[K, TokenBucket] = OrderedDict()  # the longest unused first

    def __len__(self) -> int:
        return len(self._buckets)

    def take(self, key: K, now: float) -> TokenTaken | BucketEmpty:
        self._forget_full(now)
        bucket = self._buckets.setdefault(key, TokenBucket(self._rate, now))
        self._buckets.move_to_end(key)
        return bucket.take(now)

    def _forget_full(self, now: float) -> None:
        while self._buckets:
            key, bucket = next(iter(self._buckets.items()))
            if now - bucket.used_at < self._rate.seconds_to_fill:
                return
            del self._buckets[key]
