"""Who owns which field of a governed object, for viewers who may list it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from virt_steward.insight.field_owners import ManagedFieldsRecord, field_owners
from virt_steward.plans.intent import ref_to

if TYPE_CHECKING:
    from virt_steward.apis.virtplatformconfig import PlanItem
    from virt_steward.console.page_context import PageContext
    from virt_steward.insight.field_owners import FieldOwners
    from virt_steward.objects.identity import Ref

_ENTRIES = msgspec.json.Decoder(tuple[ManagedFieldsRecord, ...])


async def owners_of_item(context: PageContext, item: PlanItem) -> FieldOwners | None:
    """Of the object of a plan's item, which is cached; None if it does not exist, or the viewer may not list it."""
    ref = ref_to(item.target_ref)
    target = context.cache.profiles.target(ref)
    if target is None or target.object is None or not await context.may("list", target.kind, ref.key.namespace):
        return None
    return field_owners(_ENTRIES.decode(msgspec.json.encode(target.object["metadata"].get("managedFields") or ())))


async def owners_of_object(context: PageContext, ref: Ref) -> FieldOwners | None:
    """Of an asset's object, which is read with the viewer's credentials; None as above."""
    entries = await context.rights.managed_fields(ref)
    return None if entries is None else field_owners(entries)
