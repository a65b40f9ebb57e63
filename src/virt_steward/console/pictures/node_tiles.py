"""Nodes as tiles: the state of each node, the nodes of a pool by name, and one tile for several in large pools."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from virt_steward.console.pictures.mosaic import Mosaic, mosaic
from virt_steward.console.rollouts import node_progress

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from virt_steward.platform.nodes import NodeFacts
    from virt_steward.platform.pools import Pool, PoolMembership

NAMED = 60
"""Up to so many nodes of a pool are shown by name."""
TROUBLED_SHOWN = 50


class NodeCondition(StrEnum):
    """The state of a node in one word, the worst first."""

    DEGRADED = "Degraded"
    NOT_READY = "Not ready"
    UPDATING = "Updating"
    CORDONED = "Cordoned"
    WAITING = "Not updated yet"
    STAGED = "Staged change"
    READY = "Ready"

    @property
    def slug(self) -> str:
        """The name of its colour and shape."""
        return self.value.lower().replace(" ", "-")


TROUBLED = (NodeCondition.DEGRADED, NodeCondition.NOT_READY, NodeCondition.CORDONED)
_PROGRESS = {
    "bad": NodeCondition.DEGRADED,
    "now": NodeCondition.UPDATING,
    "waiting": NodeCondition.WAITING,
}


@dataclass(frozen=True, slots=True)
class NodeTile:
    """One node."""

    name: str
    condition: NodeCondition
    message: str = ""
    """More than the word says, such as why it is degraded."""


@dataclass(frozen=True, slots=True)
class PoolTiles:
    """The nodes of one pool."""

    pool: str
    """Empty for nodes without a pool."""
    total: int
    counts: tuple[tuple[NodeCondition, int], ...]
    """The worst first; only those that occur."""
    nodes: tuple[NodeTile, ...]
    """All of them by name; empty if they are too many."""
    mosaic: Mosaic | None
    """In place of the names."""
    troubled: tuple[NodeTile, ...]
    """Those of a mosaic that need a look, by name."""

    @property
    def summary(self) -> str:
        """The picture in words."""
        counted = ", ".join(f"{count:,} {condition.value.lower()}" for condition, count in self.counts)
        return f"{self.total:,} node{'' if self.total == 1 else 's'}: {counted}" if self.total else "no nodes"


def node_tile(node: NodeFacts, target: str, *, staged: bool = False) -> NodeTile:
    """The state of a node whose pool has this configuration; `staged` says that a change of the pool waits.

    A node that is updated is cordoned and reboots, so being updated comes before both.
    """
    name, progress = node.metadata.name, node_progress(node, target)
    has_rollout = bool(target or node.rollout.state)
    if has_rollout and progress.progress in ("bad", "now"):
        rebooting = progress.progress == "now" and not node.ready
        return NodeTile(name, _PROGRESS[progress.progress], "rebooting" if rebooting else progress.message)
    if not node.ready:
        return NodeTile(name, NodeCondition.NOT_READY)
    if node.cordoned:
        return NodeTile(name, NodeCondition.CORDONED)
    if has_rollout and progress.progress == "waiting":
        return NodeTile(name, NodeCondition.WAITING)
    return NodeTile(name, NodeCondition.STAGED if staged else NodeCondition.READY)


def pool_tiles(
    pools: Sequence[Pool], membership: PoolMembership, nodes: Iterable[NodeFacts], staged: frozenset[str]
) -> tuple[PoolTiles, ...]:
    """All pools in the order of their names, and last the nodes without one. `staged`: pools with a staged change."""
    targets = {pool.name: pool.spec.configuration.name for pool in pools}
    tiles: dict[str, list[NodeTile]] = {name: [] for name in sorted(targets)}
    for node in nodes:
        pool = membership.pool_of(node)
        tiles.setdefault(pool, []).append(node_tile(node, targets.get(pool, ""), staged=pool in staged))
    unpooled = tiles.pop("", None)
    found = [_pool(name, found) for name, found in tiles.items()]
    return (*found, _pool("", unpooled)) if unpooled else tuple(found)


def _pool(name: str, tiles: list[NodeTile]) -> PoolTiles:
    tiles.sort(key=lambda tile: tile.name)
    found: Mapping[NodeCondition, int] = Counter(tile.condition for tile in tiles)
    counts = tuple((condition, found[condition]) for condition in NodeCondition if condition in found)
    if len(tiles) <= NAMED:
        return PoolTiles(name, len(tiles), counts, tuple(tiles), None, ())
    troubled = [tile for tile in tiles if tile.condition in TROUBLED]
    drawn = mosaic([(condition.slug, condition.value, count) for condition, count in counts])
    return PoolTiles(name, len(tiles), counts, (), drawn, tuple(troubled[:TROUBLED_SHOWN]))
