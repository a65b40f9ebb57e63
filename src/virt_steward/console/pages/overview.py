"""The first page: what needs a person, the nodes of each pool, what is on hold, and which controllers work."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from virt_steward.console import paths
from virt_steward.console.page_context import PageContent, not_found
from virt_steward.console.pages.inbox import KINDS as INBOX_KINDS
from virt_steward.console.pages.inbox import headline, waiting_counts
from virt_steward.console.pictures.node_tiles import NodeCondition
from virt_steward.console.pictures.rollout_timeline import rollout_timeline
from virt_steward.controllers import NAMES
from virt_steward.controllers.advisor.conditions import FREEZE, GATES, WINDOW
from virt_steward.kube.events import EVENT
from virt_steward.objects.corekinds import NODE
from virt_steward.platform.machineconfigs import MACHINE_CONFIG_POOL
from virt_steward.runtime.access import LEASE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from datetime import datetime

    from virt_steward.console.live import Topic
    from virt_steward.console.page_context import PageContext
    from virt_steward.console.pictures.node_tiles import PoolTiles
    from virt_steward.platform.pools import Pool

ITEMS_SHOWN = 5
HOLDS_SHOWN = 20
PLAN_HOLDS = {FREEZE: "Frozen", WINDOW: "Window closed", GATES: "Gate closed"}
"""What holds the next item of a plan back, by the condition that says so."""
SHOWN_KINDS = (MACHINE_CONFIG_POOL, NODE, EVENT, LEASE)
"""Besides those of the inbox."""
TOPICS: frozenset[Topic] = frozenset({"profiles", "approvals", "placement", "autopilot", "rollout", "activity"})


@dataclass(frozen=True, slots=True)
class PoolCard:
    """A pool with its nodes."""

    tiles: PoolTiles
    word: str
    tone: str
    message: str


@dataclass(frozen=True, slots=True)
class Hold:
    """Something that does not go on by itself, or not yet."""

    tag: str
    subject: str
    path: str
    """Empty if the console has no page for it."""
    message: str


@dataclass(frozen=True, slots=True)
class ControllerCard:
    """A controller: whether it works, and what it recorded last."""

    name: str
    word: str
    tone: str
    message: str
    last: datetime | None
    reason: str
    """Of the last event."""


async def page(context: PageContext) -> PageContent:
    waiting = waiting_counts(context)
    count = sum(one.count for one in waiting)
    holds = [hold for source in HOLDS for hold in source(context)]
    values = {
        "headline": headline(count),
        "waiting": waiting,
        "items": context.inbox(ITEMS_SHOWN),
        "more": max(count - ITEMS_SHOWN, 0),
        "pools": _pools(context),
        "conditions": tuple(NodeCondition),
        "holds": holds[:HOLDS_SHOWN],
        "more_holds": max(len(holds) - HOLDS_SHOWN, 0),
        "controllers": controllers(context),
    }
    return PageContent("overview.html", "Overview", values, TOPICS, kinds=(*INBOX_KINDS, *SHOWN_KINDS))


async def pool(context: PageContext) -> PageContent:
    """One pool: its nodes, and the timeline of its rollout."""
    name = context.match["name"]
    found = next((one for one in context.pools if one.name == name), None)
    if found is None:
        return not_found(f"MachineConfigPool {name}", MACHINE_CONFIG_POOL)
    board, sees_nodes = context.cache.board, context.scope.sees(NODE)
    values = {
        "card": next((card for card in _pools(context) if card.tiles.pool == name), None) if sees_nodes else None,
        "pool": found,
        "conditions": tuple(NodeCondition),
        "timeline": rollout_timeline(found, board.nodes_of(name), board.log, context.now) if sees_nodes else None,
        "staged": [one for one in context.assets if one.staged and name in one.staged.matching_pools],
    }
    return PageContent("pool.html", f"Pool {name}", values, frozenset({"rollout", "autopilot"}), kinds=(NODE,))


def _pools(context: PageContext) -> list[PoolCard]:
    """Pools with their nodes; nodes in one group for viewers who may not list pools."""
    if not context.scope.sees(NODE):
        return []
    staged = frozenset(pool for one in context.assets if one.staged for pool in one.staged.matching_pools)
    by_name = {pool.name: pool for pool in context.pools}
    tiles = context.cache.board.tiles(staged, with_pools=context.scope.sees(MACHINE_CONFIG_POOL))
    return [_pool(one, by_name.get(one.pool), is_staged=one.pool in staged) for one in tiles if one.total or one.pool]


def _pool(tiles: PoolTiles, found: Pool | None, *, is_staged: bool) -> PoolCard:
    if found is None:
        return PoolCard(tiles, "", "", tiles.summary)
    status = found.status
    progress = f"{status.updated_machine_count:,} of {status.machine_count:,} nodes updated"
    if found.degradation:
        return PoolCard(tiles, "Degraded", "bad", f"{progress}; {found.degradation}")
    if found.spec.paused:
        return PoolCard(tiles, "Paused", "warn", f"{progress}; no node updates until it is resumed")
    if found.is_updating or not found.is_updated:
        return PoolCard(tiles, "Updating", "info", progress)
    if is_staged:
        return PoolCard(tiles, "Staged change", "warn", "a change waits, because nodes reboot when it is written")
    return PoolCard(tiles, "Up to date", "ok", progress if status.machine_count else "no nodes")


def controllers(context: PageContext) -> list[ControllerCard]:
    """All controllers, with the replica that leads, as far as the viewer may list Leases."""
    last: dict[str, tuple[datetime, str]] = {}
    for event in context.events:
        if event.controller not in last or last[event.controller][0] < event.at:
            last[event.controller] = event.at, event.reason
    standing_by, leaders = dict(context.standing_by), context.cache.leaders.holders
    found = []
    for name in NAMES:
        at, reason = last.get(name, (None, ""))
        leader = leaders.get(name)
        if name in standing_by:
            word, tone, message = "Standing by", "info", standing_by[name].removeprefix("standing by: ")
        elif leader and context.scope.sees(LEASE, leader.lease.namespace):
            word, tone, message = "Leading", "ok", leader.holder.partition("_")[0]  # without the id of the process
        elif leader:
            word, tone, message = "Leading", "ok", ""
        else:
            word, tone, message = "Unknown", "muted", "nobody holds its Lease: not running, or without leader election"
        found.append(ControllerCard(name, word, tone, message, at, reason))
    return found


def paused_pools(context: PageContext) -> Iterator[Hold]:
    for one in sorted(context.pools, key=lambda pool: pool.name):
        if one.spec.paused:
            yield Hold("Paused", f"MachineConfigPool {one.name}", paths.pool(one.name), "no node updates until resumed")


def held_assets(context: PageContext) -> Iterator[Hold]:
    for one in context.assets:
        if one.word in ("Paused", "Staged"):
            yield Hold(one.word, str(one.ref), paths.asset(one.asset.name), one.why)


def frozen_controllers(context: PageContext) -> Iterator[Hold]:
    yield from (Hold("Frozen", f"The {controller}", "", message) for controller, message in context.freezes)


def waiting_plans(context: PageContext) -> Iterator[Hold]:
    for config in context.configs:
        for condition in config.status.conditions:
            if condition.type in PLAN_HOLDS and condition.status == "True":
                name = config.metadata.name
                yield Hold(PLAN_HOLDS[condition.type], name, paths.profile(name), condition.message)


def cordoned_clusters(context: PageContext) -> Iterator[Hold]:
    for one in context.clusters:
        if not one.is_schedulable:
            name = one.metadata.name
            yield Hold("Cordoned", f"KubevirtConfig {name}", paths.cluster(name), "no Machine is newly placed there")


HOLDS: tuple[Callable[[PageContext], Iterable[Hold]], ...] = (
    frozen_controllers,
    waiting_plans,
    paused_pools,
    held_assets,
    cordoned_clusters,
)
"""What can be on hold, in the order of the page."""
