"""Takes the steps of a removal. Each can be taken again, so a removal that was interrupted is simply repeated."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from virt_steward.kube.errors import Conflict, KubeError, NotFound, Unavailable
from virt_steward.kube.faults import reach
from virt_steward.objects.paths import Pointer
from virt_steward.removal.decide import RECORDED, RemovalAction
from virt_steward.removal.found import is_ours
from virt_steward.ssa.managers import RELEASE
from virt_steward.ssa.release import lock_operation, removed_entries

if TYPE_CHECKING:
    from virt_steward.kube.client import Client, Object
    from virt_steward.objects.identity import Ref
    from virt_steward.removal.decide import RemovalStep

ATTEMPTS = 3


@dataclass(frozen=True, slots=True)
class StepFailed:
    """The step could not be taken; the others are."""

    message: str


async def take_step(client: Client, step: RemovalStep) -> StepFailed | None:
    """Take one step; None if it was taken. Raises Unavailable if the server does not answer."""
    if step.action is RemovalAction.KEEP:
        return None
    reach(f"uninstall.{step.action}.before")
    try:
        if step.action is RemovalAction.DELETE:
            await client.delete(step.ref, uid=step.uid)
        else:
            await _release(client, step.ref)
    except NotFound:  # somebody else has deleted it
        return None
    except Unavailable:
        raise
    except KubeError as error:
        return StepFailed(str(error))
    reach(f"uninstall.{step.action}.after")
    return None


async def _release(client: Client, ref: Ref) -> None:
    for attempt in range(ATTEMPTS):
        live = await client.get(ref)
        operations = release_patch(live)
        if not operations:
            return
        try:
            await client.json_patch(ref, operations, manager=RELEASE.name)
        except Conflict:  # the object's own controller may update its status at the same time
            if attempt == ATTEMPTS - 1:
                raise
        else:
            return


def release_patch(live: Object) -> list[dict[str, Any]]:
    """The JSON patch that removes our entries of managedFields and our records; empty if there are none.

    It changes neither spec nor status, so that nothing follows from it: no MachineConfig is rendered again.
    """
    metadata = live["metadata"]
    notes = [name for name in metadata.get("annotations") or {} if name in RECORDED]
    entries = [index for index, entry in enumerate(metadata.get("managedFields") or ()) if is_ours(entry)]
    operations = [{"op": "remove", "path": str(Pointer(("metadata", "annotations", name)))} for name in notes]
    operations += removed_entries(live, entries)
    return [lock_operation(live), *operations] if operations else []
