"""What a viewer may do, as the API server says when asked with their own credentials; asked again after a while."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from virt_steward.kube.errors import Forbidden

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from virt_steward.kube.client import Client
    from virt_steward.objects.identity import Kind
    from virt_steward.runtime.clock import Clock

REMEMBERED = 30.0
"""Seconds for which an answer counts."""
MOST_ANSWERS = 10_000


class Question(NamedTuple):
    verb: str
    group: str
    plural: str
    namespace: str
    """Empty: everywhere."""


@dataclass(frozen=True, slots=True)
class Sight:
    """What a viewer may see of the kinds that a page shows. What was not asked about is not seen."""

    everywhere: frozenset[Kind] = frozenset()
    within: Mapping[Kind, frozenset[str]] = field(default_factory=dict)

    def sees(self, kind: Kind, namespace: str = "") -> bool:
        return kind in self.everywhere or namespace in self.within.get(kind, ())

    def places(self, kind: Kind) -> frozenset[str] | None:
        """The namespaces of which the viewer may see such objects; None means all of them."""
        return None if kind in self.everywhere else self.within.get(kind, frozenset())

    def lacks(self, kind: Kind) -> bool:
        """Tell whether there may be objects of this kind that are not shown."""
        return kind not in self.everywhere


class Rights:
    """Of one viewer. Raises Unauthorized as soon as their token no longer counts."""

    def __init__(self, client: Client, clock: Clock, *, remembered: float = REMEMBERED) -> None:
        self._client = client
        self._clock = clock
        self._remembered = remembered
        self._answers: dict[Question, tuple[float, asyncio.Task[bool]]] = {}

    async def allow(self, verb: str, kind: Kind, namespace: str = "") -> bool:
        return await self._answer(Question(verb, kind.group, kind.plural, namespace))

    async def sight(self, wanted: Mapping[Kind, Callable[[], Iterable[str]]]) -> Sight:
        """Ask for each kind as a whole, and only where that is refused for the namespaces that matter."""
        kinds = tuple(wanted)
        whole = await asyncio.gather(*(self.allow("list", kind) for kind in kinds))
        everywhere = frozenset(kind for kind, allowed in zip(kinds, whole, strict=True) if allowed)
        places = [
            (kind, name) for kind in kinds if kind not in everywhere for name in sorted(set(wanted[kind]()) - {""})
        ]
        parts = await asyncio.gather(*(self.allow("list", kind, name) for kind, name in places))
        within: dict[Kind, set[str]] = {}
        for (kind, name), allowed in zip(places, parts, strict=True):
            if allowed:
                within.setdefault(kind, set()).add(name)
        return Sight(everywhere, {kind: frozenset(names) for kind, names in within.items()})

    async def _answer(self, question: Question) -> bool:
        now = self._clock.now()
        known = self._answers.get(question)
        if known and now - known[0] < self._remembered:
            return await asyncio.shield(known[1])
        if len(self._answers) > MOST_ANSWERS:
            self._answers.clear()
        asked = asyncio.create_task(self._ask(question))
        self._answers[question] = now, asked
        try:
            return await asyncio.shield(asked)
        except BaseException:
            self._answers.pop(question, None)  # a failure is no answer
            raise

    async def _ask(self, question: Question) -> bool:
        review = {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SelfSubjectAccessReview",
            "metadata": {"name": ""},
            "spec": {
                "resourceAttributes": {
                    "verb": question.verb,
                    "group": question.group,
                    "resource": question.plural,
                    "namespace": question.namespace,
                }
            },
        }
        try:
            answer = await self._client.create(review)
        except Forbidden:  # who may not even ask may not look
            return False
        return bool(answer["status"].get("allowed"))
