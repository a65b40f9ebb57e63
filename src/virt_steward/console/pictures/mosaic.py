"""A mosaic: many equal things as small tiles, grouped by state, each state with a shape of its own."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

COLUMNS = 60
MOST_TILES = 480
PITCH = 16
"""From one tile to the next."""
SIZE = 11
"""Of a tile."""


@dataclass(frozen=True, slots=True)
class MosaicGroup:
    """The tiles of one state."""

    slug: str
    word: str
    count: int
    path: str
    """All of its tiles, as the data of one SVG path."""


@dataclass(frozen=True, slots=True)
class Mosaic:
    """The picture."""

    groups: tuple[MosaicGroup, ...]
    per_tile: int
    """How many things one tile stands for."""
    width: int
    height: int


def mosaic(groups: Sequence[tuple[str, str, int]]) -> Mosaic:
    """Draw groups of (slug, word, count) one after the other, row by row.

    A tile stands for so many things that about 480 tiles are enough. A group that is not empty has at least one tile,
    so that one degraded node among thousands is still seen.
    """
    total = sum(count for _, _, count in groups)
    per_tile = max(ceil(total / MOST_TILES), 1)
    drawn, place = [], 0
    for slug, word, count in groups:
        tiles = ceil(count / per_tile)
        path = "".join(outline(slug, *position) for position in _positions(place, tiles))
        drawn.append(MosaicGroup(slug, word, count, path))
        place += tiles
    rows = max(ceil(place / COLUMNS), 1)
    return Mosaic(tuple(drawn), per_tile, min(max(place, 1), COLUMNS) * PITCH, rows * PITCH)


def outline(slug: str, x: float = 0, y: float = 0) -> str:
    """The shape of a state at this place, as SVG path data: states must not differ by colour alone."""
    half = SIZE / 2
    match slug:
        case "degraded" | "not-ready" | "blocked":  # a cross
            return f"M{x + 4:g} {y:g}h3v4h4v3h-4v4h-3v-4h-4v-3h4z"
        case "updating" | "pending":  # a disc
            return f"M{x:g} {y + half:g}a{half:g} {half:g} 0 1 0 {SIZE} 0a{half:g} {half:g} 0 1 0 -{SIZE} 0z"
        case "cordoned":  # a diamond
            return f"M{x + half:g} {y:g}l{half:g} {half:g}l-{half:g} {half:g}l-{half:g} -{half:g}z"
        case "staged-change":  # a triangle
            return f"M{x + half:g} {y:g}l{half:g} {SIZE}h-{SIZE}z"
        case "not-updated-yet":  # a bar
            return f"M{x:g} {y + 4:g}h{SIZE}v3h-{SIZE}z"
    return f"M{x:g} {y:g}h{SIZE}v{SIZE}h-{SIZE}z"


def _positions(first: int, number: int) -> Iterator[tuple[float, float]]:
    margin = (PITCH - SIZE) / 2
    for place in range(first, first + number):
        row, column = divmod(place, COLUMNS)
        yield column * PITCH + margin, row * PITCH + margin
