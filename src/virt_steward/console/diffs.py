"""Unified diffs as lines that a page can colour."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

Sort = Literal["added", "removed", "same", "place"]


class DiffLine(NamedTuple):
    sort: Sort
    text: str


def lines(diff: str) -> tuple[DiffLine, ...]:
    """Without the two lines that name files: what is compared is one object, and the page says which."""
    return tuple(_lines(diff))


def _lines(diff: str) -> Iterator[DiffLine]:
    in_head = True
    for text in diff.splitlines():
        if in_head and text.startswith(("--- ", "+++ ")):
            continue
        in_head = False
        if text.startswith("@@ -0,0"):  # all of it is new
            continue
        if text.startswith("@@"):
            yield DiffLine("place", text)
        elif text.startswith("+"):
            yield DiffLine("added", text)
        elif text.startswith("-"):
            yield DiffLine("removed", text)
        else:
            yield DiffLine("same", text)
