"""What was found converged, remembered so that nobody asks the server again. Pure: time comes in as an argument."""

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
class Sighting:
    """What an informer keeps of an object: which one it is, and a digest of its content."""

    uid: str
    digest: bytes

    @classmethod
    def of(cls, live: Object) -> Sighting:
        return cls(live["metadata"]["uid"], content_digest(live))


@dataclass(frozen=True, slots=True)
class _Finding:
    fingerprint: bytes
    until: float


class DryRunMemo:
    """The last converged state of each intent. Times are those of one clock, in seconds.

    It holds for about an hour, as what the server makes of an intent can change unseen: by admission, by defaults.
    """

    def __init__(self, rng: Random, *, lifetime: float = LIFETIME, capacity: int = CAPACITY) -> None:
        self._rng = rng
        self._lifetime = lifetime
        self._capacity = capacity
        self._findings: OrderedDict[tuple[Ref, str], _Finding] = OrderedDict()  # the longest unused first

    def __len__(self) -> int:
        return len(self._findings)

    def knows(self, intent: Object, manager: FieldManager, sighting: Sighting, now: float, *, basis: str = "") -> bool:
        """Tell whether this intent was found converged on just this content.

        `basis` stands for whatever else bears on what is sent, such as fields that are left out of it.
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
        self, intent: Object, manager: FieldManager, sighting: Sighting, now: float, *, basis: str = ""
    ) -> None:
        key = (ref_of(intent), manager.name)
        until = now + self._lifetime * self._rng.uniform(*_JITTER)  # not all at once
        self._findings[key] = _Finding(_fingerprint(intent, sighting, basis), until)
        self._findings.move_to_end(key)
        if len(self._findings) > self._capacity:
            self._findings.popitem(last=False)

    def compare(self, planned: Object, answer: Object) -> None:
        """Forget the object if an apply led elsewhere than its preview said: previews of it are then worth little."""
        if not same(sanitized(planned), sanitized(answer)):
            self.forget(ref_of(answer))

    def forget(self, ref: Ref) -> None:
        """Ask again about one object: something that its intent was derived from has changed."""
        self._forget(lambda known: known == ref)

    def forget_kind(self, kind: Kind) -> None:
        """Ask again about all objects of a kind: its CRD has changed."""
        self._forget(lambda known: known.kind == kind)

    def _forget(self, concerned: Callable[[Ref], bool]) -> None:
        for key in [key for key in self._findings if concerned(key[0])]:
            del self._findings[key]


def _fingerprint(intent: Object, sighting: Sighting, basis: str) -> bytes:
    parts = (canonical(intent), sighting.uid.encode(), sighting.digest, basis.encode())
    return hashlib.sha256(b"".join(hashlib.sha256(part).digest() for part in parts)).digest()
