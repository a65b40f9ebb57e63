"""What came of a decision. A refused decision has written nothing; errors of the API server are raised."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Decided:
    """The decision was written."""

    message: str


@dataclass(frozen=True, slots=True)
class NotDecided:
    """The decision was refused; nothing was written."""

    title: str
    """Which decision, such as `Not rejected`."""
    reason: str


@dataclass(frozen=True, slots=True)
class PartlyDecided:
    """Something was written, or may have been, but not all of the decision."""

    title: str
    reason: str


Outcome = Decided | NotDecided | PartlyDecided


@dataclass(frozen=True, slots=True)
class NotApproved:
    """The approval was refused; nothing was written."""

    subject: str
    """The profile or the InstallPlan."""
    reason: str
