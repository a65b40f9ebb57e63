"""Remembers dry runs that found nothing to change, so that they are not repeated. Pure: time is an argument.

A controller that keeps objects at a desired state must find out on each reconcile whether an apply would change
something. Only the server knows, by a dry run, since defaults and admission webhooks take part. On a converged cluster
all of these dry runs find nothing, and they are most of the requests. So the memo keeps, for each object and field
manager, a fingerprint of both sides: the intent, and the live object's uid and content digest. While neither has
changed, the result of the dry run cannot have changed either, and no request is sent.

Example. The autopilot reconciles KubeDescheduler `cluster`, and the dry run finds no difference: `remember`. Later
its status changes and the informer triggers a reconcile. Status and managedFields are not part of the content
digest, so the fingerprint is the same: `knows` is true, and the reconcile ends without a request. Then somebody edits
the spec: the digest differs, `knows` is false, and the dry run shows the drift.

One cause is in neither side: a webhook or a default may change. Therefore each entry expires after about an hour, with
jitter, so that not all dry runs are repeated at once. `forget_kind` drops all entries of a kind when its CRD changes.
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from dataclasses import dataclass
from typing import TYPE_CHECKING

from virt_steward.objects.canonical import canonical, same
from virt_steward.objects.identity import Kind, Ref, ref_of
from virt_steward.objects.normalize import content_digest, sanitized

if TYPE_CHECKING:
    from collections.abc import Callable
    from random import Random

    from virt_steward.ssa.locks import Object
    from virt_steward.ssa.managers import FieldManager

LIFETIME = 3600.0
CAPACITY = 10_000
_JITTER = (0.8, 1.2)


@dataclass(frozen=True, slots=True)
class LiveDigest:
    """A live object as the memo compares it: its uid, and a digest of its content."""

    uid: str
    digest: bytes

    @classmethod
    def of(cls, live: Object) -> LiveDigest:
        return cls(live["metadata"]["uid"], content_digest(live))


@dataclass(frozen=True, slots=True)
class _Finding:
    fingerprint: bytes
    until: float


class DryRunMemo:
    """The last converged state of each intent. Times are seconds of one clock."""

    def __init__(self, rng: Random, *, lifetime: float = LIFETIME, capacity: int = CAPACITY) -> None:
        self._rng = rng
        self._lifetime = lifetime
        self._capacity = capacity
        self._findings: OrderedDict[tuple[Ref, str], _Finding] = OrderedDict()  # least recently used first

    def __len__(self) -> int:
        return len(self._findings)

    def knows(
        self, intent: Object, manager: FieldManager, sighting: LiveDigest, now: float, *, basis: str = ""
    ) -> bool:
        """Whether a dry run of this intent found nothing to change on this content.

        `basis` is anything else that the sent intent depends on, such as the fields that were left out of it.
        """
        key = (ref_of(intent), manager.name)
        finding = self._findings.get(key)
        if finding is None:
            return False
        if now >= finding.until or finding.fingerprint != _fingerprint(intent, sighting, basis):
            del self._findings[key]
            return False
        self._findings.move_to_end(key)
        return True

    def remember(
        self, intent: Object, manager: FieldManager, sighting: LiveDigest, now: float, *, basis: str = ""
    ) -> None:
        """Note that a dry run of this intent found nothing to change on this content."""
        key = (ref_of(intent), manager.name)
        until = now + self._lifetime * self._rng.uniform(*_JITTER)  # so that not all expire at once
        self._findings[key] = _Finding(_fingerprint(intent, sighting, basis), until)
        self._findings.move_to_end(key)
        if len(self._findings) > self._capacity:
            self._findings.popitem(last=False)

    def compare(self, planned: Object, answer: Object) -> None:
        """Forget the object if an apply had another result than its preview: its previews are not reliable."""
        if not same(sanitized(planned), sanitized(answer)):
            self.forget(ref_of(answer))

    def forget(self, ref: Ref) -> None:
        """Drop the entries of one object: something that its intent depends on has changed."""
        self._forget(lambda known: known == ref)

    def forget_kind(self, kind: Kind) -> None:
        """Drop the entries of all objects of a kind: its CRD has changed."""
        self._forget(lambda known: known.kind == kind)

    def _forget(self, concerned: Callable[[Ref], bool]) -> None:
        for key in [key for key in self._findings if concerned(key[0])]:
            del self._findings[key]


def _fingerprint(intent: Object, sighting: LiveDigest, basis: str) -> bytes:
    parts = (canonical(intent), sighting.uid.encode(), sighting.digest, basis.encode())
    return hashlib.sha256(b"".join(hashlib.sha256(part).digest() for part in parts)).digest()
