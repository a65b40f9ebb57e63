"""How a reconcile ends: done, done until later, or with an error that is retried unless it is terminal."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Done:
    """Nothing to do before the next event."""


@dataclass(frozen=True, slots=True)
class RequeueAfter:
    """Nothing to do now; look again by then, even if no event comes."""

    seconds: float
    why: str


Outcome = Done | RequeueAfter


class Terminal(Exception):
    """Trying again cannot help before the next event. The message is for people."""
