"""From what was seen to what is to be done, without looking anywhere else."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from virt_steward.controllers.approver.checks import CHECKS, Case
from virt_steward.controllers.approver.seen import items_of
from virt_steward.controllers.approver.verdicts import Approve, Reason, Wait

if TYPE_CHECKING:
    from datetime import datetime

    from virt_steward.controllers.approver.checks import Check
    from virt_steward.controllers.approver.seen import Approver, Item, Seen
    from virt_steward.controllers.approver.verdicts import Leave, Verdict
    from virt_steward.objects.identity import Key


@dataclass(frozen=True, slots=True)
class Opinion:
    """What one approver makes of a plan."""

    approver: Approver
    verdict: Verdict


@dataclass(frozen=True, slots=True)
class Approval:
    """Who approves, and why."""

    approver: Approver
    because: str


@dataclass(frozen=True, slots=True)
class Decision:
    """What all approvers make of a plan; the oldest that approves it acts."""

    opinions: tuple[Opinion, ...]

    @property
    def approval(self) -> Approval | None:
        for one in self.opinions:
            if isinstance(one.verdict, Approve):
                return Approval(one.approver, one.verdict.because)
        return None

    def refused(self, message: str) -> Decision:
        """The same, after the server did not let the approval through."""
        wait = Wait(Reason.APPROVAL_REFUSED, f"the API server refuses the approval: {message}")
        return Decision(
            tuple(replace(one, verdict=wait) if isinstance(one.verdict, Approve) else one for one in self.opinions)
        )

    @property
    def waits(self) -> dict[Key, Wait]:
        """What each approver that covers the plan waits for."""
        return {one.approver.metadata.key: one.verdict for one in self.opinions if isinstance(one.verdict, Wait)}


def decide(seen: Seen, now: datetime) -> Decision:
    items = items_of(seen)
    return Decision(tuple(Opinion(approver, _judge(Case(seen, items, approver, now))) for approver in seen.approvers))


def trace(case: Case) -> list[tuple[Check, Leave | Wait | None]]:
    """Every check up to the one that decides, with its answer: for those who ask why."""
    passed: list[tuple[Check, Leave | Wait | None]] = []
    for check in CHECKS:
        refusal = check(case)
        passed.append((check, refusal))
        if refusal is not None:
            break
    return passed


def _judge(case: Case) -> Verdict:
    for check in CHECKS:
        refusal = check(case)
        if refusal is not None:
            return refusal
    return Approve(_because(case))


def _because(case: Case) -> str:
    return "; ".join(_why(item) for item in case.items)


def _why(item: Item) -> str:
    if item.is_pinned:
        return f"{item.csv} is the startingCSV of its Subscription"
    if item.is_new_dependency:
        return f"{item.csv} is a new dependency"
    if item.is_installed:
        return f"{item.csv} is installed already"
    return f"a person made the Subscription of {item.csv} Automatic"
