"""Release staged changes of the autopilot: exactly those that were shown."""

from __future__ import annotations

from typing import TYPE_CHECKING

from virt_steward.controllers.autopilot.annotation_keys import DECISION, ROLLOUT_RELEASE
from virt_steward.controllers.autopilot.rollouts.policy import parse_releases
from virt_steward.controllers.autopilot.rollouts.staged import read_entries, ref_of_staging
from virt_steward.decisions.configs import retry_on_conflict
from virt_steward.decisions.outcomes import Decided, NotDecided
from virt_steward.objects.identity import Ref
from virt_steward.platform.hco import HYPERCONVERGED
from virt_steward.ssa.managers import CONSOLE
from virt_steward.ssa.preview import fetch

if TYPE_CHECKING:
    from collections.abc import Collection

    from virt_steward.decisions.outcomes import Outcome
    from virt_steward.decisions.signatures import Signature
    from virt_steward.kube.client import Client
    from virt_steward.objects.identity import Key


async def release(client: Client, hco: Key, ids: Collection[str], signature: Signature) -> Outcome:
    """Record on the HyperConverged that these changes may be written; the autopilot writes them at once."""
    return await retry_on_conflict(lambda: _release(client, hco, parse_releases(",".join(ids)), signature))


async def _release(client: Client, hco: Key, ids: frozenset[str], signature: Signature) -> Outcome:
    record = await fetch(client, ref_of_staging(hco.namespace))
    entries = {entry.id: entry for entry in read_entries((record or {}).get("data") or {}).values()}
    staged = entries.keys()
    if (gone := sorted(ids - staged)) or not ids:
        reason = f"{', '.join(gone) or 'the change'} is not staged any more, or has changed. Review the change again"
        return NotDecided("Not released", f"Nothing was released: {reason}.")
    ref = Ref(HYPERCONVERGED, hco)
    live = await client.get(ref)
    metadata = live["metadata"]
    before = parse_releases((metadata.get("annotations") or {}).get(ROLLOUT_RELEASE))
    kept = sorted(before & staged | ids)  # what was written since is of no use any more
    named = ", ".join(sorted(ids))
    annotations = {ROLLOUT_RELEASE: ",".join(kept), **signature.record(DECISION, "release", named)}
    patch = {"resourceVersion": metadata["resourceVersion"], "annotations": annotations}
    await client.merge_patch(ref, {"metadata": patch}, manager=CONSOLE.name)
    reboots = any(entries[one].matching_pools for one in ids)
    return Decided(f"Released {named}. The autopilot applies it now{', and nodes reboot' * reboots}.")
