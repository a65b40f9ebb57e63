"""Token buckets: a burst at once, and then a rate per second."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)

_ONE = 1 - 1e-6  # rounding must not fail a caller that waited for `retry_in`


@dataclass(frozen=True, slots=True)
class TokenTaken:
    """The caller may proceed."""


@dataclass(frozen=True, slots=True)
class BucketEmpty:
    """The caller must wait."""

    retry_in: float
    """Seconds until there is a token again."""


@dataclass(frozen=True, slots=True)
class Rate:
    """The capacity of a bucket, and how fast it refills."""

    capacity: int
    per_second: float

    @property
    def seconds_to_fill(self) -> float:
        return self.capacity / self.per_second


class TokenBucket:
    """Starts full. Times are seconds of one clock."""

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
    """One bucket per key. A bucket that has been idle until it is full is dropped, so idle keys cost nothing."""

    def __init__(self, rate: Rate) -> None:
        self._rate = rate
        self._buckets: OrderedDict[K, TokenBucket] = OrderedDict()  # least recently used first

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
