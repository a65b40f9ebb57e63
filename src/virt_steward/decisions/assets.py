"""Resume an object that the autopilot has paused, or that somebody has."""

from __future__ import annotations

from typing import TYPE_CHECKING

from virt_steward.controllers.autopilot.annotation_keys import PAUSE_REASON, PAUSED
from virt_steward.decisions.outcomes import Decided, NotDecided
from virt_steward.ssa.managers import CONSOLE

if TYPE_CHECKING:
    from virt_steward.kube.client import Client
    from virt_steward.objects.identity import Ref


async def resume(client: Client, ref: Ref) -> Decided | NotDecided:
    """Remove the annotation that pauses the object, and why it was."""
    live = await client.get(ref)
    if PAUSED not in (live["metadata"].get("annotations") or {}):
        return NotDecided("Not resumed", f"{ref} is not paused. Nothing was changed.")
    patch = {"metadata": {"annotations": {PAUSED: None, PAUSE_REASON: None}}}
    await client.merge_patch(ref, patch, manager=CONSOLE.name)
    return Decided(f"The autopilot manages {ref} again.")
