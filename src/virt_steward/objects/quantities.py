"""Quantities as Kubernetes writes them: 512Gi, 1.5, 250m."""

from __future__ import annotations

import re

from virt_steward.objects.quoting import quoted

_UNITS = {
    "n": 1e-9,
    "u": 1e-6,
    "m": 1e-3,
    "": 1.0,
    "k": 1e3,
    "M": 1e6,
    "G": 1e9,
    "T": 1e12,
    "P": 1e15,
    "E": 1e18,
    "Ki": 2.0**10,
    "Mi": 2.0**20,
    "Gi": 2.0**30,
    "Ti": 2.0**40,
    "Pi": 2.0**50,
    "Ei": 2.0**60,
}
_GRAMMAR = re.compile(
    r"([0-9]{1,31}(?:\.[0-9]{0,31})?|\.[0-9]{1,31})(?:[eE]([+-]?[0-9]{1,2})|([numkMGTPE]|[KMGTPE]i)?)"
)


class BadQuantity(ValueError):
    """The text is not a quantity."""


def parse_quantity(text: str) -> float:
    """The quantity as a float, which is precise enough for comparisons."""
    found = _GRAMMAR.fullmatch(text)
    if not found:
        raise BadQuantity(f"{quoted(text)} is not a quantity; write a number with a unit, such as 512Gi")
    number, exponent, unit = found.groups()
    return float(number) * (10.0 ** int(exponent) if exponent else _UNITS[unit or ""])
