"""What a profile wants of one object, before anybody has asked the server what that would change."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from virt_steward.apis.virtplatformconfig import TargetRef
from virt_steward.objects.identity import Kind, Ref, ref_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from virt_steward.apis.virtplatformconfig import Impact

Object = dict[str, Any]

_ORDER: tuple[Impact, ...] = ("Low", "Medium", "High")


@dataclass(frozen=True, slots=True)
class Impacts:
    """How much it disturbs, by what happens to the object."""

    creates: Impact
    changes: Impact


@dataclass(frozen=True, slots=True)
class Intent:
    """One item of a plan to be."""

    name: str
    desired: Object
    """All that is wanted of the object."""
    fields: tuple[str, ...]
    """What it sets, as managed fields."""
    impacts: Impacts
    message: str
    """What will be done, for people."""
    moot: str = ""
    """Why nothing need be done at all; then nothing is ever written."""

    @property
    def ref(self) -> Ref:
        return ref_of(self.desired)

    @property
    def target(self) -> TargetRef:
        metadata = self.desired["metadata"]
        return TargetRef(
            self.desired["apiVersion"], self.desired["kind"], metadata["name"], metadata.get("namespace", "")
        )


def worst(impacts: Iterable[Impact]) -> Impact:
    """The most disturbing of them."""
    return max(impacts, key=_ORDER.index, default="Low")


def ref_to(target: TargetRef) -> Ref:
    """The object that a target names."""
    return ref_of(
        {
            "apiVersion": target.api_version,
            "kind": target.kind,
            "metadata": {"name": target.name, "namespace": target.namespace},
        }
    )


def is_of(target: TargetRef, kind: Kind) -> bool:
    return ref_to(target).kind == kind
