"""MachineConfigPools: which of them a MachineConfig concerns, and whether their nodes run with its content."""

from __future__ import annotations

import re
from math import ceil
from typing import TYPE_CHECKING, Any

import msgspec

from virt_steward.objects.wallclock import parse_rfc3339
from virt_steward.platform.health import NotReady, Ready
from virt_steward.platform.machineconfigs import LabelledMeta, PoolSelector

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence
    from datetime import datetime

    from virt_steward.platform.health import Health
    from virt_steward.platform.machineconfigs import MachineConfigFacts
    from virt_steward.platform.nodes import NodeFacts

MASTER, WORKER = "master", "worker"
_MAX_UNAVAILABLE = re.compile(r"([0-9]{1,9})(%?)")  # bounded: int() refuses thousands of digits


class SourceConfig(msgspec.Struct, frozen=True):
    name: str = ""


class RenderedConfig(msgspec.Struct, frozen=True):
    """A rendered MachineConfig, by name, and what it was rendered from."""

    name: str = ""
    source: tuple[SourceConfig, ...] = ()

    @property
    def sources(self) -> frozenset[str]:
        return frozenset(part.name for part in self.source)


class PoolSpec(msgspec.Struct, frozen=True, rename="camel"):
    machine_config_selector: PoolSelector = PoolSelector()
    node_selector: PoolSelector = PoolSelector()
    configuration: RenderedConfig = RenderedConfig()
    max_unavailable: int | str | None = None
    paused: bool = False


class PoolCondition(msgspec.Struct, frozen=True, rename="camel"):
    type: str = ""
    status: str = ""
    message: str = ""
    last_transition_time: str | None = None


class PoolStatus(msgspec.Struct, frozen=True, rename="camel"):
    configuration: RenderedConfig = RenderedConfig()
    machine_count: int = 0
    updated_machine_count: int = 0
    ready_machine_count: int = 0
    degraded_machine_count: int = 0
    conditions: tuple[PoolCondition, ...] = ()


class Pool(msgspec.Struct, frozen=True):
    """A MachineConfigPool and the rollout of its nodes."""

    metadata: LabelledMeta
    spec: PoolSpec = PoolSpec()
    status: PoolStatus = PoolStatus()

    @property
    def name(self) -> str:
        return self.metadata.name

    @property
    def is_updated(self) -> bool:
        """Whether all of its nodes run the desired configuration; true for a pool without nodes."""
        counts = {self.status.machine_count, self.status.updated_machine_count, self.status.ready_machine_count}
        return self.status.configuration.name == self.spec.configuration.name and len(counts) == 1

    @property
    def is_updating(self) -> bool:
        return self._has("Updating")

    def since(self, condition: str) -> datetime | None:
        """Since when this condition is true; None if it is not, or does not say."""
        true = (one for one in self.status.conditions if one.type == condition and one.status == "True")
        return parse_rfc3339(next((one.last_transition_time or "" for one in true), ""))

    @property
    def is_render_degraded(self) -> bool:
        """Whether its configuration cannot be rendered: what corrects it may be what is staged."""
        return self._has("RenderDegraded")

    def _has(self, condition: str) -> bool:
        return any(one.type == condition and one.status == "True" for one in self.status.conditions)

    @property
    def degradation(self) -> str:
        """Why some of its nodes are degraded; empty if none is."""
        messages = (one.message for one in self.status.conditions if one.type == "Degraded" and one.status == "True")
        message = next(messages, None)
        if message is None and not self.status.degraded_machine_count:
            return ""
        return f"{self.status.degraded_machine_count} degraded machines" + (f": {message}" if message else "")

    def rounds(self, nodes: int) -> int:
        """In how many rounds this number of nodes reboots, given maxUnavailable."""
        return ceil(nodes / self._at_once(nodes))

    def _at_once(self, nodes: int) -> int:
        most = self.spec.max_unavailable
        if isinstance(most, str) and (found := _MAX_UNAVAILABLE.fullmatch(most)):
            most = nodes * int(found[1]) // 100 if found[2] else int(found[1])
        return max(1, most) if isinstance(most, int) else 1


def pools_selecting(labels: Mapping[str, str], pools: Iterable[Pool]) -> tuple[Pool, ...]:
    """Return the pools that select a MachineConfig with these labels, by name."""
    found = (pool for pool in pools if pool.spec.machine_config_selector.selects(dict(labels)))
    return tuple(sorted(found, key=lambda pool: pool.name))


def pools_affected(
    wanted: Mapping[str, Any], live_labels: Mapping[str, str], pools: Iterable[Pool], known: Collection[str] = ()
) -> tuple[Pool, ...]:
    """Return the pools whose nodes reboot when this object is written, by name.

    A MachineConfig is selected by pools, by its labels as they are or will be; the other kinds select pools. A selector
    that cannot be read counts as one that selects. `known` are names of pools that were found before.
    """
    labels = wanted["metadata"].get("labels") or {}
    if "machineConfigPoolSelector" in (spec := wanted.get("spec") or {}):
        selector = msgspec.convert(spec["machineConfigPoolSelector"], PoolSelector)
        found = [pool for pool in pools if pool.name in known or selector.selects(pool.metadata.labels)]
    else:
        found = [pool for pool in pools if pool.name in known or _may_select(pool, labels, live_labels)]
    return tuple(sorted(found, key=lambda pool: pool.name))


