"""What others have changed of what a profile has set, as a diff from what is there to what is wanted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from virt_steward.console import diffs
from virt_steward.controllers.advisor.observation import has_drifted
from virt_steward.objects.diff import unified
from virt_steward.plans.draft import fitted
from virt_steward.plans.fields import only, pointer_to
from virt_steward.plans.fingerprint import fields_hash
from virt_steward.plans.intent import ref_to

if TYPE_CHECKING:
    from collections.abc import Mapping

    from virt_steward.apis.virtplatformconfig import PlanItem
    from virt_steward.console.page_context import PageContext

CHANGED = "Lines with - are there now, lines with + were applied."
GONE = "No longer there. This is what was applied:"


@dataclass(frozen=True, slots=True)
class ItemDrift:
    """Of one object."""

    says: str
    lines: tuple[diffs.DiffLine, ...] = ()


async def drift_of(visit: PageContext, item: PlanItem) -> ItemDrift | None:
    """None: it is as it was applied."""
    ref = ref_to(item.target_ref)
    known = visit.cache.targets.get(ref)
    if known is None:
        return ItemDrift("Whether it differs is not known: the console cannot read it now.")
    if not has_drifted(item, fields_hash(known.object, item.managed_fields)):
        return None
    if not await visit.may("list", known.kind, ref.key.namespace):
        return ItemDrift(f"What differs is not shown: you may not list {known.kind.plural}.{known.kind.group}.")
    return ItemDrift(CHANGED if known.object else GONE, diffs.lines(fitted(_diff(item, known.object))))


def _diff(item: PlanItem, live: Mapping[str, Any] | None) -> str:
    """Of the fields that the item sets; what secrets say is masked."""
    fields = [pointer_to(field) for field in item.managed_fields]
    wanted = only(item.desired_state, fields)
    if live is None:
        return unified(None, wanted)
    return unified(only({**live, "apiVersion": wanted["apiVersion"], "kind": wanted["kind"]}, fields), wanted)
