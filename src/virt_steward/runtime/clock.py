"""Time as an argument, so that whoever waits or measures can be tested without waiting."""

from __future__ import annotations

import asyncio
import time
from datetime import UTC, datetime
from typing import Protocol

# Counts the time a machine is suspended; where it does not exist (macOS), the monotonic clock does so itself.
_SINCE_BOOT: int = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


class Clock(Protocol):
    def now(self) -> float:
        """Seconds that only go forward and go on while the machine is suspended: for deadlines and durations."""

    def utc(self) -> datetime:
        """The time of day, aware: for what people or other machines read."""

    async def sleep(self, seconds: float) -> None:
        """Wait at least that long. A suspended machine makes it longer: check `now()` where that matters."""


class SystemClock:
    def now(self) -> float:
        return time.clock_gettime(_SINCE_BOOT)

    def utc(self) -> datetime:
        return datetime.now(UTC)

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)
