"""Finds the clusters that have a VM: all are asked at once, with one list per cluster and namespace for all Machines.

The answers are remembered. A list of the VMs in one namespace of one cluster serves every Machine of the namespace, and
two such lists begin at least a second apart. So a Machine may get an answer that is older than itself; what it may be
used for is decided by the caller through `since`, the time at which the question came up:

- An answer that began at `since` or later is as good as a new one. Example: 300 Machines are created at 12:00:00; the
  list that begins at 12:00:00.2 answers all of them.
- An answer that began earlier may miss a VM that was created since, or show one that was deleted. It is only given to
  callers that accept any age (`since` of minus infinity), see `evaluate.py`.
- Failures are remembered for a second only, whatever `since` is: the fleet has its own backoff for them.

An answer belongs to an edition of the cluster. If the kubeconfig of `east` changes, its name may mean another cluster
from then on, and all that was remembered of `east` no longer counts.
"""

from __future__ import annotations

import asyncio
import math
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from operator import attrgetter
from typing import TYPE_CHECKING, Protocol, TypeVar

from virt_steward.controllers.placement.messages import timed_out
from virt_steward.controllers.placement.observation import KubeVirtMissing, Unreachable, VmAbsent, VmFound
from virt_steward.kube.answers import decoded_items
from virt_steward.kube.client import PAGE, Selection
from virt_steward.kube.errors import AnswerTooLong, InvalidAnswer, NotFound, NotServed, Unavailable
from virt_steward.objects.identity import Kind
from virt_steward.objects.meta import Existing

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable

    from virt_steward.controllers.placement.observation import Finding
    from virt_steward.controllers.placement.options import SearchTimeouts
    from virt_steward.kube.client import Reader
    from virt_steward.runtime.clock import Clock

T = TypeVar("T")
Names = frozenset[str]

VIRTUAL_MACHINE = Kind("kubevirt.io", "VirtualMachine", "virtualmachines")
SMALL_PAGE = 50
LONGEST_NAME = 253
MOST_NAMES = 50_000
"""Names that are remembered of one cluster, in all namespaces together: some megabytes."""
FEW_NAMES = 100
"""An answer with no more of them is not worth the counting."""


class SearchClusters(Protocol):
    """The clusters that are asked."""

    def edition(self, config: str) -> int: ...

    async def ask(self, config: str, question: Callable[[Reader], Awaitable[T]]) -> T | Unreachable: ...


def _not_measured(_seconds: float) -> None:
    """For searches without metrics."""


class Search:
    """Searches clusters for VMs, and remembers their answers."""

    def __init__(
        self,
        clusters: SearchClusters,
        timeouts: SearchTimeouts,
        clock: Clock,
        took: Callable[[float], None] = _not_measured,
    ) -> None:
        self._clusters = clusters
        self._timeouts = timeouts
        self._clock = clock
        self._took = took
        self._places: dict[str, dict[_Place, _Lists]] = {}
        """By cluster."""
        self._swept = -math.inf

    async def find(
        self, namespace: str, vms: tuple[str, ...], configs: Iterable[str], *, since: float
    ) -> dict[str, Finding]:
        """Whether each cluster has one of the VMs; without those whose kubeconfig changed meanwhile.

        VmFound and VmAbsent always come from a list that began at `since` or later, on the clock.
        """
        late = timed_out(self._timeouts.deadline)
        findings: dict[str, Finding] = {config: Unreachable(f"cluster {config}: {late}") for config in configs}

        async def ask(config: str) -> None:
            findings[config] = await self._finding(config, namespace, vms, since)
            editions[config] = self._clusters.edition(config)

        began = self._clock.now()
        editions = {config: self._clusters.edition(config) for config in findings}
        with suppress(TimeoutError):
            async with asyncio.timeout(self._timeouts.deadline), asyncio.TaskGroup() as questions:
                for config in findings:
                    questions.create_task(ask(config))
        self._took(self._clock.now() - began)
        # While other clusters answered, a name may have come to mean another cluster, which was not asked yet.
        return {one: found for one, found in findings.items() if editions[one] == self._clusters.edition(one)}

    async def _finding(self, config: str, namespace: str, vms: tuple[str, ...], since: float) -> Finding:
        while True:
            place = _Place(config, self._clusters.edition(config), namespace)
            lists = self._at(place)
            answer = lists.remembered(since)
            if answer is None:
                answer = await lists.ask(since)
                self._limit_memory(config, answer)
            if place.edition == self._clusters.edition(config):  # else it was another cluster that answered
                return answer.finding(vms)

    def _at(self, place: _Place) -> _Lists:
        if place not in self._places.get(place.config, {}):
            self._sweep()
            lists = _Lists(place, self._clusters, self._timeouts, self._clock)
            self._places.setdefault(place.config, {})[place] = lists
        return self._places[place.config][place]

    def _sweep(self) -> None:
        """Forget answers that are too old; not on every call, since there may be many namespaces."""
        now = self._clock.now()
        if now - self._swept < self._timeouts.memory:
            return
        self._swept = now
        for config, places in list(self._places.items()):
            self._places[config] = {known: lists for known, lists in places.items() if not lists.is_idle}
            if not self._places[config]:
                del self._places[config]

    def _limit_memory(self, config: str, answer: _Answer) -> None:
        """Forget the oldest answers of a cluster that lists more VMs than can be remembered."""
        if answer.size <= FEW_NAMES:
            return
        kept = 0
        for lists in sorted(self._places.get(config, {}).values(), key=lambda one: -one.latest.began):
            kept += lists.latest.size
            if kept > MOST_NAMES:
                lists.latest = NOTHING


