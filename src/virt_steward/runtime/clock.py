"""Time as an argument, so that tests need not wait."""

from __future__ import annotations

import asyncio
import time
from datetime import UTC, datetime
from typing import Protocol

# Includes the time in which the machine is suspended; on macOS, the monotonic clock does so itself.
_SINCE_BOOT: int = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


class Clock(Protocol):
    def now(self) -> float:
        """Monotonic seconds, which include suspended time: for deadlines and durations."""

    def utc(self) -> datetime:
        """The current time in UTC: for what people or other machines read."""

    async def sleep(self, seconds: float) -> None:
        """Wait at least this long. A suspended machine makes it longer: check `now()` where that matters."""


class SystemClock:
    def now(self) -> float:
        return time.clock_gettime(_SINCE_BOOT)

    def utc(self) -> datetime:
        return datetime.now(UTC)

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)
