"""The record of a person's decision: annotations beside the change that it made, in the same write.

Each controller has them under its own prefix: `decision` is the verb and what it is about, `decided-by`, `decided-at`
and `decision-comment` say who, when and why. An admission policy holds `decided-by` to the name of the caller
(`runtime/admission.py`); everything else in them is the caller's own word.

Example: `platform.kubevirt.io/decision: release swap-enable@3f2c`, `platform.kubevirt.io/decided-by: alice`.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Literal, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

Verb = Literal[
    "approve",
    "reject",
    "rollback",
    "cancel-rollback",
    "replan",
    "activate",
    "stop-managing",
    "release",
    "resume",
    "choose",
]
LONGEST_NAME = 253
LONGEST_COMMENT = 1024


class _Wording(NamedTuple):
    reason: str
    """Of the event, for machines."""
    did: str
    """What the person did, after their name; `{}` stands for what it is about."""


WORDINGS: Mapping[str, _Wording] = {
    "approve": _Wording("ApprovalRecorded", "approved {}"),
    "reject": _Wording("RejectionRecorded", "rejected {}"),
    "rollback": _Wording("RollbackRequested", "asked for a rollback plan"),
    "cancel-rollback": _Wording("RollbackCancelled", "cancelled the rollback"),
    "replan": _Wording("PlanRequested", "asked for a new plan"),
    "activate": _Wording("PlanRequested", "activated the profile"),
    "stop-managing": _Wording("ManagementStopped", "stopped managing the profile"),
    "release": _Wording("ReleaseRecorded", "released {}"),
    "resume": _Wording("ResumeRecorded", "resumed it"),
    "choose": _Wording("ClusterChosen", "chose cluster {}"),
}


class DecisionKeys(NamedTuple):
    """The names of the annotations on the objects of one controller."""

    decision: str
    by: str
    at: str
    comment: str

    @classmethod
    def under(cls, prefix: str) -> DecisionKeys:
        """With the prefix of a controller, such as `vitistack.io/`."""
        return cls(f"{prefix}decision", f"{prefix}decided-by", f"{prefix}decided-at", f"{prefix}decision-comment")


@dataclass(frozen=True, slots=True)
class DecisionRecord:
    """Who decided what, when and why."""

    verb: str
    subject: str
    """What it is about: a plan, staged changes, a cluster; empty if the verb says it all."""
    by: str
    at: datetime
    comment: str = ""

    @property
    def reason(self) -> str:
        return WORDINGS[self.verb].reason

    def __str__(self) -> str:
        did = WORDINGS[self.verb].did.format(self.subject).rstrip()
        return f"{self.by} {did}" + (f": {self.comment}" if self.comment else "")


def read_decision(annotations: Mapping[str, str], keys: DecisionKeys) -> DecisionRecord | None:
    """The last decision on an object; None if there is none, or if nobody has signed it.

    Who may write the object can write anything here but the name of somebody else, so all of it is bounded.
    """
    verb, _, subject = annotations.get(keys.decision, "").partition(" ")
    by, at = annotations.get(keys.by, ""), _moment(annotations.get(keys.at, ""))
    if verb not in WORDINGS or not by or at is None:
        return None
    comment = annotations.get(keys.comment, "")
    return DecisionRecord(verb, subject[:LONGEST_NAME], by[:LONGEST_NAME], at, comment[:LONGEST_COMMENT])


def _moment(text: str) -> datetime | None:
    try:
        return datetime.fromisoformat(text[:40]).astimezone(UTC)
    except (ValueError, OverflowError):
        return None
