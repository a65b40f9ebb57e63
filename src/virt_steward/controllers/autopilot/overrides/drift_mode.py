"""Whether a difference is set right or only reported."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from virt_steward.controllers.autopilot.annotation_keys import DRIFT


class DriftMode(Enum):
    ENFORCE = "enforce"
    REPORT = "report"


@dataclass(frozen=True, slots=True)
class BadDriftMode:
    """Until it can be read, nothing is written: whoever set it may have meant just that."""

    why: str
    mode: DriftMode = DriftMode.REPORT


def drift_mode(annotation: str | None) -> DriftMode | BadDriftMode:
    """Differences are set right, unless somebody asks for a report."""
    if annotation is None:
        return DriftMode.ENFORCE
    try:
        return DriftMode(annotation.strip())
    except ValueError:
        known = " or ".join(repr(mode.value) for mode in DriftMode)
        return BadDriftMode(f"{DRIFT} is {annotation!r}, not {known}: differences are only reported until it is")
