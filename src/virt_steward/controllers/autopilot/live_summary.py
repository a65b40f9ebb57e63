"""What is kept of an object that the autopilot manages: enough to know whether it has changed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import msgspec

from virt_steward.controllers.autopilot.annotation_keys import (
    CREATED,
    CREATED_BY,
    GOVERNED_BY,
    PAUSE_REASON,
    PAUSED,
    SIGNER,
    UID_PENDING,
    select_steering,
)
from virt_steward.controllers.autopilot.edit_wars import OTHER_INSTANCE
from virt_steward.objects.meta import Meta
from virt_steward.objects.normalize import content_digest
from virt_steward.ssa.managers import ADVISOR, AUTOPILOT, CREATION, PAUSE
from virt_steward.ssa.memo import LiveDigest

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_OBJECT = msgspec.json.Decoder(dict[str, Any])
_US = frozenset(one.name for one in (AUTOPILOT, CREATION, PAUSE))
_BOOKKEEPING = frozenset(("f:finalizers", "f:ownerReferences"))


@dataclass(frozen=True, slots=True)
class LiveSummary:
    """One object as a watch delivered it. The digest is taken while it arrives; the object itself is not kept."""

    metadata: Meta
    annotations: Mapping[str, str]
    """Those that steer us."""
    labels: Mapping[str, str]
    digest: bytes
    paused_at: str
    """When the autopilot paused it, as the server has recorded; empty if it is not paused, or by somebody else."""
    others: tuple[str, ...] = ()
    """Who else manages fields of it, those of its status aside."""
    is_terminating: bool = False
    """It is being deleted."""
    advised: tuple[str, ...] = ()
    """Fields that the advisor owns, if its annotation is on the object; as plans list them: `spec.profiles`."""

    @property
    def sighting(self) -> LiveDigest:
        return LiveDigest(self.metadata.uid, self.digest)

    @property
    def is_paused(self) -> bool:
        return self.annotations.get(PAUSED) == "true"

    @property
    def pause_cause(self) -> str:
        """Why it is paused, in words for users."""
        if not self.paused_at:
            return "a user paused it"
        is_own = self.annotations.get(PAUSE_REASON) == OTHER_INSTANCE
        return OTHER_INSTANCE if is_own else "another client kept changing it"

    @property
    def is_created_by_us(self) -> bool:
        return self.annotations.get(CREATED) in (self.metadata.uid, UID_PENDING)

    @property
    def is_signed(self) -> bool:
        """Whether a release of ours after 0.1 created it. What 0.1 created is ours to delete, but not to rewrite."""
        return _is_signed(self.annotations, self.metadata.uid)

    def is_same(self, other: LiveSummary) -> bool:
        """Whether nothing of substance differs: a status does not count."""
        return (self.sighting, self.paused_at) == (other.sighting, other.paused_at)


def decode_summary(raw: bytes) -> LiveSummary:
    """Decode an object as it arrives."""
    return live_summary(_OBJECT.decode(raw))


def live_summary(obj: Mapping[str, Any]) -> LiveSummary:
    metadata = obj["metadata"]
    return LiveSummary(
        metadata=msgspec.convert(metadata, Meta),
        annotations=select_steering(metadata.get("annotations")),
        labels=metadata.get("labels") or {},
        digest=sighting_of_object(obj).digest,
        paused_at=_paused_at(metadata),
        others=managers_beside_us(metadata),
        is_terminating="deletionTimestamp" in metadata,
        advised=_advised(metadata),
    )


def is_signed(obj: Mapping[str, Any]) -> bool:
    """Whether the object carries the record that a release of ours after 0.1 created it."""
    metadata = obj["metadata"]
    return _is_signed(metadata.get("annotations") or {}, metadata["uid"])


def _is_signed(annotations: Mapping[str, str], uid: str) -> bool:
    created = annotations.get(CREATED)
    return created == UID_PENDING or (created == uid and annotations.get(CREATED_BY) == SIGNER)


def sighting_of_object(obj: Mapping[str, Any]) -> LiveDigest:
    """Return the uid and the digest, without our own annotations that we created it."""
    metadata = obj["metadata"]
    annotations = metadata.get("annotations") or {}
    if CREATED in annotations:
        left = {name: value for name, value in annotations.items() if name not in (CREATED, CREATED_BY)}
        rest = {name: value for name, value in metadata.items() if name != "annotations"}
        obj = {**obj, "metadata": rest | ({"annotations": left} if left else {})}
    return LiveDigest(metadata["uid"], content_digest(obj))


def managers_beside_us(metadata: Mapping[str, Any]) -> tuple[str, ...]:
    entries = metadata.get("managedFields") or ()
    return tuple(sorted({entry.get("manager", "") for entry in entries if _sets_content(entry)} - _US))


def _sets_content(entry: Mapping[str, Any]) -> bool:
    """Writers of the status, of finalizers and of owner references do not decide what the object is like."""
    if entry.get("subresource") == "status":
        return False
    fields = entry.get("fieldsV1") or {}
    metadata = fields.get("f:metadata", {}).keys() - _BOOKKEEPING
    return bool(metadata or fields.keys() - {"f:metadata", "f:status"})


def _advised(metadata: Mapping[str, Any]) -> tuple[str, ...]:
    if GOVERNED_BY not in (metadata.get("annotations") or {}):
        return ()
    entries = [entry for entry in metadata.get("managedFields") or () if entry.get("manager") == ADVISOR.name]
    fields = (entry["fieldsV1"].get("f:spec", {}) for entry in entries if entry.get("operation") == "Apply")
    return tuple(sorted({path for owned in fields for path in _paths(owned, "spec")}))


def _paths(owned: Mapping[str, Any], above: str) -> Iterator[str]:
    """List the deepest names of fields; for the items of a list, the list as a whole."""
    names = [name for name in owned if name.startswith("f:")]
    if not names:
        yield above
    for name in names:
        yield from _paths(owned[name], f"{above}.{name.removeprefix('f:')}")


def _paused_at(metadata: Mapping[str, Any]) -> str:
    entries = metadata.get("managedFields") or ()
    return next((entry.get("time", "") for entry in entries if entry.get("manager") == PAUSE.name), "")
