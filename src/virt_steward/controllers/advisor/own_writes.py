"""What we have written and not yet seen come back: until then, a cache tells of the past."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from virt_steward.objects.identity import Ref
    from virt_steward.runtime.clock import Clock

PATIENCE = 30.0
"""Seconds after which a cache is believed: what we wrote may have been deleted before it was ever seen."""


class OwnWrites:
    """The resourceVersion that a cache must have reached, by object."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._expected: dict[Ref, tuple[int, float]] = {}

    def expect(self, ref: Ref, version: str) -> None:
        self._expected[ref] = (int(version), self._clock.now() + PATIENCE)

    def is_behind(self, ref: Ref, version: str | None) -> bool:
        """Whether what a cache has is older than what we wrote. None: it has nothing."""
        expected, until = self._expected.get(ref, (0, 0.0))
        if (version is None or int(version) < expected) and self._clock.now() < until:
            return True
        self._expected.pop(ref, None)
        return False
