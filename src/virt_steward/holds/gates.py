"""Gates: a change begins only while those that it names are open. Pure: what a gate is, and what it answered.

A gate that is not defined, or that cannot be evaluated, is closed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from virt_steward.objects.wallclock import rfc3339

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from datetime import datetime

GATE_CLOSED = "GateClosed"
"""The reason, in conditions and in lists of what is pending."""
LONGEST_EVIDENCE = 300
"""Characters."""


@dataclass(frozen=True, slots=True)
class GateState:
    """What a gate answered."""

    name: str
    is_open: bool
    evidence: str = ""
    """Why it is closed: the first objects, alerts, or what failed."""
    since: datetime | None = None
    """Since when it is closed, as far as this process has asked."""

    @property
    def message(self) -> str:
        since = f" since {rfc3339(self.since)}" if self.since else ""
        return f"gate {self.name} is closed{since}: {self.evidence[:LONGEST_EVIDENCE]}"


GateStates = dict[str, GateState]
"""By name. A gate that is missing was not evaluated."""


@dataclass(frozen=True, slots=True)
class NotEvaluated:
    """These gates have to be evaluated before anything can be decided."""

    names: tuple[str, ...]

    @property
    def message(self) -> str:
        return f"gates {', '.join(self.names)} are evaluated when nothing else holds it back"


@dataclass(frozen=True, slots=True)
class ClosedGates:
    """At least one gate is closed."""

    states: tuple[GateState, ...]

    @property
    def message(self) -> str:
        return "; ".join(one.message for one in self.states)


def closed_gates(names: Iterable[str], known: Mapping[str, GateState]) -> ClosedGates | NotEvaluated | None:
    """What keeps a change with these gates from beginning; None if all of them are open."""
    wanted = tuple(dict.fromkeys(names))
    if missing := tuple(name for name in wanted if name not in known):
        return NotEvaluated(missing)
    closed = tuple(known[name] for name in wanted if not known[name].is_open)
    return ClosedGates(closed) if closed else None
