"""What a viewer may do: access reviews with their own credentials, whose answers are cached for a short time."""

from __future__ import annotations

import asyncio
from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar
from weakref import WeakValueDictionary

from virt_steward.insight.field_owners import OwnedObject
from virt_steward.kube.answers import decoded
from virt_steward.kube.client import Selection
from virt_steward.kube.errors import Forbidden, NotFound, NotServed
from virt_steward.plans.blast_radius import running_vms

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterable, Mapping

    from virt_steward.console.authentication import Viewer
    from virt_steward.insight.field_owners import ManagedFieldsRecord
    from virt_steward.kube.client import Client
    from virt_steward.objects.identity import Kind, Ref
    from virt_steward.plans.blast_radius import VmiFacts
    from virt_steward.runtime.clock import Clock

Q = TypeVar("Q", bound=Hashable)
A = TypeVar("A")

REMEMBERED = 30.0
"""Seconds for which an answer is cached."""
MOST_ANSWERS = 10_000


class AccessQuestion(NamedTuple):
    """Whether the viewer may do this."""

    verb: str
    group: str
    plural: str
    namespace: str
    """Empty: everywhere."""


class ListRule(NamedTuple):
    """What one RBAC rule allows a viewer to list in a namespace."""

    groups: frozenset[str]
    plurals: frozenset[str]

    def covers(self, kind: Kind) -> bool:
        return not self.groups.isdisjoint({kind.group, "*"}) and not self.plurals.isdisjoint({kind.plural, "*"})


@dataclass(frozen=True, slots=True)
class VisibleScope:
    """What a viewer may see of the kinds that were checked. A kind that was not checked is hidden."""

    everywhere: frozenset[Kind] = frozenset()
    within: Mapping[Kind, frozenset[str]] = field(default_factory=dict)

    def sees(self, kind: Kind, namespace: str = "") -> bool:
        return kind in self.everywhere or namespace in self.within.get(kind, ())

    def namespaces(self, kind: Kind) -> frozenset[str] | None:
        """The namespaces in which the viewer may list such objects; None means all of them."""
        return None if kind in self.everywhere else self.within.get(kind, frozenset())

    def covers(self, kind: Kind) -> bool:
        """Whether the viewer may list all objects of this kind."""
        return kind in self.everywhere


class AnswerCache(Generic[Q, A]):
    """Caches answers for some time. Concurrent callers with the same question share one request."""

    def __init__(self, clock: Clock, remembered: float) -> None:
        self._clock = clock
        self._remembered = remembered
        self._answers: dict[Q, tuple[float, asyncio.Task[A]]] = {}

    async def answer(self, question: Q, ask: Callable[[Q], Coroutine[Any, Any, A]]) -> A:
        now = self._clock.now()
        known = self._answers.get(question)
        if known and now - known[0] < self._remembered:
            await asyncio.wait((known[1],))
            if not known[1].cancelled() and known[1].exception() is None:  # else that caller may have left: ask again
                return known[1].result()
        if len(self._answers) > MOST_ANSWERS:
            self._answers.clear()
        asked = now, asyncio.create_task(ask(question))
        self._answers[question] = asked
        try:
            return await asyncio.shield(asked[1])
        except BaseException:
            if self._answers.get(question) is asked:
                del self._answers[question]  # a failure is not cached
            raise


class TokenAnswers:
    """The cached answers of one token."""

    def __init__(self, clock: Clock, remembered: float) -> None:
        self.allowed: AnswerCache[AccessQuestion, bool] = AnswerCache(clock, remembered)
        self.listable: AnswerCache[str, tuple[ListRule, ...]] = AnswerCache(clock, remembered)
        self.running_vms: AnswerCache[None, tuple[VmiFacts, ...] | None] = AnswerCache(clock, remembered)
        self.managed_fields: AnswerCache[Ref, tuple[ManagedFieldsRecord, ...] | None] = AnswerCache(clock, remembered)


