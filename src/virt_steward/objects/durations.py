"""Durations as our APIs write them: whole days, hours, minutes and seconds in this order, such as 7d or 1h30m."""

from __future__ import annotations

import re
from datetime import timedelta

from virt_steward.objects.quoting import quoted

LONGEST = timedelta(days=3650)

_DIGITS = "([0-9]{1,31})"  # bounded: int() refuses thousands of digits
_GRAMMAR = re.compile(f"(?:{_DIGITS}d)?(?:{_DIGITS}h)?(?:{_DIGITS}m)?(?:{_DIGITS}s)?")
_SECONDS = (86_400, 3_600, 60, 1)


class BadDuration(ValueError):
    """The text is not a duration."""


def parse_duration(text: str) -> timedelta:
    found = _GRAMMAR.fullmatch(text)
    if not text or not found:
        raise BadDuration(
            f"{quoted(text)} is not a duration; write days, hours, minutes and seconds, such as 7d or 1h30m"
        )
    seconds = sum(int(count or 0) * unit for count, unit in zip(found.groups(), _SECONDS, strict=True))
    if seconds > LONGEST.total_seconds():
        raise BadDuration(f"{quoted(text)} is longer than {LONGEST.days} days")
    return timedelta(seconds=seconds)
