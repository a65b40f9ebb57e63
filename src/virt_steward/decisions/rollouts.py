"""Release staged changes of the autopilot: exactly those that were shown."""

from __future__ import annotations

from typing import TYPE_CHECKING

from virt_steward.controllers.autopilot.annotation_keys import (
    DECISION,
    OVERRIDE_FREEZE,
    OVERRIDE_FREEZE_BY,
    OVERRIDE_FREEZE_COMMENT,
    ROLLOUT_RELEASE,
)
from virt_steward.controllers.autopilot.rollouts.policy import parse_releases
from virt_steward.controllers.autopilot.rollouts.staged import read_entries, ref_of_staging
from virt_steward.decisions.configs import retry_on_conflict
from virt_steward.decisions.freezes import NO_FREEZE, WITHOUT_COMMENT, FreezeTerms, OverrideKeys
from virt_steward.decisions.outcomes import Decided, NotDecided
from virt_steward.holds.freezes import Frozen
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


OVERRIDE = OverrideKeys(OVERRIDE_FREEZE, OVERRIDE_FREEZE_BY, OVERRIDE_FREEZE_COMMENT)


async def release(
    client: Client, hco: Key, ids: Collection[str], signature: Signature, terms: FreezeTerms = NO_FREEZE
) -> Outcome:
    """Record on the HyperConverged that these changes may be written; the autopilot does so now, or after a freeze."""
    if terms.overrides and not signature.comment.strip():
        return NotDecided("Not released", f"{WITHOUT_COMMENT}. Nothing was released.")
    changes = parse_releases(",".join(ids))
    return await retry_on_conflict(lambda: _release(client, hco, changes, signature, terms))


async def _release(client: Client, hco: Key, ids: frozenset[str], signature: Signature, terms: FreezeTerms) -> Outcome:
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
    override = OVERRIDE.annotations(",".join(sorted(ids)), signature.user, signature.comment) if terms.overrides else {}
    annotations = {ROLLOUT_RELEASE: ",".join(kept), **signature.record(DECISION, "release", named), **override}
    patch = {"resourceVersion": metadata["resourceVersion"], "annotations": annotations}
    await client.merge_patch(ref, {"metadata": patch}, manager=CONSOLE.name)
    if isinstance(terms.freeze, Frozen) and not terms.overrides:
        return Decided(f"Released {named}. It is applied after the freeze: {terms.freeze.message}.")
    reboots = any(entries[one].matching_pools for one in ids)
    return Decided(f"Released {named}. The autopilot applies it now{', and nodes reboot' * reboots}.")
