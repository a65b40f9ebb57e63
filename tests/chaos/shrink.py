"""Delta debugging: the shortest list of faults with which a seed still fails (ddmin, by Zeller and Hildebrandt)."""

from collections.abc import Awaitable, Callable
from typing import TypeVar

T = TypeVar("T")


async def shortened(
    items: tuple[T, ...], fails: Callable[[tuple[T, ...]], Awaitable[bool]], *, most_tries: int
) -> tuple[T, ...]:
    """A part of the items with which it fails, in which no smaller step of removal was found to fail."""
    parts = 2
    while items and most_tries > 0:
        size = max(len(items) // parts, 1)
        starts = range(0, len(items), size)
        for start in starts:
            rest = items[:start] + items[start + size :]
            most_tries -= 1
            if await fails(rest):
                items, parts = rest, max(parts - 1, 2)
                break
            if most_tries <= 0:
                return items
        else:
            if size == 1:
                return items
            parts = min(parts * 2, len(items))
    return items
