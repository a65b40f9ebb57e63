"""Whether an applied object works, by its own conditions, and if not, what is pending."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, slots=True)
class Ready:
    """The object works."""

    message: str


@dataclass(frozen=True, slots=True)
class NotReady:
    """The object does not work yet."""

    message: str


Health = Ready | NotReady


def health_from_conditions(live: Mapping[str, Any] | None) -> Health:
    """Judge an object by its status conditions; without any it counts as ready."""
    if live is None:
        return NotReady("the object does not exist")
    status = live.get("status") or {}
    observed = status.get("observedGeneration")
    if observed is not None and observed < live["metadata"].get("generation", 0):
        return NotReady("Waiting for its operator to observe the change")
    for condition in status.get("conditions") or ():
        if problem := _problem(condition):
            return NotReady(problem)
    return Ready("Applied successfully")


def _problem(condition: Mapping[str, Any]) -> str:
    kind, state = str(condition.get("type")), condition.get("status")
    message = f": {condition['message']}" if condition.get("message") else ""
    if kind.endswith("Degraded") and state == "True":
        return f"{kind}{message}"
    if kind.endswith("Progressing") and state == "True":
        return f"Waiting: {kind}{message}"
    if kind.endswith("Available") and state == "False":
        return f"Waiting: not {kind}{message}"
    return ""
