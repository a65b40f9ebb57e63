"""The timeline of a rollout: a lane for each node of a pool, over time.

Steps that the console has seen are drawn as they happened. Of a node that was updated before the console started, only
the moment is known in which it became ready again, from its condition Ready: it is drawn as a mark, and no more.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from heapq import nsmallest
from typing import TYPE_CHECKING, Literal, NamedTuple

from virt_steward.console.pictures.time_axis import TimeAxis
from virt_steward.console.rollout_log import activity_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from datetime import datetime

    from virt_steward.console.pictures.time_axis import Tick
    from virt_steward.console.rollout_log import NodeActivity, NodeChange, RolloutLog
    from virt_steward.platform.nodes import NodeFacts
    from virt_steward.platform.pools import Pool

StepSlug = Literal["waiting", "updating", "rebooting", "degraded", "updated"]

WORDS: dict[StepSlug, str] = {
    "waiting": "waits",
    "updating": "updating",
    "rebooting": "rebooting",
    "degraded": "degraded",
    "updated": "updated",
}
URGENCY: dict[StepSlug, int] = {"degraded": 0, "rebooting": 1, "updating": 1, "updated": 2, "waiting": 3}
MOST_LANES = 40
ROWS_SHOWN = 200
"""In the table."""
LEFT = 190
TOP = 26
LANE = 22
LONGEST_NAME = 24
LOOK_BACK = timedelta(days=1)
"""A node that became ready longer before the end of a rollout was not rebooted by it."""


class NodeStep(NamedTuple):
    """A part of a node's update."""

    slug: StepSlug
    since: datetime | None
    """None: before the console began to watch."""
    until: datetime | None
    """None: it goes on."""


@dataclass(frozen=True, slots=True)
class NodeHistory:
    """One node in one rollout."""

    node: str
    steps: tuple[NodeStep, ...]
    ready_since: datetime | None
    """Of a node whose update was not seen: when it became ready again."""

    @property
    def state(self) -> StepSlug:
        return self.steps[-1].slug if self.steps else "waiting"

    @property
    def began(self) -> datetime | None:
        return next((one.since for one in self.steps if one.slug not in ("waiting", "updated")), None)

    @property
    def ended(self) -> datetime | None:
        last = self.steps[-1] if self.steps else None
        return last.since if last and last.slug == "updated" else None

    @property
    def first(self) -> datetime | None:
        """The first known moment of its update."""
        return self.began or self.ready_since or self.ended

    @property
    def seconds(self) -> float | None:
        """How long its update took; None if that is not known."""
        return (self.ended - self.began).total_seconds() if self.began and self.ended else None

    @property
    def was_seen(self) -> bool:
        """Whether the console has seen a step of its update."""
        return len(self.steps) > 1 or self.state not in ("waiting", "updated")


class TimelineBar(NamedTuple):
    """A step as a rectangle."""

    slug: StepSlug
    x: float
    width: float
    title: str


@dataclass(frozen=True, slots=True)
class TimelineLane:
    """A node as a row of the picture."""

    history: NodeHistory
    label: str
    y: int
    bars: tuple[TimelineBar, ...]
    mark: float | None
    """Where it became ready again; None if its update was seen, or nothing is known."""


@dataclass(frozen=True, slots=True)
class RolloutTimeline:
    """The picture, and the table beside it."""

    pool: str
    is_running: bool
    start: datetime
    end: datetime
    lanes: tuple[TimelineLane, ...]
    ticks: tuple[Tick, ...]
    height: int
    rows: tuple[NodeHistory, ...]
    total: int
    unseen: int
    """Nodes whose update was not seen."""

    @property
    def left(self) -> int:
        return LEFT

    @property
    def summary(self) -> str:
        """The picture in words."""
        states = [one.state for one in self.rows]
        counted = ", ".join(f"{states.count(slug)} {word}" for slug, word in WORDS.items() if slug in states)
        return f"{len(self.rows)} of {self.total} nodes of pool {self.pool}: {counted}"


