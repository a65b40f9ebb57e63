"""Derived values are derived again when their key is touched, or when they expire."""

import asyncio
from collections.abc import AsyncIterator
from datetime import datetime, timedelta

import pytest

from tests.eventually import eventually
from virt_steward.console.derived_cache import DerivedCache
from virt_steward.runtime.clock import SystemClock


class Doubling:
    """A rule that doubles known numbers."""

    def __init__(self) -> None:
        self.known: dict[str, int] = {}
        self.ends: datetime | None = None
        self.asked = 0
        self.prepared: list[str] = []

    async def prepare(self, key: str) -> None:
        self.prepared.append(key)

    def derive(self, key: str) -> int | None:
        self.asked += 1
        return 2 * self.known[key] if key != "none" else None

    def expires(self, _value: int) -> datetime | None:
        ends, self.ends = self.ends, None
        return ends


@pytest.fixture
def rule() -> Doubling:
    return Doubling()


@pytest.fixture
async def derived(rule: Doubling) -> AsyncIterator[DerivedCache[str, int]]:
    made: DerivedCache[str, int] = DerivedCache(rule, SystemClock(), lambda: None)
    running = asyncio.create_task(made.run())
    yield made
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)


async def test_derived_cache_derives_touched_key_once(rule: Doubling, derived: DerivedCache[str, int]) -> None:
    rule.known["a"] = 1
    derived.touch("a")
    derived.touch("a")
    assert derived.is_behind
    assert await eventually(lambda: derived.get("a") == 2)
    assert (rule.asked, rule.prepared, derived.is_behind) == (1, ["a"], False)


async def test_derived_cache_survives_bad_key(rule: Doubling, derived: DerivedCache[str, int]) -> None:
    rule.known["good"] = 3
    derived.touch("bad")
    derived.touch("good")
    assert await eventually(lambda: derived.get("good") == 6)
    assert list(derived) == [6]


async def test_derived_cache_derives_expired_value_again(rule: Doubling, derived: DerivedCache[str, int]) -> None:
    rule.known["a"], rule.ends = 1, SystemClock().utc() + timedelta(seconds=0.1)
    derived.touch("a")
    assert await eventually(lambda: derived.get("a") == 2)
    rule.known["a"] = 5
    assert await eventually(lambda: derived.get("a") == 10)


async def test_derived_cache_drops_key_without_value(rule: Doubling, derived: DerivedCache[str, int]) -> None:
    rule.known["none"] = 1
    derived.touch("none")
    assert await eventually(lambda: rule.asked == 1)
    assert len(derived) == 0


async def test_derived_cache_stops_despite_new_touch(rule: Doubling) -> None:
    derived: DerivedCache[str, int] = DerivedCache(rule, SystemClock(), lambda: None)
    rule.known["a"], rule.ends = 1, SystemClock().utc() + timedelta(hours=1)
    derived.touch("a")
    running = asyncio.create_task(derived.run())
    assert await eventually(lambda: derived.get("a") == 2)
    derived.touch("a")
    running.cancel()
    assert await eventually(running.cancelled)
