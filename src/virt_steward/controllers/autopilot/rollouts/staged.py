"""A staged change, and the ConfigMap in which staged changes survive the process. Pure."""

from __future__ import annotations

import hashlib
from datetime import datetime
from enum import StrEnum
from functools import cached_property
from typing import TYPE_CHECKING, Any

import msgspec

from virt_steward.catalog.load import MANAGED_BY, MANAGER
from virt_steward.objects.corekinds import CONFIG_MAP
from virt_steward.objects.field_changes import FieldChange, shortened
from virt_steward.objects.identity import Key, Ref
from virt_steward.objects.meta import Meta
from virt_steward.platform.machineconfigs import MACHINE_CONFIG

if TYPE_CHECKING:
    from collections.abc import Mapping

    from virt_steward.objects.identity import Regarding

NAME = "virt-platform-autopilot-mc-staging"
"""Of the ConfigMap, in the namespace of the HyperConverged; the Go operator uses the same."""
_SHORT = 12
_NAMED = 3
MOST_FIELDS = 20
LONGEST_VALUE = 200


class Occasion(StrEnum):
    """Why a write is due."""

    CREATE = "create"
    UPDATE = "update"
    """What is wanted has changed."""
    DRIFT = "drift"
    """Others have changed the object."""
    FIRST_CONTACT = "first contact"
    """Another instance or release of the autopilot has written the object."""
    DELETE = "delete"
    """An earlier release has written the object, and it is obsolete."""

    @property
    def wants_review(self) -> bool:
        """Whether it undoes what another instance or release has done, so that nothing new may take it along."""
        return self in (Occasion.FIRST_CONTACT, Occasion.DELETE)


class StagedChange(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """One change that waits."""

    staged_at: datetime
    """Starts again when something else is wanted. Exact, since it tells one change from the next."""
    desired_hash: str
    """Of the rendered object, before ignored fields are left out."""
    matching_pools: tuple[str, ...] = ()
    asset: str = ""
    occasion: Occasion = Occasion.UPDATE
    live_hash: str = ""
    """Of the live object when it was compared; empty if it did not exist."""
    fields: tuple[FieldChange, ...] = ()
    """What would change, by the dry run that compared it: the first of them, with long values cut."""
    more_fields: int = 0
    """How many more would change."""
    closed_gates: str = ""
    """What its gates answered last, if nothing but them holds it back; empty if they are open, or were not asked."""

    @property
    def id(self) -> str:
        """What a person releases: this content, over that live object, staged then. Never valid for another change."""
        parts = (self.asset, self.desired_hash, self.live_hash, self.staged_at.isoformat())
        return f"{self.asset}@{hashlib.sha256(' '.join(parts).encode()).hexdigest()[:_SHORT]}"

    @property
    def summary(self) -> str:
        """What would change, in a sentence."""
        if not self.live_hash:
            return "It creates the object"
        named = "; ".join(str(one) for one in self.fields[:_NAMED])
        more = len(self.fields[_NAMED:]) + self.more_fields
        return f"It changes {named}{f' and {more} more fields' if more > 0 else ''}" if named else ""

    def continues(self, before: StagedChange | None) -> bool:
        """Whether the clock goes on: the same is wanted as before."""
        return before is not None and before.desired_hash == self.desired_hash


def occasion_of_creation(before: StagedChange | None, *, is_compared: bool, has_predecessor: bool) -> Occasion:
    """Why an object is created. Nobody has reviewed what an earlier instance on this cluster did not have.

    That ends with the first verdict on the object, unless that was to stage it: what is wanted later, such as by an
    opt-in, is wanted of us.
    """
    is_unreviewed = before.occasion is Occasion.FIRST_CONTACT if before else not is_compared
    return Occasion.FIRST_CONTACT if has_predecessor and is_unreviewed else Occasion.CREATE


def recorded_fields(changes: tuple[FieldChange, ...]) -> tuple[FieldChange, ...]:
    """Select what is recorded of the changed fields: all staged changes together must fit into a ConfigMap."""
    return tuple(shortened(one, LONGEST_VALUE) for one in changes[:MOST_FIELDS])


class StagingRecord(msgspec.Struct, frozen=True, dict=True):
    """The ConfigMap as a watch delivers it."""

    metadata: Meta
    data: dict[str, str] = {}

    @cached_property
    def entries(self) -> dict[str, StagedChange]:
        """Decoded once, since each asset asks for them."""
        return read_entries(self.data)


def ref_of_staging(namespace: str) -> Ref:
    return Ref(CONFIG_MAP, Key(namespace, NAME))


def data_key(ref: Ref) -> str:
    """The key of an object's entry: its name alone for a MachineConfig, as the Go operator writes it."""
    if ref.kind == MACHINE_CONFIG:
        return ref.key.name
    return ".".join(part for part in (ref.kind.name.lower(), ref.key.namespace, ref.key.name) if part)


def read_entries(data: Mapping[str, str]) -> dict[str, StagedChange]:
    """Decode the entries by their keys. One that is corrupt, or not ours, is left out: it is staged again if wanted."""
    found: dict[str, StagedChange] = {}
    for key, text in data.items():
        try:
            entry = msgspec.json.decode(text, type=StagedChange)
        except (msgspec.DecodeError, UnicodeDecodeError):
            continue
        if entry.asset and entry.staged_at.tzinfo:
            found[key] = entry
    return found


def unreviewed_pools(entries: Mapping[str, StagedChange], ref: Ref) -> frozenset[str]:
    """Pools with staged changes that want a review, besides those of this object."""
    own = data_key(ref)
    others = (entry for key, entry in entries.items() if key != own)
    return frozenset(pool for one in others if one.occasion.wants_review for pool in one.matching_pools)


def staging_intent(hco: Regarding, entries: Mapping[str, StagedChange]) -> dict[str, Any]:
    """Return the ConfigMap with these entries. It goes with the HyperConverged."""
    ref = ref_of_staging(hco.ref.key.namespace)
    owner = {"apiVersion": hco.api_version, "kind": hco.ref.kind.name, "name": hco.ref.key.name, "uid": hco.uid}
    return {
        "apiVersion": "v1",
        "kind": CONFIG_MAP.name,
        "metadata": {
            "name": ref.key.name,
            "namespace": ref.key.namespace,
            "labels": {MANAGED_BY: MANAGER},
            "ownerReferences": [owner],
        },
        "data": {key: msgspec.json.encode(entry).decode() for key, entry in sorted(entries.items())},
    }