@dataclass(frozen=True, slots=True)
class _Place:
    config: str
    edition: int
    namespace: str


@dataclass(frozen=True, slots=True)
class _Answer:
    began: float
    content: Names | KubeVirtMissing | Unreachable

    @property
    def size(self) -> int:
        """The number of names."""
        return len(self.content) if isinstance(self.content, frozenset) else 0

    def finding(self, vms: tuple[str, ...]) -> Finding:
        if isinstance(self.content, KubeVirtMissing | Unreachable):
            return self.content
        found = next((vm for vm in vms if vm in self.content), None)
        return VmAbsent() if found is None else VmFound(found)


NOTHING = _Answer(-math.inf, frozenset())


@dataclass(slots=True, eq=False)
class _Question:
    """A list that was sent, or is about to be. A caller that comes before it begins can rely on its answer."""

    began: float = math.inf


class _Lists:
    """The lists of one namespace of one cluster: the latest answer, and those in flight."""

    def __init__(self, place: _Place, clusters: SearchClusters, timeouts: SearchTimeouts, clock: Clock) -> None:
        self._place = place
        self._clusters = clusters
        self._timeouts = timeouts
        self._clock = clock
        self.latest = NOTHING
        self._last_began = -math.inf
        self._in_flight: dict[_Question, asyncio.Task[_Answer]] = {}

    @property
    def is_idle(self) -> bool:
        """Nothing is in flight, and nothing is remembered."""
        return not self._in_flight and self._age >= self._timeouts.memory

    def remembered(self, since: float) -> _Answer | None:
        """The latest answer, if it began at `since` or later and is not too old; a failure counts for a second."""
        if isinstance(self.latest.content, Unreachable):
            counts = self._age < self._timeouts.apart
        else:
            counts = self._age < self._timeouts.memory and self.latest.began >= since
        return self.latest if counts else None

    async def ask(self, since: float) -> _Answer:
        """Wait for a list that begins at `since` or later: one in flight, or a new one."""
        for question, answer in self._in_flight.items():
            if question.began >= since:
                return await asyncio.shield(answer)  # a caller that is cancelled does not cancel it for others
        question = _Question()
        self._in_flight[question] = asyncio.create_task(self._send(question))
        return await asyncio.shield(self._in_flight[question])

    @property
    def _age(self) -> float:
        return self._clock.now() - self.latest.began

    async def _send(self, question: _Question) -> _Answer:
        try:
            wait = self._last_began + self._timeouts.apart - self._clock.now()
            if wait > 0:
                await self._clock.sleep(wait)
            self._last_began = question.began = self._clock.now()
            content = await self._clusters.ask(self._place.config, partial(_names, namespace=self._place.namespace))
            answer = _Answer(question.began, content)
            self.latest = max(self.latest, answer, key=attrgetter("began"))
            return answer
        finally:
            del self._in_flight[question]


async def _names(reader: Reader, *, namespace: str) -> Names | KubeVirtMissing:
    for _ in range(2):  # the cache of discovery may be out of date
        try:
            return await _listed(reader, namespace)
        except NotServed:
            reader.discovery.forget()
    # A server that is starting does not list custom kinds for a moment, but does not answer 404 to this path either.
    try:
        await reader.raw(f"/apis/{VIRTUAL_MACHINE.group}/v1/namespaces/{namespace}/{VIRTUAL_MACHINE.plural}?limit=1")
    except NotFound:
        return KubeVirtMissing()
    raise Unavailable("the server serves VirtualMachines, but its discovery does not list them")


async def _listed(reader: Reader, namespace: str) -> Names:
    """The names of all VMs; in smaller pages if their metadata is too long for pages of the usual size."""
    with suppress(AnswerTooLong):
        return await _listed_by(reader, namespace, PAGE)
    return await _listed_by(reader, namespace, SMALL_PAGE)


async def _listed_by(reader: Reader, namespace: str, page: int) -> Names:
    what = f"list {VIRTUAL_MACHINE} in {namespace}"
    pages = reader.pages(VIRTUAL_MACHINE, Selection(namespace, metadata_only=True), page=page)
    found = [one.metadata async for page in pages for one in await decoded_items(page.items, Existing, what)]
    if any(one.namespace != namespace or len(one.name) > LONGEST_NAME for one in found):
        raise InvalidAnswer(what, "it lists VMs that were not asked for")
    return frozenset(one.name for one in found)