class Rights:
    """The rights of one viewer. Raises Unauthorized as soon as the API server rejects their token."""

    def __init__(self, client: Client, answers: TokenAnswers) -> None:
        self._client = client
        self._answers = answers

    async def allow(self, verb: str, kind: Kind, namespace: str = "") -> bool:
        question = AccessQuestion(verb, kind.group, kind.plural, namespace)
        return await self._answers.allowed.answer(question, self._ask)

    async def running_vms(self) -> tuple[VmiFacts, ...] | None:
        """The running VMs, to count which of them a reboot concerns; None if the viewer may not list them.

        They are read with the viewer's credentials when a page needs them: the console itself does not watch VMs.
        """
        return await self._answers.running_vms.answer(None, self._list_vms)

    async def _list_vms(self, _: None) -> tuple[VmiFacts, ...] | None:
        try:
            return await running_vms(self._client)
        except Forbidden:
            return None

    async def managed_fields(self, ref: Ref) -> tuple[ManagedFieldsRecord, ...] | None:
        """The managedFields of an object; None if the viewer may not list it, or it does not exist.

        Read with the viewer's credentials when a page shows them, and without the rest of the object: the console keeps
        only what controllers keep of it.
        """
        return await self._answers.managed_fields.answer(ref, self._read_managed_fields)

    async def _read_managed_fields(self, ref: Ref) -> tuple[ManagedFieldsRecord, ...] | None:
        selection = Selection.one(ref.key, metadata_only=True)
        try:
            found = [raw async for page in self._client.pages(ref.kind, selection, may_lag=True) for raw in page.items]
        except (Forbidden, NotFound, NotServed):
            return None
        return decoded(found[0], OwnedObject, f"list {ref}").metadata.managed_fields if found else None

    async def visible_scope(self, namespaces: Mapping[Kind, Callable[[], Iterable[str]]]) -> VisibleScope:
        """Ask for each kind in all namespaces, and only where that is refused for single namespaces."""
        kinds = tuple(namespaces)
        whole = await asyncio.gather(*(self.allow("list", kind) for kind in kinds))
        everywhere = frozenset(kind for kind, allowed in zip(kinds, whole, strict=True) if allowed)
        places = await self._with_rules(
            {kind: set(namespaces[kind]()) - {""} for kind in kinds if kind not in everywhere}
        )
        parts = await asyncio.gather(*(self.allow("list", kind, name) for kind, name in places))
        within: dict[Kind, set[str]] = {}
        for (kind, name), allowed in zip(places, parts, strict=True):
            if allowed:
                within.setdefault(kind, set()).add(name)
        return VisibleScope(everywhere, {kind: frozenset(names) for kind, names in within.items()})

    async def _with_rules(self, places: Mapping[Kind, set[str]]) -> list[tuple[Kind, str]]:
        """The kinds and namespaces that some RBAC rule of the viewer covers, by one request per namespace.

        In most namespaces a viewer has no rule at all, and one SelfSubjectRulesReview says so for all kinds. A rule
        is not yet a permission, because another authorizer may deny it: each result is then checked by itself.
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

    async def _ask(self, question: AccessQuestion) -> bool:
        attributes = {
            "verb": question.verb,
            "group": question.group,
            "resource": question.plural,
            "namespace": question.namespace,
        }
        return bool((await self._review("SelfSubjectAccessReview", {"resourceAttributes": attributes})).get("allowed"))

    async def _ask_for_rules(self, namespace: str) -> tuple[ListRule, ...]:
        """An authorizer that cannot list its rules counts as one that denies."""
        status = await self._review("SelfSubjectRulesReview", {"namespace": namespace})
        return tuple(
            ListRule(frozenset(rule.get("apiGroups") or ()), frozenset(rule.get("resources") or ()))
            for rule in status.get("resourceRules") or ()
            if not {"list", "*"}.isdisjoint(rule["verbs"]) and not rule.get("resourceNames")
        )

    async def _review(self, kind: str, spec: dict[str, Any]) -> dict[str, Any]:
        """The status of the review; empty for viewers who may not create reviews."""
        review = {"apiVersion": "authorization.k8s.io/v1", "kind": kind, "metadata": {"name": ""}, "spec": spec}
        try:
            return dict((await self._client.create(review))["status"])
        except Forbidden:
            return {}


class RightsCache:
    """Viewers with the same token share their cached answers."""

    def __init__(self, clock: Clock, *, remembered: float = REMEMBERED) -> None:
        self._clock = clock
        self._remembered = remembered
        self._by_token: WeakValueDictionary[str, TokenAnswers] = WeakValueDictionary()

    def of(self, viewer: Viewer) -> Rights:
        answers = self._by_token.get(viewer.fingerprint) or TokenAnswers(self._clock, self._remembered)
        if viewer.fingerprint:  # viewers who came by a link have no token
            self._by_token[viewer.fingerprint] = answers
        return Rights(viewer.client, answers)
