"""Findings on a switch-over: what would change, what is good to know, and what could not be found out."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

from virt_steward.kube.errors import one_line
from virt_steward.objects.document import JsonDocument

if TYPE_CHECKING:
    from collections.abc import Iterable


class Effect(StrEnum):
    CHANGE = "change"
    """Something would be written, offered, or no longer done."""
    NOTE = "note"
    """Good to know; nothing on the cluster changes by it."""
    UNKNOWN = "unknown"
    """It is unknown, because something could not be read or tried."""


class SwitchFinding(JsonDocument, frozen=True):
    effect: Effect
    subject: str
    """The object or setting."""
    message: str
    """What would happen, why, and what to do."""
    diff: str = ""
    """What a dry run on the server would change."""
    disruption: str = ""
    """Which nodes would reboot, and which VMs would migrate or stop."""


class SwitchReport(JsonDocument, frozen=True):
    """The findings on one controller."""

    controller: str
    found: tuple[str, ...]
    """The traces of the Go operator; none: it was not found, and nothing else was looked at."""
    findings: tuple[SwitchFinding, ...] = ()

    @property
    def effects(self) -> frozenset[Effect]:
        return frozenset(finding.effect for finding in self.findings)


class SwitchVerdict(StrEnum):
    SAME = "nothing would change"
    CHANGES = "something would change"
    UNKNOWN = "cannot tell"


def verdict_on(reports: Iterable[SwitchReport]) -> SwitchVerdict:
    """An incomplete answer is no answer, even if it has changes: there may be more."""
    effects = {effect for report in reports for effect in report.effects}
    if Effect.UNKNOWN in effects:
        return SwitchVerdict.UNKNOWN
    return SwitchVerdict.CHANGES if Effect.CHANGE in effects else SwitchVerdict.SAME


def unknown(subject: str, problem: object) -> SwitchFinding:
    return SwitchFinding(Effect.UNKNOWN, subject, f"cannot tell: {one_line(str(problem))}")
