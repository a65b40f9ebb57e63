"""Simulates the machine-config daemon of a node: cordon, drain, reboot, uncordon."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from virt_steward.objects.corekinds import NODE
from virt_steward.objects.identity import Key, Ref
from virt_steward.objects.wallclock import rfc3339
from virt_steward_demo.simulation.pools import CURRENT, REASON, STATE

if TYPE_CHECKING:
    from virt_steward.kube.client import Client, Object

MANAGER = "machine-config-daemon"

DrainNode = Callable[[str], AbstractAsyncContextManager[object]]
"""Drains the node of that name; it stays drained until the end of the `async with` block."""


def drain_nothing(_node: str) -> AbstractAsyncContextManager[object]:
    return nullcontext()


@dataclass(frozen=True, slots=True)
class NodeDaemon:
    """The daemon of all nodes. Each step can be repeated, so an interrupted update is started again."""

    client: Client
    drained: DrainNode

    async def update(self, node: str, target: str, *, pace: float) -> None:
        """Update a node to its configuration; it is not ready for `pace` seconds."""
        await self._patch(node, {**_annotated(STATE, "Working"), "spec": {"unschedulable": True}})
        async with self.drained(node):
            await asyncio.sleep(pace / 2)
            await self._set_status(node, {**readiness(ready=False), "nodeInfo": {"bootID": str(uuid.uuid4())}})
            await asyncio.sleep(pace / 2)
            await self._set_status(node, readiness(ready=True))
            done = {CURRENT: target, STATE: "Done", REASON: None}
            await self._patch(node, {"metadata": {"annotations": done}, "spec": {"unschedulable": None}})

    async def fail(self, node: str, why: str) -> None:
        """Report the node as degraded, and change nothing else."""
        await self._patch(node, {"metadata": {"annotations": {STATE: "Degraded", REASON: why}}})

    async def _patch(self, node: str, patch: Object) -> None:
        await self.client.merge_patch(Ref(NODE, Key("", node)), patch, manager=MANAGER)

    async def _set_status(self, node: str, status: Object) -> None:
        ref = Ref(NODE, Key("", node))
        await self.client.merge_patch(ref, {"status": status}, subresource="status", manager="kubelet")


def readiness(*, ready: bool) -> Object:
    """A node's conditions."""
    reason, message = ("KubeletReady", "the node is up") if ready else ("KubeletNotReady", "the node is restarting")
    status, now = "True" if ready else "False", rfc3339(datetime.now(UTC))
    condition = {"type": "Ready", "status": status, "reason": reason, "message": message, "lastTransitionTime": now}
    return {"conditions": [condition]}


def _annotated(annotation: str, value: str) -> Object:
    return {"metadata": {"annotations": {annotation: value}}}
