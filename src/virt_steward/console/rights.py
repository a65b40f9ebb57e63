"""What a viewer may do, as the API server says when asked with their own credentials; asked again after a while."""

from __future__ import annotations

import asyncio
from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar
from weakref import WeakValueDictionary

from virt_steward.kube.errors import Forbidden

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterable, Mapping

    from virt_steward.console.authentication import Viewer
    from virt_steward.kube.client import Client
    from virt_steward.objects.identity import Kind
    from virt_steward.runtime.clock import Clock

Q = TypeVar("Q", bound=Hashable)
A = TypeVar("A")

REMEMBERED = 30.0
"""Seconds for which an answer counts."""
MOST_ANSWERS = 10_000


class Question(NamedTuple):
    verb: str
    group: str
    plural: str
    namespace: str
    """Empty: everywhere."""


class Listable(NamedTuple):
    """What one rule lets a viewer list in a namespace."""

    groups: frozenset[str]
    plurals: frozenset[str]

    def covers(self, kind: Kind) -> bool:
        return not self.groups.isdisjoint({kind.group, "*"}) and not self.plurals.isdisjoint({kind.plural, "*"})


@dataclass(frozen=True, slots=True)
class VisibleScope:
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


class AnswerCache(Generic[Q, A]):
    """Answers that count for a while. Who asks what another is asking just now waits for that answer."""

    def __init__(self, clock: Clock, remembered: float) -> None:
        self._clock = clock
        self._remembered = remembered
        self._answers: dict[Q, tuple[float, asyncio.Task[A]]] = {}

    async def answer(self, question: Q, ask: Callable[[Q], Coroutine[Any, Any, A]]) -> A:
        now = self._clock.now()
        known = self._answers.get(question)
        if known and now - known[0] < self._remembered:
            await asyncio.wait((known[1],))
            if not known[1].cancelled() and known[1].exception() is None:  # else they may have left: ask for ourselves
                return known[1].result()
        if len(self._answers) > MOST_ANSWERS:
            self._answers.clear()
        asked = now, asyncio.create_task(ask(question))
        self._answers[question] = asked
        try:
            return await asyncio.shield(asked[1])
        except BaseException:
            if self._answers.get(question) is asked:
                del self._answers[question]  # a failure is no answer
            raise


class Answers:
    """To all that was asked with one token."""

    def __init__(self, clock: Clock, remembered: float) -> None:
        self.allowed: AnswerCache[Question, bool] = AnswerCache(clock, remembered)
        self.listable: AnswerCache[str, tuple[Listable, ...]] = AnswerCache(clock, remembered)


class Rights:
    """Of one viewer. Raises Unauthorized as soon as their token no longer counts."""

    def __init__(self, client: Client, answers: Answers) -> None:
        self._client = client
        self._answers = answers

    async def allow(self, verb: str, kind: Kind, namespace: str = "") -> bool:
        question = Question(verb, kind.group, kind.plural, namespace)
        return await self._answers.allowed.answer(question, self._ask)

    async def sight(self, wanted: Mapping[Kind, Callable[[], Iterable[str]]]) -> VisibleScope:
        """Ask for each kind as a whole, and only where that is refused for the namespaces that matter."""
        kinds = tuple(wanted)
        whole = await asyncio.gather(*(self.allow("list", kind) for kind in kinds))
        everywhere = frozenset(kind for kind, allowed in zip(kinds, whole, strict=True) if allowed)
        places = await self._promising({kind: set(wanted[kind]()) - {""} for kind in kinds if kind not in everywhere})
        parts = await asyncio.gather(*(self.allow("list", kind, name) for kind, name in places))
        within: dict[Kind, set[str]] = {}
        for (kind, name), allowed in zip(places, parts, strict=True):
            if allowed:
                within.setdefault(kind, set()).add(name)
        return VisibleScope(everywhere, {kind: frozenset(names) for kind, names in within.items()})

    async def _promising(self, places: Mapping[Kind, set[str]]) -> list[tuple[Kind, str]]:
        """Where a rule speaks for it, by one question for each namespace: most have nothing to do with the viewer.

        That is no permission yet, since somebody else may still refuse; each of these is asked about by itself.
        """
        names = sorted({name for some in places.values() for name in some})
        found = await asyncio.gather(*(self._answers.listable.answer(name, self._ask_for_rules) for name in names))
        rules = dict(zip(names, found, strict=True))
        return [
            (kind, name)
            for kind, some in places.items()
            for name in sorted(some)
            if any(rule.covers(kind) for rule in rules[name])
        ]

    async def _ask(self, question: Question) -> bool:
        attributes = {
            "verb": question.verb,
            "group": question.group,
            "resource": question.plural,
            "namespace": question.namespace,
        }
        return bool((await self._review("SelfSubjectAccessReview", {"resourceAttributes": attributes})).get("allowed"))

    async def _ask_for_rules(self, namespace: str) -> tuple[Listable, ...]:
        """Those that are known: an authorizer that cannot tell its rules counts as one that refuses."""
        status = await self._review("SelfSubjectRulesReview", {"namespace": namespace})
        return tuple(
            Listable(frozenset(rule.get("apiGroups") or ()), frozenset(rule.get("resources") or ()))
            for rule in status.get("resourceRules") or ()
            if not {"list", "*"}.isdisjoint(rule["verbs"]) and not rule.get("resourceNames")
        )

    async def _review(self, kind: str, spec: dict[str, Any]) -> dict[str, Any]:
        """What is answered; nothing for those who may not even ask."""
        review = {"apiVersion": "authorization.k8s.io/v1", "kind": kind, "metadata": {"name": ""}, "spec": spec}
        try:
            return dict((await self._client.create(review))["status"])
        except Forbidden:
            return {}


class RightsOfAll:
    """Viewers with the same token share what was answered to any of them."""

    def __init__(self, clock: Clock, *, remembered: float = REMEMBERED) -> None:
        self._clock = clock
        self._remembered = remembered
        self._by_token: WeakValueDictionary[str, Answers] = WeakValueDictionary()

    def of(self, viewer: Viewer) -> Rights:
        answers = self._by_token.get(viewer.fingerprint) or Answers(self._clock, self._remembered)
        if viewer.fingerprint:  # whoever came by a link has no token by which to tell them
            self._by_token[viewer.fingerprint] = answers
        return Rights(viewer.client, answers)
