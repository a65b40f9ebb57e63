"""What has drifted: which fields of a target are not as planned, who changed them and when."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from virt_steward.apis.drift import DriftEntry
from virt_steward.objects.canonical import same
from virt_steward.objects.diff import ABSENT
from virt_steward.objects.masks import masked
from virt_steward.plans.fields import pointer_to, values
from virt_steward.ssa.drift_entries import drift_entry

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from virt_steward.apis.virtplatformconfig import PlanItem
    from virt_steward.ssa.managers import FieldManager

ENTRIES_KEPT = 20
"""Fields of an item that a status names."""
FIELDS_SHOWN = 5
"""Fields of an item that a message names."""


def drift_of(item: PlanItem, live: Mapping[str, Any] | None, manager: FieldManager) -> tuple[DriftEntry, ...]:
    """One entry per field, in the order of the plan. A field was changed by the other managers that own it now."""
    if live is None:
        return (DriftEntry(""),)
    planned = values(item.desired_state, item.managed_fields)
    found = values(live, item.managed_fields)
    changed = [
        field
        for field in item.managed_fields
        if (field in found) != (field in planned) or not same(found.get(field), planned.get(field))
    ]
    shown = {field: pointer_to(field) for field in changed[:ENTRIES_KEPT]}
    shown_live = values(masked(live), shown)
    shown_planned = values(masked({**item.desired_state, **_identity(live)}), shown)
    return tuple(
        drift_entry(live, pointer, shown_live.get(field, ABSENT), shown_planned.get(field, ABSENT), manager)
        for field, pointer in shown.items()
    )


def drift_lines(item: PlanItem, entries: tuple[DriftEntry, ...]) -> Iterator[str]:
    """A few sentences for a message, such as `KubeDescheduler cluster: /spec/mode is Predictive, planned Automatic`."""
    target = f"{item.target_ref.kind} {item.target_ref.name}"
    for entry in entries[:FIELDS_SHOWN]:
        yield f"{target}: {entry.sentence()}"
    if (left_out := len(entries) - FIELDS_SHOWN) > 0:
        more = "or more " if len(entries) == ENTRIES_KEPT else ""
        yield f"{target}: {left_out} {more}other fields"


def _identity(live: Mapping[str, Any]) -> dict[str, Any]:
    return {name: live[name] for name in ("apiVersion", "kind") if name in live}
