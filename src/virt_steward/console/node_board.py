"""Nodes and pools for the pictures: which node is in which pool, and what was seen of their updates."""

from __future__ import annotations

from typing import TYPE_CHECKING

from virt_steward.console.pictures.node_tiles import pool_tiles
from virt_steward.console.rollout_log import RolloutLog
from virt_steward.platform.pools import PoolMembership
from virt_steward.platform.sources import NODES, POOLS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from virt_steward.console.cache import Cache
    from virt_steward.console.pictures.node_tiles import PoolTiles
    from virt_steward.objects.identity import Key
    from virt_steward.platform.nodes import NodeFacts
    from virt_steward.platform.pools import Pool
    from virt_steward.runtime.clock import Clock


class NodeBoard:
    """Follows nodes and pools. What it computes from all of them is kept until one of them changes.

    A heartbeat of a node is no change: a cluster with thousands of nodes has several each second.
    """

    def __init__(self, cache: Cache, clock: Clock) -> None:
        self._cache = cache
        self._nodes, self._pools = cache.store(NODES), cache.store(POOLS)
        self.log = RolloutLog(clock.utc)
        self._membership: PoolMembership | None = None
        self._tiles: dict[tuple[bool, frozenset[str]], tuple[PoolTiles, ...]] = {}
        cache.follow(NODES, self._node_changed)
        cache.follow(POOLS, self._pool_changed)

    def tiles(self, staged: frozenset[str], *, with_pools: bool) -> tuple[PoolTiles, ...]:
        """All nodes by pool; without pools, all are in one group. `staged`: pools with a staged change."""
        wanted = with_pools, staged
        if wanted not in self._tiles:
            pools = tuple(self._pools) if with_pools else ()
            membership = self._all_pools if with_pools else PoolMembership(())
            self._tiles[wanted] = pool_tiles(pools, membership, self._nodes, staged)
        return self._tiles[wanted]

    def nodes_of(self, pool: str) -> Iterator[NodeFacts]:
        membership = self._all_pools
        return (node for node in self._nodes if membership.pool_of(node) == pool)

    @property
    def _all_pools(self) -> PoolMembership:
        if self._membership is None:
            self._membership = PoolMembership(tuple(self._pools))
        return self._membership

    def _node_changed(self, key: Key, before: NodeFacts | None, after: NodeFacts | None) -> None:
        if before and after and _relevant(before) == _relevant(after):
            return
        if key.name:  # else access to all of them was denied or granted
            self.log.handle(key, before, after)
        self._changed()

    def _pool_changed(self, _key: Key, _before: Pool | None, _after: Pool | None) -> None:
        self._membership = None
        self._changed()

    def _changed(self) -> None:
        self._tiles.clear()
        self._cache.publish("rollout")


def _relevant(node: NodeFacts) -> tuple[object, ...]:
    """What the pictures show of it."""
    return node.metadata.labels, node.rollout, node.cordoned, node.ready, node.ready_since
