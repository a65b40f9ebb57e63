"""A controller that sends one patch, to measure the whole path: watch → cache → workqueue → reconcile → patch."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from random import Random
from typing import Self

import msgspec

from tests.bench.bare import NAMESPACE, a_config_map
from virt_steward.kube.client import Client, Selection
from virt_steward.kube.watch import projection
from virt_steward.objects.identity import Key, Kind, Ref
from virt_steward.objects.meta import Meta
from virt_steward.runtime.access import Access
from virt_steward.runtime.clock import SystemClock
from virt_steward.runtime.controller import ControllerDefinition, Toolbox, Trigger
from virt_steward.runtime.informer import Source
from virt_steward.runtime.manager import Environment, Manager
from virt_steward.runtime.metrics import Metrics
from virt_steward.runtime.notifier import Notifier
from virt_steward.runtime.outcomes import Done

AGENT = "bench-controller"
CONFIG_MAP = Kind("", "ConfigMap", "configmaps")
QUESTION = Key(NAMESPACE, "bench-question")


class _Data(msgspec.Struct, frozen=True):
    asked: str = ""
    answered: str = ""


class _Question(msgspec.Struct, frozen=True):
    metadata: Meta
    data: _Data = _Data()


QUESTIONS = Source(CONFIG_MAP, projection(_Question), Selection.one(QUESTION))


@dataclass(frozen=True, slots=True)
class Reaction:
    """The time of each step, in seconds of one clock."""

    asked: float
    seen: float
    answered: float

    @property
    def from_event(self) -> float:
        return self.answered - self.seen

    @property
    def from_change(self) -> float:
        return self.answered - self.asked


class _Answering:
    """Answers a changed object with one patch; the watch event of its own patch needs no action."""

    def __init__(self, tools: Toolbox, timings: asyncio.Queue[tuple[float, float]]) -> None:
        self._store = tools.store(QUESTIONS)
        self._client = tools.client
        self._timings = timings
        self._seen = 0.0
        self.triggers = (Trigger(QUESTIONS, self._handlers),)

    async def reconcile(self, key: Key) -> Done:
        found = self._store.get(key)
        if found is None or found.data.asked == found.data.answered:
            return Done()
        seen = self._seen
        await self._client.merge_patch(Ref(CONFIG_MAP, key), {"data": {"answered": found.data.asked}})
        self._timings.put_nowait((seen, time.perf_counter()))
        return Done()

    def _handlers(self, key: Key, _before: _Question | None, after: _Question | None) -> tuple[Key, ...]:
        if after is not None and after.data.asked != after.data.answered:
            self._seen = time.perf_counter()
        return (key,)


class Reactions:
    """Triggers a running controller."""

    def __init__(self, client: Client, timings: asyncio.Queue[tuple[float, float]]) -> None:
        self._client = client
        self._timings = timings
        self._asked = 0

    @classmethod
    @asynccontextmanager
    async def of_a_controller(cls, client: Client) -> AsyncIterator[Self]:
        timings: asyncio.Queue[tuple[float, float]] = asyncio.Queue()
        await client.create(a_config_map(QUESTION.name, asked="", answered=""))
        clock, metrics = SystemClock(), Metrics()
        notifier = Notifier({}, clock, Random(), metrics.registry)
        around = Environment(client.connection, client.discovery, clock, metrics, AGENT, None, 1.0, notifier)
        definition = ControllerDefinition("bench", Access("bench"), lambda tools: _Answering(tools, timings))
        stop = asyncio.Event()
        running = asyncio.create_task(Manager(around, [definition]).run(stop))
        try:
            yield cls(client, timings)
        finally:
            stop.set()
            await running

    async def next(self) -> Reaction:
        """Change the watched object and wait for the patch."""
        self._asked += 1
        asked = time.perf_counter()
        await self._client.merge_patch(Ref(CONFIG_MAP, QUESTION), {"data": {"asked": str(self._asked)}})
        seen, answered = await asyncio.wait_for(self._timings.get(), timeout=30)
        return Reaction(asked, seen, answered)
