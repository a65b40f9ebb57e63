"""Values derived from cached records: computed in the background, and kept until something changes."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from itertools import islice
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

import structlog

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterator
    from datetime import datetime

    from virt_steward.runtime.clock import Clock

log = structlog.get_logger()

K = TypeVar("K", bound="Hashable")
V = TypeVar("V")
K_contra = TypeVar("K_contra", contravariant=True)

BATCH = 50
"""How many keys are derived before other tasks get their turn."""
TURN = 0.02
"""Seconds after which they get it in any case."""


class DerivationRule(Protocol[K_contra, V]):
    """How to get from a key to its value."""

    async def prepare(self, key: K_contra) -> None:
        """Compute what takes long and is remembered, in portions that leave others their turn."""

    def derive(self, key: K_contra) -> V | None:
        """None: there is no value for this key."""

    def expires(self, value: V) -> datetime | None:
        """When the value changes without any event, if it does."""


class DerivedCache(Generic[K, V]):
    """Pages read the values that are there, without waiting for those still to be derived."""

    def __init__(self, rule: DerivationRule[K, V], clock: Clock, changed: Callable[[], None]) -> None:
        self._rule = rule
        self._clock = clock
        self._changed = changed
        self._values: dict[K, V] = {}
        self._due: dict[K, datetime] = {}
        self._touched: OrderedDict[K, None] = OrderedDict()
        self._wake = asyncio.Event()

    def __len__(self) -> int:
        return len(self._values)

    def __iter__(self) -> Iterator[V]:
        return iter(list(self._values.values()))

    @property
    def is_behind(self) -> bool:
        """Whether touched keys are still to be derived."""
        return bool(self._touched)

    def get(self, key: K) -> V | None:
        return self._values.get(key)

    def touch(self, key: K) -> None:
        """Derive this key again."""
        self._touched[key] = None
        self._wake.set()

    async def run(self) -> None:
        """Ends only by cancellation."""
        while True:
            while self._touched:
                await self._derive_some()
                await asyncio.sleep(0)
            self._wake.clear()
            try:
                async with asyncio.timeout(self._seconds_until_due()):
                    await self._wake.wait()
            except TimeoutError:
                now = self._clock.utc()
                for key in [key for key, due in self._due.items() if due <= now]:
                    self.touch(key)

    def _seconds_until_due(self) -> float | None:
        if not self._due:
            return None
        return max((min(self._due.values()) - self._clock.utc()).total_seconds(), 0.05)

    async def _derive_some(self) -> None:
        is_changed, begin = False, self._clock.now()
        for key in list(islice(self._touched, BATCH)):
            await self._rule.prepare(key)
            self._touched.pop(key, None)
            before = self._values.get(key)
            after = self._value(key)
            if after is None:
                self._values.pop(key, None)
            else:
                self._values[key] = after
            is_changed |= before != after
            if self._clock.now() - begin > TURN:
                break
        if is_changed:
            self._changed()

    def _value(self, key: K) -> V | None:
        self._due.pop(key, None)
        try:
            value = self._rule.derive(key)
            due = None if value is None else self._rule.expires(value)
        except Exception:  # one bad object must not hide the others
            log.exception("value not derived", key=str(key))
            return None
        if due:
            self._due[key] = due
        return value
