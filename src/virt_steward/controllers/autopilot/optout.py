"""Opting out: what becomes of objects that we made and nobody asks for any more. By default they stay.

An object is known to be of our making by its own uid, which we note on it right after it was created.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

import structlog

from virt_steward.catalog.conditions import Unmet
from virt_steward.catalog.load import MANAGED_BY, MANAGER
from virt_steward.controllers.autopilot import annotation_keys
from virt_steward.controllers.autopilot.live_summary import managers_beside_us
from virt_steward.controllers.autopilot.overrides.exclusions import UnreadableExclusions
from virt_steward.controllers.autopilot.overrides.scope import Only, unmatched
from virt_steward.controllers.autopilot.verdicts import AssetSkipped, LeftAlone
from virt_steward.kube.client import ApplyResult
from virt_steward.kube.errors import Conflict, Forbidden, KubeError, NotFound, NotLeading, Refused
from virt_steward.kube.faults import reach
from virt_steward.objects.corekinds import NAMESPACE
from virt_steward.objects.identity import ref_of
from virt_steward.objects.ownership import APPLY
from virt_steward.platform.hco import HYPERCONVERGED
from virt_steward.platform.machineconfigs import KUBELET_CONFIG, MACHINE_CONFIG
from virt_steward.ssa import apply as writing
from virt_steward.ssa.locks import lock_on
from virt_steward.ssa.managers import AUTOPILOT, CREATION

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from virt_steward.catalog.asset import Asset
    from virt_steward.controllers.autopilot.live_summary import LiveSummary
    from virt_steward.controllers.autopilot.observation import AutopilotObservation
    from virt_steward.controllers.autopilot.reporter import AutopilotReporter
    from virt_steward.kube.client import Client
    from virt_steward.objects.identity import Ref
    from virt_steward.ssa.locks import Object

log = structlog.get_logger()

KEEP, DELETE = "keep", "delete"
NEVER = {
    HYPERCONVERGED: "it is the platform itself",
    MACHINE_CONFIG: "without it every node of its pool reboots",
    KUBELET_CONFIG: "without it every node of its pool reboots",
    NAMESPACE: "all that is in it would go too",
}
"""Kinds that are left in any case, and why."""
GRANT = "virt-steward rbac --controllers autopilot --opt-out-deletes | kubectl apply -f -"
_SAME_MOMENT = timedelta(seconds=1)


@dataclass(frozen=True, slots=True)
class Leaving:
    """An object of which nothing is wanted now."""

    asset: Asset
    ref: Ref
    sighted: LiveSummary
    left: LeftAlone


@dataclass(frozen=True, slots=True)
class Goes:
    """It may be deleted."""


@dataclass(frozen=True, slots=True)
class Stays:
    """It is not deleted, though deleting is the policy."""

    why: str


def fate(leaving: Leaving, seen: AutopilotObservation, assets: Iterable[Asset]) -> Goes | Stays | None:
    """Judge an object; None if nobody has opted out of it by the policy of deleting."""
    if not _deletes(seen) or not _is_opted_out(leaving, seen) or leaving.sighted.is_going:
        return None
    if isinstance(seen.exclusions, UnreadableExclusions):  # nothing is written before they can be read
        return None
    if isinstance(seen.scope, Only) and unmatched(seen.scope.names, assets):  # a slip must not delete what it meant
        return None
    if leaving.ref.kind == HYPERCONVERGED or leaving.sighted.labels.get(MANAGED_BY) != MANAGER:  # never ours
        return None
    why = next(_objections(leaving), "")
    return Stays(why) if why else Goes()


def _deletes(seen: AutopilotObservation) -> bool:
    return seen.look.context.hco.annotations.get(annotation_keys.ON_OPT_OUT) == DELETE


def _is_opted_out(leaving: Leaving, seen: AutopilotObservation) -> bool:
    """Only what a person does counts: a node that is gone for a while, say, is no wish."""
    match leaving.left.reason:
        case AssetSkipped.OUT_OF_SCOPE | AssetSkipped.EXCLUDED:
            return True
        case AssetSkipped.CONDITIONS:
            asked = (one for one in leaving.asset.conditions if one.asks_for)
            return any(isinstance(one.check(seen.look.context), Unmet) for one in asked)
    return False


def _objections(leaving: Leaving) -> Iterator[str]:
    sighted = leaving.sighted
    if why := NEVER.get(leaving.ref.kind):
        yield why
    if not sighted.is_made_by_us:
        yield "it was there before, or nobody noted that we made it"
    if sighted.others:
        yield f"it is also managed by {', '.join(sighted.others)}"
    if sighted.annotations.get(annotation_keys.MODE) == annotation_keys.UNMANAGED:
        yield f"it carries {annotation_keys.MODE}: {annotation_keys.UNMANAGED}"
    if sighted.is_paused:
        yield f"it carries {annotation_keys.PAUSED}"
    if annotation_keys.GOVERNED_BY in sighted.annotations:
        yield "the advisor governs fields of it"


async def part(
    client: Client, reporter: AutopilotReporter, leaving: Leaving, seen: AutopilotObservation, assets: Iterable[Asset]
) -> None:
    """Delete the object if the policy says so and nothing speaks against it; say so in any case."""
    match fate(leaving, seen, assets):
        case Goes():
            await _delete(client, reporter, leaving, seen)
        case Stays(why):
            note = f"{leaving.ref} is not wanted any more and stays: {why}. Delete it yourself if it should go"
            reporter.opted_out(seen.hco, leaving.ref, "OptOutSkipped", note, f"{leaving.sighted.metadata.uid} {why}")


async def _delete(client: Client, reporter: AutopilotReporter, leaving: Leaving, seen: AutopilotObservation) -> None:
    metadata, ref = leaving.sighted.metadata, leaving.ref
    reach("autopilot.optout.before")
    try:
        await client.delete(ref, uid=metadata.uid, resource_version=metadata.resource_version)
    except (NotFound, Conflict):  # gone, or changed a moment ago: the watch will tell
        return
    except Forbidden:
        note = f"{ref} is not wanted any more, and may not be deleted. To allow it: {GRANT}"
        reporter.opted_out(seen.hco, ref, "OptOutForbidden", note, metadata.uid)
    except Refused as error:
        note = f"{ref} is not wanted any more, and cannot be deleted: {error}"
        reporter.opted_out(seen.hco, ref, "OptOutFailed", note, metadata.uid)
    else:
        note = f"{ref} is deleted, as nobody wants it any more: {leaving.left.why}"
        reporter.opted_out(seen.hco, ref, "OptOutDeleted", note, metadata.uid)


async def signed(client: Client, live: Object, before: Object | None) -> bool:
    """Note on an object of ours that it is; false if it has just changed, so that somebody looks again.

    `before` is the object as it was found, if it was: what we have just applied hides when we first did.
    """
    if not _lacks_signature(live, before or live):
        return True
    reach("autopilot.sign.before")
    try:
        mark = annotation_keys.mark(live, annotation_keys.CREATED, live["metadata"]["uid"])
        answer = await writing.apply(client, mark, CREATION, lock_on(live))
    except NotLeading:
        raise
    except KubeError as error:  # the object itself is as wanted, and matters more
        log.warning("creation not noted", object=str(ref_of(live)), error=str(error))
        return True
    return isinstance(answer, ApplyResult)


def _lacks_signature(live: Object, found: Object) -> bool:
    """Tell whether it is of our making and nobody has noted it: a process may end between the two."""
    metadata = live["metadata"]
    if ref_of(live).kind in NEVER or annotation_keys.CREATED in (metadata.get("annotations") or {}):
        return False
    return not managers_beside_us(metadata) and any(
        _began_with(entry, metadata) for entry in found["metadata"].get("managedFields") or ()
    )


def _began_with(entry: Object, metadata: Object) -> bool:
    """Tell whether we applied it in the moment of its creation."""
    if (entry.get("manager"), entry.get("operation")) != (AUTOPILOT.name, APPLY):
        return False
    made, applied = (datetime.fromisoformat(time) for time in (metadata["creationTimestamp"], entry["time"]))
    return abs(applied - made) <= _SAME_MOMENT
