"""What has drifted: which fields of a target are not as planned, in words that name object, field and both values."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from virt_steward.objects.canonical import same
from virt_steward.objects.masks import masked
from virt_steward.objects.ownership import who_owns
from virt_steward.plans.fields import pointer_to, values

if TYPE_CHECKING:
    from collections.abc import Mapping

    from virt_steward.apis.virtplatformconfig import PlanItem
    from virt_steward.ssa.managers import FieldManager

FIELDS_SHOWN = 5
LONGEST_VALUE = 80


def drift_of(item: PlanItem, live: Mapping[str, Any] | None, manager: FieldManager) -> tuple[str, ...]:
    """One sentence per field, such as `KubeDescheduler cluster: .spec.mode is Predictive, planned Automatic`.

    Secret values are masked. A field was changed by the other managers that own it now, by managedFields.
    """
    target = f"{item.target_ref.kind} {item.target_ref.name}"
    if live is None:
        return (f"{target}: not found, it was deleted",)
    planned = values(item.desired_state, item.managed_fields)
    found = values(live, item.managed_fields)
    changed = [
        field
        for field in item.managed_fields
        if (field in found) != (field in planned) or not same(found.get(field), planned.get(field))
    ]
    shown_live = values(masked(live), changed)
    shown_planned = values(masked({**item.desired_state, **_identity(live)}), changed)
    lines = [
        f"{target}: .{field} is {_shown(shown_live, field)}, planned {_shown(shown_planned, field)}"
        + _by(live, field, manager)
        for field in changed[:FIELDS_SHOWN]
    ]
    left_out = len(changed) - FIELDS_SHOWN
    return (*lines, f"{target}: {left_out} more fields") if left_out > 0 else tuple(lines)


def _identity(live: Mapping[str, Any]) -> dict[str, Any]:
    return {name: live[name] for name in ("apiVersion", "kind") if name in live}


def _shown(found: Mapping[str, Any], field: str) -> str:
    if field not in found:
        return "not set"
    value = found[field]
    text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
    return text if len(text) <= LONGEST_VALUE else f"{text[:LONGEST_VALUE]}…"


def _by(live: Mapping[str, Any], field: str, manager: FieldManager) -> str:
    others = {owner.manager for owner in who_owns(live, pointer_to(field)) if owner.manager != manager.name}
    return f" (changed by {', '.join(sorted(others))})" if others else ""
