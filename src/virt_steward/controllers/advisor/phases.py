"""The state machine as a table: from which phase, on what, to which."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto
from typing import TYPE_CHECKING, get_args

from virt_steward.apis.virtplatformconfig import Phase as PhaseName

if TYPE_CHECKING:
    from virt_steward.apis.virtplatformconfig import Phase

PHASES: tuple[Phase, ...] = get_args(PhaseName)


class On(Enum):
    """What makes a config go on."""

    IGNORED = auto()
    NOT_READY = auto()
    """Caches are still being filled."""
    PREREQUISITES_MISSING = auto()
    TARGETS_MOVING = auto()
    """Something changed while the plan was drafted."""
    PLAN_REJECTED = auto()
    """The server would not take it."""
    PLAN_EMPTY = auto()
    """Everything is as it should be."""
    REVIEW_NEEDED = auto()
    APPROVED = auto()
    """By a person, or by action Apply where that is enough."""
    PLAN_STALE = auto()
    ITEM_MOVED = auto()
    """An item was applied, waits, works or has failed, and the plan goes on."""
    ABORTED = auto()
    ALL_DONE = auto()
    DONE_BUT_FOR_ERRORS = auto()
    DRIFT_FOUND = auto()
    DRIFT_GONE = auto()
    DRIFT_GONE_BUT_FOR_ERRORS = auto()
    ENFORCED = auto()
    """Bypass mode applies again what has drifted."""
    LOGIC_CHANGED = auto()
    VERSION_ADOPTED = auto()
    NOTHING = auto()


ANY = frozenset((*PHASES, None))
SETTLED: frozenset[Phase | None] = frozenset({"Completed", "CompletedWithErrors", "CompletedWithUpgrade", "Drifted"})
STARTING: frozenset[Phase | None] = frozenset({None, "Pending", "Drafting", "PrerequisiteFailed", "Ignored"})


@dataclass(frozen=True, slots=True)
class Row:
    before: frozenset[Phase | None]
    on: On
    after: Phase


def _only(*phases: Phase) -> frozenset[Phase | None]:
    return frozenset(phases)


TABLE = (
    #   from                                  on                            to
    Row(ANY, On.IGNORED, "Ignored"),
    Row(STARTING, On.NOT_READY, "Pending"),
    Row(ANY, On.PREREQUISITES_MISSING, "PrerequisiteFailed"),
    # A new plan may be asked for in every phase.
    Row(ANY, On.TARGETS_MOVING, "Drafting"),
    Row(ANY, On.PLAN_REJECTED, "Failed"),
    Row(ANY, On.PLAN_EMPTY, "Completed"),
    Row(ANY, On.REVIEW_NEEDED, "ReviewRequired"),
    Row(ANY, On.APPROVED, "InProgress"),
    # Execution.
    Row(_only("ReviewRequired", "InProgress"), On.PLAN_STALE, "Failed"),
    Row(_only("InProgress"), On.ITEM_MOVED, "InProgress"),
    Row(_only("InProgress"), On.ABORTED, "Failed"),
    Row(_only("InProgress"), On.ALL_DONE, "Completed"),
    Row(_only("InProgress"), On.DONE_BUT_FOR_ERRORS, "CompletedWithErrors"),
    # Watching over what was done.
    Row(SETTLED, On.DRIFT_FOUND, "Drifted"),
    Row(_only("Drifted"), On.DRIFT_GONE, "Completed"),
    Row(_only("Drifted"), On.DRIFT_GONE_BUT_FOR_ERRORS, "CompletedWithErrors"),
    Row(SETTLED, On.ENFORCED, "InProgress"),
    Row(SETTLED, On.LOGIC_CHANGED, "CompletedWithUpgrade"),
    Row(_only("Completed", "CompletedWithUpgrade", "Drifted"), On.VERSION_ADOPTED, "Completed"),
    Row(_only("CompletedWithErrors"), On.VERSION_ADOPTED, "CompletedWithErrors"),
    *(Row(_only(phase), On.NOTHING, phase) for phase in PHASES),
)


class IllegalTransition(ValueError):
    """The table knows no such step: a bug of ours."""


def after(phase: Phase | None, on: On) -> Phase:
    """The next phase."""
    for row in TABLE:
        if row.on is on and phase in row.before:
            return row.after
    raise IllegalTransition(f"from {phase} on {on.name} leads nowhere")
