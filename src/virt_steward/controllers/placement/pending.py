"""The Machines that are pending: since when, and by which error."""

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
    """Derived from the cluster and never stored: after a restart, every Machine is evaluated again."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._pending: dict[Key, PendingMachine] = {}
        self._changed: dict[Key, float] = {}

    def __iter__(self) -> Iterator[Key]:
        return iter(tuple(self._pending))

    def note_change(self, machine: Key) -> None:
        """Something changed that may concern the Machine: answers of clusters count for it from now on."""
        self._changed.setdefault(machine, self._clock.now())

    def begin(self, machine: Key) -> float:
        """Begin an evaluation; returns the time from which answers of clusters count for it.

        That is the first change since the last evaluation began, not the time of this call. Example: 500 Machines are
        created at 12:00:00 and evaluated one after the other until 12:00:04. One list of each cluster that begins after
        12:00:00 then serves all of them; with the time of the call, each of them would need a list of its own.
        """
        return self._changed.pop(machine, self._clock.now())

    def block(self, machine: Key, blocked: Blocked) -> bool:
        """Remember the error; returns whether it is new."""
        before = self._pending.get(machine)
        self._pending[machine] = PendingMachine(blocked, before.since if before else self._clock.now())
        return before is None or before.blocked != blocked

    def reported(self, machine: Key) -> Blocked | None:
        """The error that this process reported last for the Machine, if it is pending."""
        pending = self._pending.get(machine)
        return pending.blocked if pending else None

    def seconds(self, machine: Key) -> float:
        """For how long it has been pending, as far as this process knows."""
        pending = self._pending.get(machine)
        return self._clock.now() - pending.since if pending else 0.0

    def end(self, machine: Key) -> None:
        """It is pending no more."""
        self._pending.pop(machine, None)
        self._changed.pop(machine, None)
