"""Which clusters have a VM: asked all at once, one list per cluster and namespace for however many machines wait."""

from __future__ import annotations

import asyncio
import math
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from operator import attrgetter
from typing import TYPE_CHECKING, Protocol, TypeVar

from virt_steward.controllers.placement.observation import KubeVirtMissing, Unreachable, VmAbsent, VmFound
from virt_steward.kube.client import Selection
from virt_steward.kube.errors import NotFound, NotServed, Unavailable
from virt_steward.objects.identity import Kind
from virt_steward.objects.meta import Existing

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable

    from virt_steward.controllers.placement.observation import Finding
    from virt_steward.kube.client import Reader
    from virt_steward.runtime.clock import Clock

T = TypeVar("T")
Names = frozenset[str]

VIRTUAL_MACHINE = Kind("kubevirt.io", "VirtualMachine", "virtualmachines")


@dataclass(frozen=True, slots=True)
class SearchTimeouts:
    """How long a search takes, and how long its answers count, in seconds."""

    deadline: float = 10.0
    """Who has not answered by then counts as silent."""
    memory: float = 15.0
    """So long an answer is remembered."""
    apart: float = 1.0
    """The same question is not put to a cluster more often, however many machines come one after the other."""


class SearchClusters(Protocol):
    """Who is asked."""

    def edition(self, config: str) -> int: ...

    async def ask(self, config: str, question: Callable[[Reader], Awaitable[T]]) -> T | Unreachable: ...


def _uncounted(_seconds: float) -> None:
    """Nobody wants to know how long a search took."""


class Search:
    """Remembers what clusters said, as long as their names stand for the same clusters."""

    def __init__(
        self,
        clusters: SearchClusters,
        patience: SearchTimeouts,
        clock: Clock,
        took: Callable[[float], None] = _uncounted,
    ) -> None:
        self._clusters = clusters
        self._patience = patience
        self._clock = clock
        self._took = took
        self._places: dict[_Place, _Lists] = {}
        self._swept = -math.inf

    async def find(self, namespace: str, vm: str, configs: Iterable[str], *, since: float) -> dict[str, Finding]:
        """What each cluster says of the VM; nothing of those that others took the place of meanwhile.

        Found and NotThere always come from a list that began at `since` or later, on the clock: the time at which the
        machine was first seen to wait. So an older answer never decides, and one list serves a whole batch.
        """
        late = f"has not answered within {self._patience.deadline:g} s"
        findings: dict[str, Finding] = {config: Unreachable(f"cluster {config} {late}") for config in configs}

        async def note(config: str) -> None:
            findings[config] = await self._finding(config, namespace, vm, since)
            editions[config] = self._clusters.edition(config)

        began = self._clock.now()
        editions = {config: self._clusters.edition(config) for config in findings}
        with suppress(TimeoutError):
            async with asyncio.timeout(self._patience.deadline), asyncio.TaskGroup() as questions:
                for config in findings:
                    questions.create_task(note(config))
        self._took(self._clock.now() - began)
        # While we waited for others, a name may have come to stand for another cluster: that one has said nothing yet.
        return {one: said for one, said in findings.items() if editions[one] == self._clusters.edition(one)}

    async def _finding(self, config: str, namespace: str, vm: str, since: float) -> Finding:
        while True:
            place = _Place(config, self._clusters.edition(config), namespace)
            lists = self._at(place)
            answer = lists.remembered(since) or await lists.asked(since)
            if place.edition == self._clusters.edition(config):  # else it was another cluster that answered
                return answer.finding(vm)

    def _at(self, place: _Place) -> _Lists:
        if place not in self._places:
            self._sweep()
            self._places[place] = _Lists(place, self._clusters, self._patience, self._clock)
        return self._places[place]

    def _sweep(self) -> None:
        """Forget what nobody asks for any more; now and then, for there may be many places."""
        now = self._clock.now()
        if now - self._swept >= self._patience.memory:
            self._swept = now
            self._places = {known: lists for known, lists in self._places.items() if not lists.idle}


@dataclass(frozen=True, slots=True)
class _Place:
    config: str
    edition: int
    namespace: str


@dataclass(frozen=True, slots=True)
class _Answer:
    began: float
    said: Names | KubeVirtMissing | Unreachable

    def finding(self, vm: str) -> Finding:
        if isinstance(self.said, KubeVirtMissing | Unreachable):
            return self.said
        return VmFound() if vm in self.said else VmAbsent()


@dataclass(slots=True, eq=False)
class _Question:
    """Put to a cluster, or about to be. Who comes before it begins can rely on its answer."""

    began: float = math.inf


class _Lists:
    """What one namespace of one cluster holds: the latest answer, and the questions under way."""

    def __init__(self, place: _Place, clusters: SearchClusters, patience: SearchTimeouts, clock: Clock) -> None:
        self._place = place
        self._clusters = clusters
        self._patience = patience
        self._clock = clock
        self._latest = _Answer(-math.inf, frozenset())
        self._last_began = -math.inf
        self._under_way: dict[_Question, asyncio.Task[_Answer]] = {}

    @property
    def idle(self) -> bool:
        """Nobody waits here, and nothing is remembered."""
        return not self._under_way and self._age >= self._patience.memory

    def remembered(self, since: float) -> _Answer | None:
        """A VM that was there may have gone since, as one that was not may have come."""
        if isinstance(self._latest.said, Unreachable):
            counts = self._age < self._patience.apart
        else:
            counts = self._age < self._patience.memory and self._latest.began >= since
        return self._latest if counts else None

    async def asked(self, since: float) -> _Answer:
        """By a question that begins late enough: one under way, or a new one."""
        for question, answer in self._under_way.items():
            if question.began >= since:
                return await asyncio.shield(answer)  # whoever gives up does so alone
        question = _Question()
        self._under_way[question] = asyncio.create_task(self._put(question))
        return await asyncio.shield(self._under_way[question])

    @property
    def _age(self) -> float:
        return self._clock.now() - self._latest.began

    async def _put(self, question: _Question) -> _Answer:
        try:
            wait = self._last_began + self._patience.apart - self._clock.now()
            if wait > 0:
                await self._clock.sleep(wait)
            self._last_began = question.began = self._clock.now()
            said = await self._clusters.ask(self._place.config, partial(_names, namespace=self._place.namespace))
            answer = _Answer(question.began, said)
            self._latest = max(self._latest, answer, key=attrgetter("began"))
            return answer
        finally:
            del self._under_way[question]


async def _names(reader: Reader, *, namespace: str) -> Names | KubeVirtMissing:
    for _ in range(2):  # what discovery remembers may be out of date
        try:
            listed = await reader.list(VIRTUAL_MACHINE, Selection(namespace, metadata_only=True), Existing)
            return frozenset(one.metadata.name for one in listed)
        except NotServed:
            reader.discovery.forget()
    # A server that starts lists no custom kinds for a moment, but would not say of this path that it does not exist.
    try:
        await reader.raw(f"/apis/{VIRTUAL_MACHINE.group}/v1/namespaces/{namespace}/{VIRTUAL_MACHINE.plural}?limit=1")
    except NotFound:
        return KubeVirtMissing()
    raise Unavailable("the server has VirtualMachines, and does not list their kind")
