"""Approvals by several people, kept in one annotation. Pure functions.

Each line of the annotation is the approval of one plan by one person: the hash of the plan, the time, the comment and
the name of the user, separated by spaces:

    3f6c…e1 2030-01-07T12:00:00Z tested%20on%20staging alice

The name comes last, so it may contain spaces. In the comment they are escaped, and `-` is no comment. One annotation
serves all, because the key of an annotation cannot hold a user name; and lines, because an admission policy can split
them and hold every new line to the name of the caller (`runtime/admission.py`). A line of another plan counts nothing.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime
from urllib.parse import quote, unquote

from virt_steward.objects.wallclock import rfc3339

MOST_LINES = 32
LONGEST_TEXT = 65_536
"""Characters of the whole annotation. Beyond a limit, nothing in it counts."""
LONGEST_COMMENT = 1024
LONGEST_USER = 512
NO_COMMENT = "-"
_ESCAPED = re.compile(r"[%\s]")
_PARTS = 4


@dataclass(frozen=True, slots=True)
class PersonalApproval:
    """The approval of one plan by one person."""

    plan: str
    """The hash of the plan."""
    user: str
    at: datetime | None
    """When, as the annotation says; None if that cannot be read."""
    comment: str = ""


@dataclass(frozen=True, slots=True)
class ApprovalCount:
    """The approvals that count for a plan, and how many are required."""

    required: int
    approvals: tuple[PersonalApproval, ...]
    """One for each person, the oldest first."""
    requester: str | None = None
    """Who asked for the plan, if their approval does not count; empty if that is not known."""

    @property
    def users(self) -> tuple[str, ...]:
        return tuple(one.user for one in self.approvals)

    @property
    def missing(self) -> int:
        return max(self.required - len(self.approvals), 0)

    @property
    def is_complete(self) -> bool:
        """Whether enough people approved. If the requester is not known, one of them may be the requester."""
        return self.missing == 0 and self.requester != ""

    def __str__(self) -> str:
        given = f" ({', '.join(self.users)})" if self.approvals else ""
        text = f"{len(self.approvals)} of {self.required} approvals{given}"
        if self.requester == "":
            return f"{text}; nobody is recorded as the requester, whose approval does not count: ask for a new plan"
        if self.missing == 0:
            return text
        more, people = ("one", "somebody") if self.missing == 1 else (str(self.missing), "people")
        others = f" from {people} other than the requester {self.requester}" if self.requester else ""
        return f"{text}; needs {more} more{others}"


def already_approved(count: ApprovalCount) -> str:
    """What users read who approve a plan for the second time."""
    return f"you had approved it before, so nothing was changed: {count}"


def unenforced(policy: str) -> str:
    """What users read while the API server does not hold approvals to their names."""
    return (
        f"ValidatingAdmissionPolicy {policy} or its binding is not found or not readable, so anybody could approve"
        " in the name of others: install it with 'virt-steward policies | kubectl apply -f -'"
    )


def count_approvals(text: str, plan: str, required: int, requester: str | None = None) -> ApprovalCount:
    """Count the people who approved this plan, each of them once, without the requester."""
    by_user: dict[str, PersonalApproval] = {}
    for one in parse_approvals(text):
        if plan and one.plan == plan and one.user != requester:
            by_user.setdefault(one.user, one)
    return ApprovalCount(required, tuple(by_user.values()), requester)


def parse_approvals(text: str) -> tuple[PersonalApproval, ...]:
    """All approvals in the annotation, also of other plans. Lines that cannot be read are left out."""
    lines = text.split("\n") if len(text) <= LONGEST_TEXT else []
    if len(lines) > MOST_LINES:
        return ()
    return tuple(found for found in map(_parsed, lines) if found)


def add_approval(text: str, approval: PersonalApproval) -> str:
    """The annotation with one more approval, and without those of other plans, which are void.

    Lines of others stay as they are: the admission policy takes a line that differs in anything for a new one.
    """
    kept: dict[str, str] = {}
    for line in text[:LONGEST_TEXT].split("\n"):
        found = _parsed(line)
        if found and found.plan == approval.plan and found.user != approval.user:
            kept.setdefault(found.user, line)
    return "\n".join((*tuple(kept.values())[: MOST_LINES - 1], _line(approval)))


def _parsed(line: str) -> PersonalApproval | None:
    parts = line.split(" ", _PARTS - 1)
    if len(parts) < _PARTS or not 0 < len(parts[-1]) <= LONGEST_USER:
        return None
    plan, time, comment, user = parts
    try:
        at = datetime.fromisoformat(time).astimezone(UTC)
    except (ValueError, OverflowError):
        at = None
    return PersonalApproval(plan, user, at, "" if comment == NO_COMMENT else unquote(comment)[:LONGEST_COMMENT])


def _line(approval: PersonalApproval) -> str:
    time = rfc3339(approval.at) if approval.at else NO_COMMENT
    comment = _ESCAPED.sub(lambda found: quote(found[0], safe=""), approval.comment) or NO_COMMENT
    return f"{approval.plan} {time} {comment} {approval.user}"
