"""Which fields of which objects a VirtPlatformConfig governs, so that nobody else of ours writes them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from virt_steward.apis.virtplatformconfig import GovernedTarget

if TYPE_CHECKING:
    from collections.abc import Iterable

    from virt_steward.apis.virtplatformconfig import PlanItem


def governing(before: Iterable[GovernedTarget], item: PlanItem) -> tuple[GovernedTarget, ...]:
    """The same after an item was applied: fields add up, the hash is of what was applied last."""
    others = tuple(one for one in before if one.target_ref != item.target_ref)
    earlier = (field for one in before if one.target_ref == item.target_ref for field in one.managed_fields)
    fields = tuple(dict.fromkeys((*item.managed_fields, *earlier)))
    return (*others, GovernedTarget(item.target_ref, fields, item.planned_hash))


def without(before: Iterable[GovernedTarget], item: PlanItem) -> tuple[GovernedTarget, ...]:
    """The same after an item was given back."""
    return tuple(one for one in before if one.target_ref != item.target_ref)
