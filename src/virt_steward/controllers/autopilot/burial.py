"""Deletes what releases before this one made and nobody wants any more: only what carries our label."""

from __future__ import annotations

from typing import TYPE_CHECKING

from virt_steward.catalog.load import MANAGED_BY, MANAGER
from virt_steward.controllers.autopilot import marks
from virt_steward.controllers.autopilot.overrides.exclusions import Exclusions
from virt_steward.kube.errors import Conflict, KubeError, NotFound
from virt_steward.kube.faults import reach

if TYPE_CHECKING:
    from virt_steward.catalog.load import Tombstone
    from virt_steward.controllers.autopilot.observe import Outlook
    from virt_steward.controllers.autopilot.seen import Seen
    from virt_steward.controllers.autopilot.sighted import Sighted
    from virt_steward.controllers.autopilot.tell import Teller
    from virt_steward.kube.client import Client
    from virt_steward.objects.identity import Ref, Regarding

THERE, GONE, CANNOT, NOT_OURS = 1, 0, -1, -2


async def bury(client: Client, outlook: Outlook, teller: Teller, seen: Seen) -> None:
    """Look at each. One that cannot be deleted holds up nothing: it is said, and tried again with the next pass."""
    for stone in outlook.catalog.tombstones:
        found = outlook.buried(stone.ref)
        if found is None:
            teller.tombstone(seen.hco, stone.ref, GONE)
        elif found.labels.get(MANAGED_BY) != MANAGER:
            teller.tombstone(seen.hco, stone.ref, NOT_OURS, f"it lacks the label {MANAGED_BY}={MANAGER}")
        elif found.is_going or (wish := _kept_by(stone.ref, found, seen)):
            teller.tombstone(seen.hco, stone.ref, THERE, "" if found.is_going else wish)
        else:
            await _delete(client, teller, stone, found, seen.hco)


def _kept_by(ref: Ref, found: Sighted, seen: Seen) -> str:
    """Return whose wish it is that it stays; empty if nobody's."""
    if found.annotations.get(marks.MODE) == marks.UNMANAGED:
        return f"it carries {marks.MODE}: {marks.UNMANAGED}"
    rule = isinstance(seen.exclusions, Exclusions) and seen.exclusions.excludes(
        ref.kind.name, ref.key.namespace, ref.key.name
    )
    return f"{marks.EXCLUDED} excludes it: {rule}" if rule else ""


async def _delete(client: Client, teller: Teller, stone: Tombstone, found: Sighted, hco: Regarding) -> None:
    reach("autopilot.bury.before")
    try:
        await client.delete(stone.ref, uid=found.metadata.uid, resource_version=found.metadata.resource_version)
    except (NotFound, Conflict):  # gone, or changed a moment ago: the watch will tell
        return
    except KubeError as error:
        teller.tombstone(hco, stone.ref, CANNOT, str(error))
        return
    teller.tombstone(hco, stone.ref, GONE, found.metadata.uid)
