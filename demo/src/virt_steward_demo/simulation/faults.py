"""Faults on request: a node that fails to update, a slow or paused pool, and another editor of the same field."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from itertools import cycle
from typing import TYPE_CHECKING, Any

import structlog

from virt_steward.kube.errors import KubeError
from virt_steward.objects.corekinds import NODE
from virt_steward.objects.identity import Key, Ref
from virt_steward_demo.simulation.kinds.machineconfiguration import MACHINE_CONFIG_POOL

if TYPE_CHECKING:
    from collections.abc import Sequence

    from virt_steward.kube.client import Client, Object
    from virt_steward_demo.simulation.control_loop import SimulatedObject

log = structlog.get_logger()

FAILS = "simulation.virt-steward.example/fails"
"""On a node: the error of its next update."""
PACE = "simulation.virt-steward.example/seconds-per-node"
"""On a pool: how long the update of one node takes."""


def update_error(node: SimulatedObject) -> str:
    return node.metadata.annotations.get(FAILS, "")


def pace_of(pool: SimulatedObject, default: float) -> float:
    return float(pool.metadata.annotations.get(PACE, default))


async def break_node(client: Client, name: str, why: str = "the new kernel does not boot") -> None:
    """Make the updates of a node fail until it is repaired."""
    await client.merge_patch(Ref(NODE, Key("", name)), {"metadata": {"annotations": {FAILS: why}}})


async def repair_node(client: Client, name: str) -> None:
    await client.merge_patch(Ref(NODE, Key("", name)), {"metadata": {"annotations": {FAILS: None}}})


async def set_pace(client: Client, pool: str, seconds: float) -> None:
    """Set how long the update of one node of a pool takes."""
    await client.merge_patch(_pool(pool), {"metadata": {"annotations": {PACE: str(seconds)}}})


async def pause_pool(client: Client, name: str) -> None:
    await client.merge_patch(_pool(name), {"spec": {"paused": True}})


async def resume_pool(client: Client, name: str) -> None:
    await client.merge_patch(_pool(name), {"spec": {"paused": False}})


def _pool(name: str) -> Ref:
    return Ref(MACHINE_CONFIG_POOL, Key("", name))


@dataclass(slots=True)
class OtherEditor:
    """Another admin or tool: sets one field to one value after the other, under its own field manager."""

    client: Client
    ref: Ref
    path: tuple[str, ...]
    values: Sequence[Any]
    interval: float
    """Seconds between two edits."""
    manager: str = "other-editor"
    edits: int = field(default=0, init=False)
    """How many edits the server has accepted."""

    async def run(self) -> None:
        """Edit at once and then at every interval; ends by cancellation."""
        for value in cycle(self.values):
            try:
                await self.client.merge_patch(self.ref, self._patch(value), manager=self.manager)
                self.edits += 1
            except KubeError as error:  # goes on: a real editor retries too
                log.warning("edit refused", object=str(self.ref), error=str(error))
            await asyncio.sleep(self.interval)

    def _patch(self, value: Any) -> Object:
        patch = value
        for name in reversed(self.path):
            patch = {name: patch}
        return dict(patch)
