"""Opting out: what becomes of objects that we created and nobody asks for any more. By default they stay.

That we created an object is known by its signature: see `signatures`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from virt_steward.catalog.conditions import Unmet
from virt_steward.catalog.load import MANAGED_BY, MANAGER
from virt_steward.controllers.autopilot import annotation_keys
from virt_steward.controllers.autopilot.overrides.exclusions import UnreadableExclusions
from virt_steward.controllers.autopilot.overrides.scope import Only, unmatched
from virt_steward.controllers.autopilot.verdicts import AssetSkipped, SkipReason
from virt_steward.kube.errors import Conflict, Forbidden, NotFound, Refused
from virt_steward.kube.faults import reach
from virt_steward.objects.corekinds import NAMESPACE
from virt_steward.platform.hco import HYPERCONVERGED
from virt_steward.platform.machineconfigs import KUBELET_CONFIG, MACHINE_CONFIG

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from virt_steward.catalog.asset import Asset
    from virt_steward.controllers.autopilot.live_summary import LiveSummary
    from virt_steward.controllers.autopilot.observation import AutopilotObservation
    from virt_steward.controllers.autopilot.reporter import AutopilotReporter
    from virt_steward.kube.client import Client
    from virt_steward.objects.identity import Ref

KEEP, DELETE = "keep", "delete"
NEVER_DELETED = {
    HYPERCONVERGED: "it is the platform itself",
    MACHINE_CONFIG: "without it every node of its pool reboots",
    KUBELET_CONFIG: "without it every node of its pool reboots",
    NAMESPACE: "all objects in it would be deleted too",
}
"""Kinds that are never deleted, and why."""
GRANT = "virt-steward rbac --controllers autopilot --opt-out-deletes | kubectl apply -f -"


@dataclass(frozen=True, slots=True)
class OptOut:
    """An object of which nothing is wanted now."""

    asset: Asset
    ref: Ref
    live: LiveSummary
    skipped: AssetSkipped


@dataclass(frozen=True, slots=True)
class Deletable:
    """It may be deleted."""


@dataclass(frozen=True, slots=True)
class Kept:
    """It is not deleted, though deleting is the policy."""

    message: str


def judge_opt_out(
    opt_out: OptOut, observation: AutopilotObservation, assets: Iterable[Asset]
) -> Deletable | Kept | None:
    """Decide on an object; None if nobody has opted out of it, or the policy is to keep it."""
    if not _is_policy_delete(observation) or not _is_by_a_person(opt_out, observation) or opt_out.live.is_terminating:
        return None
    if isinstance(observation.exclusions, UnreadableExclusions):  # nothing is written until they can be read
        return None
    if isinstance(observation.scope, Only) and unmatched(
        observation.scope.names, assets
    ):  # a misspelt name must not delete what it meant
        return None
    if opt_out.ref.kind == HYPERCONVERGED or opt_out.live.labels.get(MANAGED_BY) != MANAGER:  # never ours
        return None
    problem = next(_objections(opt_out), "")
    return Kept(problem) if problem else Deletable()


def _is_policy_delete(observation: AutopilotObservation) -> bool:
    return observation.context.hco.annotations.get(annotation_keys.ON_OPT_OUT) == DELETE


def _is_by_a_person(opt_out: OptOut, observation: AutopilotObservation) -> bool:
    """Whether a person has opted out. That a node with the hardware is gone for a while, say, is no opt-out."""
    match opt_out.skipped.reason:
        case SkipReason.OUT_OF_SCOPE | SkipReason.EXCLUDED:
            return True
        case SkipReason.CONDITIONS:
            keys = (one for one in opt_out.asset.conditions if one.opt_in_key)
            return any(isinstance(one.check(observation.context), Unmet) for one in keys)
    return False


def _objections(opt_out: OptOut) -> Iterator[str]:
    live = opt_out.live
    if problem := NEVER_DELETED.get(opt_out.ref.kind):
        yield problem
    if not live.is_created_by_us:
        yield "it existed before, or carries no record that the autopilot created it"
    if live.others:
        yield f"it is also managed by {', '.join(live.others)}"
    if live.annotations.get(annotation_keys.MODE) == annotation_keys.UNMANAGED:
        yield f"it has the annotation {annotation_keys.MODE}: {annotation_keys.UNMANAGED}"
    if live.is_paused:
        yield f"it has the annotation {annotation_keys.PAUSED}"
    if annotation_keys.GOVERNED_BY in live.annotations:
        yield "the advisor governs fields of it"


async def delete_opted_out(
    client: Client,
    reporter: AutopilotReporter,
    opt_out: OptOut,
    observation: AutopilotObservation,
    assets: Iterable[Asset],
) -> None:
    """Delete the object if the policy says so and nothing prevents it; report it in any case."""
    match judge_opt_out(opt_out, observation, assets):
        case Deletable():
            await _delete(client, reporter, opt_out, observation)
        case Kept(message):
            note = f"{opt_out.ref} is not requested any more and is kept: {message}. Delete it manually if unwanted"
            reporter.report_opt_out(
                observation.hco, opt_out.ref, "OptOutSkipped", note, f"{opt_out.live.metadata.uid} {message}"
            )


async def _delete(
    client: Client, reporter: AutopilotReporter, opt_out: OptOut, observation: AutopilotObservation
) -> None:
    metadata, ref = opt_out.live.metadata, opt_out.ref
    reach("autopilot.optout.before")
    try:
        await client.delete(ref, uid=metadata.uid, resource_version=metadata.resource_version)
    except (NotFound, Conflict):  # gone, or changed a moment ago: the watch will show it
        return
    except Forbidden:
        note = f"{ref} is not requested any more; forbidden (403) to delete it. To allow it: {GRANT}"
        reporter.report_opt_out(observation.hco, ref, "OptOutForbidden", note, metadata.uid)
    except Refused as error:
        note = f"{ref} is not requested any more and cannot be deleted: {error}"
        reporter.report_opt_out(observation.hco, ref, "OptOutFailed", note, metadata.uid)
    else:
        note = f"{ref} is deleted, because it is not requested any more: {opt_out.skipped.message}"
        reporter.report_opt_out(observation.hco, ref, "OptOutDeleted", note, metadata.uid)
