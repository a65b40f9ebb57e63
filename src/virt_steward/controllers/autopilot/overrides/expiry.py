"""Overrides that end by themselves: which are in force now, and until when."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, NamedTuple

from virt_steward.controllers.autopilot.annotation_keys import DRIFT, IGNORED, MODE, PATCH, UNTIL
from virt_steward.objects.wallclock import rfc3339

if TYPE_CHECKING:
    from collections.abc import Mapping

EXPIRING = (MODE, PATCH, IGNORED, DRIFT)
"""Not the pause: it ends when somebody removes its annotation, and never by itself."""

_RFC3339 = re.compile(r"\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d:\d\d(\.\d{1,9})?([Zz]|[+-]\d\d:\d\d)", re.ASCII)


class ExpiryRemark(NamedTuple):
    """Something that the author of an override should know."""

    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class InForce:
    """The annotations without overrides whose time has passed."""

    overrides: Mapping[str, str]
    until: datetime | None = None
    """When the overrides end; None if they do not, or have ended."""
    remarks: tuple[ExpiryRemark, ...] = ()


def in_force(annotations: Mapping[str, str], now: datetime) -> InForce:
    text = annotations.get(UNTIL)
    given = [name for name in EXPIRING if name in annotations]
    if text is None or not given:
        return InForce(annotations)
    named = ", ".join(given)
    until = _moment(text.strip())
    if until is None:
        message = f"{UNTIL} is {text[:40]!r}, not a time such as {rfc3339(now)}: {named} stay in force"
        return InForce(annotations, remarks=(ExpiryRemark("InvalidOverrideUntil", message),))
    if now < until:
        ends = ExpiryRemark("OverrideEnds", f"{named} end at {rfc3339(until)} ({UNTIL})")
        return InForce(annotations, until, (ends,))
    rest = {name: value for name, value in annotations.items() if name not in EXPIRING}
    lifted = ExpiryRemark(
        "OverrideLifted", f"{named} ended at {rfc3339(until)} and have no effect: remove or renew them"
    )
    return InForce(rest, remarks=(lifted,))


def _moment(text: str) -> datetime | None:
    if not _RFC3339.fullmatch(text):
        return None
    try:
        return datetime.fromisoformat(text.upper()).astimezone(UTC)
    except (ValueError, OverflowError):  # no such day, or none in UTC
        return None