def _may_select(pool: Pool, *either: Mapping[str, str]) -> bool:
    selector = pool.spec.machine_config_selector
    return not selector.is_readable or any(selector.selects(dict(labels)) for labels in either)


class PoolMembership:
    """Which pool each node belongs to: its custom pool first, then master, then worker.

    Nodes with the same values of the labels that selectors read belong to the same pool, so each such combination is
    evaluated once: thousands of nodes have a handful of roles.
    """

    def __init__(self, pools: Sequence[Pool]) -> None:
        self._selectors = tuple((pool.name, pool.spec.node_selector) for pool in pools)
        self._keys = tuple(sorted({key for _, selector in self._selectors for key in selector.keys}))
        self._known: dict[tuple[str | None, ...], str] = {}

    def pool_of(self, node: NodeFacts) -> str:
        """Return the name of its pool; empty if none selects it."""
        labels = node.metadata.labels
        values = tuple(map(labels.get, self._keys))
        if values not in self._known:
            self._known[values] = self._find(labels)
        return self._known[values]

    def _find(self, labels: dict[str, str]) -> str:
        names = {name for name, selector in self._selectors if selector.selects(labels)}
        ranked = (*sorted(names - {MASTER, WORKER}), MASTER, WORKER)
        return next((name for name in ranked if name in names), "")


def nodes_of(pool: Pool, pools: Sequence[Pool], nodes: Iterable[NodeFacts]) -> tuple[str, ...]:
    """Return the nodes of this pool."""
    membership = PoolMembership(pools)
    return tuple(sorted(node.metadata.name for node in nodes if membership.pool_of(node) == pool.name))


def rollout_health(
    config: MachineConfigFacts, pools: Iterable[Pool], rendered: Mapping[str, MachineConfigFacts]
) -> Health:
    """Whether every node of the pools that select this MachineConfig runs with its content."""
    affected = pools_selecting(config.metadata.labels, pools)
    if not affected:
        return Ready("No MachineConfigPool selects it, so no node changes")
    pending = [
        message
        for pool in affected
        if (message := _pending_rollout(pool, config, rendered.get(pool.spec.configuration.name)))
    ]
    if pending:
        return NotReady("; ".join(pending))
    return Ready(
        "; ".join(f"{_named(pool)} is ready (all {pool.status.machine_count} nodes updated)" for pool in affected)
    )


def removal_health(name: str, labels: Mapping[str, str], pools: Iterable[Pool]) -> Health:
    """Whether no node runs with a removed MachineConfig any more."""
    affected = pools_selecting(labels, pools)
    pending = [message for pool in affected if (message := _pending_removal(pool, name))]
    if pending:
        return NotReady("; ".join(pending))
    return Ready("; ".join(f"{_named(pool)} is without it" for pool in affected) or "No node had it")


def _pending_removal(pool: Pool, name: str) -> str:
    if name not in pool.spec.configuration.sources and pool.is_updated:
        return ""
    if pool.spec.paused:
        return f"{_named(pool)} is paused, so nothing happens there until somebody resumes it"
    if pool.degradation:
        return f"{_named(pool)} is degraded ({pool.degradation})"
    return f"Waiting for {_named(pool)} to roll without {name} ({_progress(pool)})"


def _progress(pool: Pool) -> str:
    counts, of = pool.status, pool.status.machine_count
    return f"Updated: {counts.updated_machine_count}/{of}, Ready: {counts.ready_machine_count}/{of}"


def _pending_rollout(pool: Pool, config: MachineConfigFacts, rendered: MachineConfigFacts | None) -> str:
    """Why the rollout of a pool is not complete; empty if it is. The condition `Updated` alone may be outdated."""
    progress = _progress(pool)
    has_content = rendered is not None and rendered.includes(config)
    if has_content and pool.is_updated:
        return ""
    if pool.spec.paused:
        return f"{_named(pool)} is paused, so nothing happens there until somebody resumes it ({progress})"
    if pool.degradation:
        return f"{_named(pool)} is degraded ({pool.degradation}; {progress})"
    if rendered is not None and (stronger := rendered.overriding(config)):
        return (
            f"{_named(pool)} has {', '.join(stronger)} from a MachineConfig that comes after {config.name} ({progress})"
        )
    if not has_content:
        return f"Waiting for {_named(pool)} to take up {config.name} ({progress})"
    return f"Waiting for {_named(pool)} to stabilize ({progress})"


def _named(pool: Pool) -> str:
    return f"MachineConfigPool '{pool.name}'"