def rollout_timeline(
    pool: Pool, nodes: Iterable[NodeFacts], log: RolloutLog, now: datetime, begins: datetime | None = None
) -> RolloutTimeline | None:
    """The rollout that runs or ended last; None if nothing is known of one. `begins`: when it was approved."""
    is_running = not pool.is_updated
    end = now if is_running else min(pool.since("Updated") or now, now)
    earliest = begins or pool.since("Updating") or end - LOOK_BACK
    histories = [_history(node, pool.spec.configuration.name, log, earliest) for node in nodes]
    known = [one for one in histories if one.was_seen or one.ready_since]
    if not known and not pool.is_updating:
        return None
    if not is_running:
        end = max((end, *(one.ended for one in known if one.ended)))
    moments = [one.first for one in known if one.first]
    if updating := pool.since("Updating"):
        moments.append(updating)
    axis = TimeAxis(min((*moments, end)), end, left=LEFT)
    urgent = nsmallest(ROWS_SHOWN, histories, key=_urgency)

    def in_order(some: Iterable[NodeHistory]) -> tuple[NodeHistory, ...]:
        return tuple(sorted(some, key=lambda one: (one.first or end, one.node)))

    drawn = in_order(urgent[:MOST_LANES])
    return RolloutTimeline(
        pool.name,
        is_running,
        axis.start,
        end,
        tuple(_lane(one, number, axis) for number, one in enumerate(drawn)),
        axis.ticks,
        TOP + LANE * len(drawn) + 4,
        in_order(urgent),
        len(histories),
        sum(one.state == "updated" and not one.was_seen for one in histories),
    )


def _history(node: NodeFacts, target: str, log: RolloutLog, earliest: datetime) -> NodeHistory:
    """What is known of one node. Most of thousands of nodes have not changed since the log began: they are quick."""
    name, changes = node.metadata.name, log.of(node.metadata.name)
    if len(changes) > 1:
        return NodeHistory(name, tuple(_steps(_since_last_settled(changes, target), target)), None)
    state = _slug(activity_of(node), node.rollout.current, target)
    since = node.ready_since
    is_mark = state == "updated" and node.ready and since is not None and since >= earliest
    return NodeHistory(name, (NodeStep(state, None, None),), since if is_mark else None)


def _since_last_settled(changes: Sequence[NodeChange], target: str) -> Sequence[NodeChange]:
    """The changes of the rollout to this configuration: from when the node last ran another one without an update."""
    before = [number for number, one in enumerate(changes) if one.activity == "settled" and one.config != target]
    return changes[before[-1] :] if before else changes


def _steps(changes: Sequence[NodeChange], target: str) -> Iterator[NodeStep]:
    ends = (*(one.at for one in changes[1:]), None)
    for change, until in zip(changes, ends, strict=True):
        slug = _slug(change.activity, change.config, target)
        yield NodeStep(slug, None if change.is_first else change.at, until)


def _slug(activity: NodeActivity, config: str, target: str) -> StepSlug:
    if activity != "settled":
        return activity
    return "updated" if config == target else "waiting"


def _urgency(one: NodeHistory) -> tuple[int, float, str]:
    """Nodes with trouble first, then those that are updated now, then the latest ones."""
    latest = one.ended or one.ready_since
    return URGENCY[one.state], -latest.timestamp() if latest else 0.0, one.node


def _lane(history: NodeHistory, number: int, axis: TimeAxis) -> TimelineLane:
    """A node that was updated before it was watched is drawn as updated from when it was ready again, if at all."""
    name, steps = history.node, history.steps
    if history.state == "updated" and not history.was_seen:
        steps = (NodeStep("updated", history.ready_since, None),) if history.ready_since else ()
    return TimelineLane(
        history,
        name if len(name) <= LONGEST_NAME else f"{name[: LONGEST_NAME - 1]}…",
        TOP + LANE * number,
        tuple(_bar(step, axis) for step in steps),
        axis.x(history.ready_since) if history.ready_since else None,
    )


def _bar(step: NodeStep, axis: TimeAxis) -> TimelineBar:
    x = axis.x(step.since or axis.start)
    width = max(axis.x(step.until or axis.start + axis.length) - x, 0.0)
    since = f"{step.since:%H:%M:%S}" if step.since else "before the console started"
    until = f"{step.until:%H:%M:%S} UTC" if step.until else "now"
    return TimelineBar(step.slug, x, round(width, 1), f"{WORDS[step.slug]} from {since} to {until}")
