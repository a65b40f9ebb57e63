"""How messages quote what others wrote."""

from __future__ import annotations

LONGEST = 100
"""Characters: a condition and an event have little room, and the beginning is enough to find the text."""


def quoted(text: str) -> str:
    """The text in quotes, on one line; of a long one, its beginning."""
    return repr(text) if len(text) <= LONGEST else f"{text[:LONGEST]!r}…"
