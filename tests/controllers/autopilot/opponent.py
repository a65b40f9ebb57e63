"""Somebody who wants fields otherwise than the autopilot does, and never gives up."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import count
from typing import Any

from tests.controllers.autopilot.pair import ASSET, AUTOPILOT
from tests.controllers.autopilot.rig import AutopilotRig, spec_of
from tests.eventually import eventually

PAUSED = "platform.kubevirt.io/reconcile-paused"


class Opponent:
    """Sets fields to values of its own as soon as they are set right."""

    def __init__(self, rig: AutopilotRig, *turns: dict[str, Any]) -> None:
        self._cockpit = rig
        self._turns = turns
        self.edits = 0

    async def fight(self) -> None:
        for number in count():
            turn = self._turns[number % len(self._turns)]
            await self._cockpit.edit(ASSET, {"spec": turn}, manager="opponent")
            self.edits += 1
            await eventually(lambda turn=turn: self._has_lost(turn), within=60)  # type: ignore[misc]

    async def _has_lost(self, turn: dict[str, Any]) -> bool:
        return not turn.items() <= spec_of(await self._cockpit.live(ASSET)).items()


class OtherInstance:
    """Applies its own values as the same field manager, as soon as they are replaced."""

    def __init__(self, rig: AutopilotRig, theirs: dict[str, Any]) -> None:
        self._cockpit = rig
        self._theirs = theirs

    async def fight(self) -> None:
        while True:
            await self._cockpit.client.apply(self._theirs, manager=AUTOPILOT, force=True)
            await eventually(self._is_replaced, within=60)

    async def _is_replaced(self) -> bool:
        return spec_of(await self._cockpit.live(ASSET)) != self._theirs["spec"]


@asynccontextmanager
async def another_instance(rig: AutopilotRig, theirs: dict[str, Any]) -> AsyncIterator[None]:
    async with _fighting(OtherInstance(rig, theirs)):
        yield


@asynccontextmanager
async def an_opponent(rig: AutopilotRig, *turns: dict[str, Any]) -> AsyncIterator[Opponent]:
    opponent = Opponent(rig, *turns)
    async with _fighting(opponent):
        yield opponent


@asynccontextmanager
async def _fighting(one: Opponent | OtherInstance) -> AsyncIterator[None]:
    task = asyncio.create_task(one.fight())
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def is_paused(rig: AutopilotRig) -> bool:
    obj = await rig.live(ASSET)
    return obj is not None and obj["metadata"].get("annotations", {}).get(PAUSED) == "true"
