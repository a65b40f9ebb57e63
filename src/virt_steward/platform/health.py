"""Whether an object that was applied works by now, and if not, what it waits for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, slots=True)
class Ready:
    """It does what it should."""

    message: str


@dataclass(frozen=True, slots=True)
class NotReady:
    """It may still come to work."""

    message: str


Health = Ready | NotReady


def by_conditions(live: Mapping[str, Any] | None) -> Health:
    """What the object says of itself; one that says nothing works."""
    if live is None:
        return NotReady("the object is not there (any more)")
    status = live.get("status") or {}
    observed = status.get("observedGeneration")
    if observed is not None and observed < live["metadata"].get("generation", 0):
        return NotReady("Waiting until its operator has seen the change")
    for condition in status.get("conditions") or ():
        if trouble := _trouble(condition):
            return NotReady(trouble)
    return Ready("Applied successfully")


def _trouble(condition: Mapping[str, Any]) -> str:
    kind, state = str(condition.get("type")), condition.get("status")
    said = f": {condition['message']}" if condition.get("message") else ""
    if kind.endswith("Degraded") and state == "True":
        return f"{kind}{said}"
    if kind.endswith("Progressing") and state == "True":
        return f"Waiting: {kind}{said}"
    if kind.endswith("Available") and state == "False":
        return f"Waiting: not {kind}{said}"
    return ""
