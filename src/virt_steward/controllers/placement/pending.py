"""Which machines wait for a cluster, since when, and why."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from virt_steward.controllers.placement.verdicts import Blocked
    from virt_steward.objects.identity import Key
    from virt_steward.runtime.clock import Clock


@dataclass(frozen=True, slots=True)
class PendingMachine:
    blocked: Blocked
    since: float
    """On the clock."""


class PendingMachines:
    """Derived from the cluster and never written down: after a restart, every machine is judged again."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._waits: dict[Key, PendingMachine] = {}
        self._woken: dict[Key, float] = {}

    def __iter__(self) -> Iterator[Key]:
        return iter(tuple(self._waits))

    def woken(self, machine: Key) -> None:
        """The machine is about to be judged: what clusters say from now on counts."""
        self._woken.setdefault(machine, self._clock.now())

    def begin(self, machine: Key) -> float:
        """Give the time from which on clusters' answers count for the attempt that begins."""
        return self._woken.pop(machine, self._clock.now())

    def block(self, machine: Key, blocked: Blocked) -> bool:
        """Keep what it waits for; tells whether that is news."""
        before = self._waits.get(machine)
        self._waits[machine] = PendingMachine(blocked, before.since if before else self._clock.now())
        return before is None or before.blocked != blocked

    def reported(self, machine: Key) -> Blocked | None:
        """The error that was last reported for it; None if there was none since this process began to lead."""
        pending = self._waits.get(machine)
        return pending.blocked if pending else None

    def waited(self, machine: Key) -> float:
        """Seconds since it was first judged and found to wait."""
        wait = self._waits.get(machine)
        return self._clock.now() - wait.since if wait else 0.0

    def end(self, machine: Key) -> None:
        """It waits no more."""
        self._waits.pop(machine, None)
        self._woken.pop(machine, None)
