"""Canonical JSON: equal values have the same text, whatever the order of their keys."""

from __future__ import annotations

import hashlib
from typing import Any

import msgspec

_ENCODER = msgspec.json.Encoder(order="sorted")


def canonical(value: Any) -> bytes:
    """Write compact JSON with sorted keys. Numbers are those of the API: 64-bit integers and floats."""
    return _ENCODER.encode(value)


def same(one: Any, other: Any) -> bool:
    """Compare as JSON does: unlike in Python, `true` is not 1."""
    return canonical(one) == canonical(other)


def sha256(value: Any) -> str:
    """Hash a value by its canonical JSON."""
    return f"sha256:{hashlib.sha256(canonical(value)).hexdigest()}"
