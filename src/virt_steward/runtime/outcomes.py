"""The outcomes of a reconcile: done, or requeue after some time. Errors are retried, unless they are Terminal."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Done:
    """Nothing to do until the next event."""


@dataclass(frozen=True, slots=True)
class RequeueAfter:
    """Reconcile again after this time, even without an event."""

    seconds: float
    why: str


Outcome = Done | RequeueAfter


class Terminal(Exception):
    """An error that is not retried before the next event."""
