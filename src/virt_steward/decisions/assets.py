"""Resume an object that the autopilot has paused, or that somebody has."""

from __future__ import annotations

from typing import TYPE_CHECKING

from virt_steward.controllers.autopilot.annotation_keys import DECISION, PAUSE_REASON, PAUSED
from virt_steward.decisions.configs import retry_on_conflict
from virt_steward.decisions.outcomes import Decided, NotDecided
from virt_steward.ssa.managers import CONSOLE

if TYPE_CHECKING:
    from virt_steward.decisions.signatures import Signature
    from virt_steward.kube.client import Client
    from virt_steward.objects.identity import Ref

NOT_RESUMED = "Not resumed"


async def resume(client: Client, ref: Ref, signature: Signature, uid: str = "") -> Decided | NotDecided:
    """Remove the annotation that pauses the object, and why it was; `uid` is that of the object that was shown."""

    async def attempt() -> Decided | NotDecided:
        metadata = (await client.get(ref))["metadata"]
        if uid not in ("", metadata["uid"]):
            return NotDecided(NOT_RESUMED, f"{ref} was replaced since you reviewed it. Nothing was changed.")
        if PAUSED not in (metadata.get("annotations") or {}):
            return NotDecided(NOT_RESUMED, f"{ref} is not paused. Nothing was changed.")
        annotations = {PAUSED: None, PAUSE_REASON: None, **signature.record(DECISION, "resume")}
        patch = {"resourceVersion": metadata["resourceVersion"], "annotations": annotations}
        await client.merge_patch(ref, {"metadata": patch}, manager=CONSOLE.name)
        return Decided(f"The autopilot manages {ref} again.")

    return await retry_on_conflict(attempt)
