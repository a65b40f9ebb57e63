"""What is wanted of one object, before a dry run shows what that would change."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from virt_steward.apis.virtplatformconfig import TargetRef
from virt_steward.objects.identity import Kind, Ref, ref_of

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from virt_steward.apis.virtplatformconfig import Impact, PlanItem

Object = dict[str, Any]

_ORDER: tuple[Impact, ...] = ("Low", "Medium", "High")


@dataclass(frozen=True, slots=True)
class Impacts:
    """How disruptive it is to create or to change the object."""

    creates: Impact
    changes: Impact


@dataclass(frozen=True, slots=True)
class Intent:
    """One item of a plan that is about to be drafted."""

    name: str
    desired: Object
    """The desired object, with all the fields that are set."""
    fields: tuple[str, ...]
    """The fields that it sets, as managed fields."""
    impacts: Impacts
    message: str
    """What will be done, for users."""
    moot: str = ""
    """Why nothing needs to be done; then nothing is written. Empty if something does."""

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
    """The most disruptive of them."""
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


def writes_only(item: PlanItem, targets: Collection[Ref]) -> bool:
    """Whether the item writes one of these targets, and nothing else under its name."""
    return ref_to(item.target_ref) in targets and ref_of(item.desired_state) == ref_to(item.target_ref)


def is_of(target: TargetRef, kind: Kind) -> bool:
    return ref_to(target).kind == kind
