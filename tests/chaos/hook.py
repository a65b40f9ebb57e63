"""What a forked controller gets before it starts: a wall clock that can jump, and at most one planted bug."""

import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

from virt_steward.holds import gate_board
from virt_steward.runtime.clock import SystemClock

CLOCK = "CHAOS_CLOCK"
"""The name of a variable: a file with the seconds by which the wall clock is off."""
MUTATION = "CHAOS_MUTATION"


GATES_REMEMBERED = 0.5
"""Seconds for which an answer of a gate counts; for a real cluster, that would be longer than a seed."""


def prepare() -> None:
    gate_board.REMEMBERED = GATES_REMEMBERED
    if path := os.environ.get(CLOCK):
        follow_clock(Path(path))
    if name := os.environ.get(MUTATION):
        from tests.chaos.mutations import MUTATIONS  # noqa: PLC0415 - only then

        MUTATIONS[name].plant()


def follow_clock(path: Path) -> None:
    """The clock that all controllers read for the time of day. Deadlines are on another one, which cannot jump."""

    def utc(_: SystemClock) -> datetime:
        return datetime.now(UTC) + timedelta(seconds=float(path.read_text()))

    SystemClock.utc = utc  # type: ignore[method-assign]
