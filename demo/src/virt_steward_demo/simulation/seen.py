"""Objects as the simulated controllers see them: whole, since they are few."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from virt_steward.kube.watch import projection
from virt_steward.objects.meta import Meta
from virt_steward.runtime.informer import Source

if TYPE_CHECKING:
    from virt_steward.objects.identity import Key, Kind
    from virt_steward.runtime.store import Store


class SimulatedMeta(Meta, frozen=True, rename="camel"):
    labels: dict[str, str] = msgspec.field(default_factory=dict)
    annotations: dict[str, str] = msgspec.field(default_factory=dict)
    generation: int = 0


class SimulatedObject(msgspec.Struct, frozen=True):
    """Any object."""

    metadata: SimulatedMeta
    spec: dict[str, Any] = msgspec.field(default_factory=dict)
    status: dict[str, Any] = msgspec.field(default_factory=dict)

    @property
    def name(self) -> str:
        return self.metadata.name

    @property
    def key(self) -> Key:
        return self.metadata.key


def source_of(kind: Kind) -> Source[SimulatedObject]:
    return Source(kind, projection(SimulatedObject))


def in_order(store: Store[SimulatedObject]) -> list[SimulatedObject]:
    """All, by namespace and name."""
    return sorted(store, key=lambda one: one.key)
