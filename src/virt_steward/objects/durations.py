"""Durations in the syntax of Go, such as 1h30m, 1.5h or 300ms, with d for days besides its units."""

from __future__ import annotations

import re
from datetime import timedelta

from virt_steward.objects.quoting import quoted

LONGEST = timedelta(days=3650)
LONGEST_TEXT = 32
"""Characters: int() refuses thousands of digits, and no useful duration needs more."""

NUMBER = "[0-9]+([.][0-9]*)?|[.][0-9]+"
MICRO = "[u\N{MICRO SIGN}\N{GREEK SMALL LETTER MU}]"
GRAMMAR = rf"0|[+]?(({NUMBER})(d|h|m|s|ms|{MICRO}s|ns))+"
"""What Go's time.ParseDuration accepts, and days, but nothing negative."""

_GRAMMAR = re.compile(GRAMMAR)
_PART = re.compile(rf"({NUMBER})([a-z{MICRO[1:-1]}]+)")
_NANOSECONDS = {
    "d": 86_400_000_000_000,
    "h": 3_600_000_000_000,
    "m": 60_000_000_000,
    "s": 1_000_000_000,
    "ms": 1_000_000,
    "us": 1_000,
    "ns": 1,
}


class BadDuration(ValueError):
    """The text is not a duration."""


def parse_duration(text: str) -> timedelta:
    """The sum of all parts, in any order as in Go; what is below a microsecond is cut off."""
    if len(text) > LONGEST_TEXT or not _GRAMMAR.fullmatch(text):
        raise BadDuration(f"{quoted(text)} is not a duration; write numbers with units, such as 7d, 1h30m or 1.5h")
    microseconds = sum(_nanoseconds(number, unit) for number, _, unit in _PART.findall(text)) // 1_000
    if microseconds > LONGEST // timedelta(microseconds=1):
        raise BadDuration(f"{quoted(text)} is longer than {LONGEST.days} days")
    return timedelta(microseconds=microseconds)


def _nanoseconds(number: str, unit: str) -> int:
    whole, _, decimals = number.partition(".")
    plain_unit = unit if unit in _NANOSECONDS else "us"  # micro is written in three ways
    scale: int = 10 ** len(decimals)
    return int(f"{whole}{decimals}") * _NANOSECONDS[plain_unit] // scale
