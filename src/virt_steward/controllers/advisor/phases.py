"""The phases of a config, in groups that several steps and rules name, and the check of every transition."""

from __future__ import annotations

from typing import TYPE_CHECKING, get_args

from virt_steward.apis.virtplatformconfig import Phase as PhaseName

if TYPE_CHECKING:
    from virt_steward.apis.virtplatformconfig import Phase
    from virt_steward.controllers.advisor.steps.base import StatusStep

PHASES: tuple[Phase, ...] = get_args(PhaseName)

ANY: frozenset[Phase | None] = frozenset((*PHASES, None))
STARTING: frozenset[Phase | None] = frozenset({None, "Pending", "Drafting", "PrerequisiteFailed", "Ignored"})
"""There is no plan yet."""
IN_REVIEW: frozenset[Phase | None] = frozenset({"ReviewRequired"})
EXECUTING: frozenset[Phase | None] = frozenset({"InProgress"})
SETTLED: frozenset[Phase | None] = frozenset({"Completed", "CompletedWithErrors", "CompletedWithUpgrade", "Drifted"})
"""A plan was executed, or there was nothing to execute; the targets are watched for drift."""


class IllegalTransition(ValueError):
    """A step was taken in a phase in which it is not allowed: a bug of ours."""


def transition(before: Phase | None, step: StatusStep) -> Phase:
    """The phase after a step. Raises IllegalTransition."""
    if before not in step.allowed_in:
        raise IllegalTransition(f"{type(step).__name__} is not allowed in phase {before}")
    return step.next_phase(before)
